package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/native/collective/launch"
)

// exampleVariable makes a process of the test one of the example.
const exampleVariable = "RLX_TEST_EXAMPLE"

func TestMain(m *testing.M) {
	if os.Getenv(exampleVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const last = "step 20, loss "

// lastLine returns the line of the last step.
func lastLine(t *testing.T, out string) string {
	t.Helper()
	_, line, found := strings.Cut(out, last)
	if !found {
		t.Fatalf("no last step: %s", out)
	}
	line, _, _ = strings.Cut(line, "\n")
	return line
}

// TestTheExampleTrainsAsItsPagesSay: one process, two of [launch.Start], and two with the variables of Slurm,
// Kubernetes and torchrun have the same loss; a run goes on from its last save.
func TestTheExampleTrainsAsItsPagesSay(t *testing.T) {
	t.Setenv(exampleVariable, "1")
	arguments := []string{"-steps", "20", "-dir", t.TempDir()}
	one, err := exec.Command(os.Args[0], arguments[:2]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, one)
	}
	want := lastLine(t, string(one))
	launched := append([]string{os.Args[0]}, arguments...)
	for _, first := range []string{"by tcp, from step 0", "by tcp, from step 20"} {
		var out strings.Builder
		if err := launch.Start(t.Context(), 2, launched, &out, io.Discard); err != nil || !strings.Contains(out.String(), first) {
			t.Errorf("%v: %s; it must have %q", err, &out, first)
		}
		if first == "by tcp, from step 0" && lastLine(t, out.String()) != want {
			t.Errorf("the loss is %s, not %s", &out, want)
		}
	}
	const firstPort, ports = 10000, 10000
	port := firstPort + rand.IntN(ports)
	for launcher, variables := range map[string]string{
		"slurm":      fmt.Sprintf("SLURM_PROCID=%%d SLURM_NTASKS=2 SLURM_LOCALID=%%[1]d SLURM_JOB_NODELIST=localhost SLURM_JOB_ID=%d", port),
		"kubernetes": fmt.Sprintf("JOB_COMPLETION_INDEX=%%d RLX_SIZE=2 RLX_ADDRESS=localhost:%d", port+ports),
		"torchrun":   fmt.Sprintf("RANK=%%d WORLD_SIZE=2 LOCAL_RANK=%%[1]d LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=%d", port+2*ports),
	} {
		if got := lastLine(t, pair(t, variables, arguments[:2])); got != want {
			t.Errorf("%s: the loss is %s, not %s", launcher, got, want)
		}
	}
}

// pair returns the output of two processes with the variables of a rank.
func pair(t *testing.T, variables string, arguments []string) string {
	var out [2]bytes.Buffer
	var all [2]*exec.Cmd
	for rank := range all {
		c := exec.CommandContext(t.Context(), os.Args[0], arguments...)
		c.Env = append(os.Environ(), strings.Fields(fmt.Sprintf(variables, rank))...)
		c.Stdout, c.Stderr, c.WaitDelay = &out[rank], &out[rank], time.Second
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all[rank] = c
	}
	for rank, c := range all {
		if err := c.Wait(); err != nil {
			t.Errorf("rank %d: %v: %s", rank, err, &out[rank])
		}
	}
	return out[0].String()
}
