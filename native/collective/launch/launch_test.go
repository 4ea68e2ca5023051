package launch_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective/launch"
)

// TestLaunchersSayWhoAProcessIs has the variables as the launchers' documentation has them.
func TestLaunchersSayWhoAProcessIs(t *testing.T) {
	for _, c := range []struct {
		variables string
		want      launch.Run
	}{
		{"", launch.Run{Size: 1, LocalSize: 1, Engine: "tcp"}},
		{"RLX_RANK=1 RLX_SIZE=2 RLX_ADDRESS=h:5", launch.Run{Launcher: "rlx", Engine: "tcp", Rank: 1, Size: 2, LocalSize: 1, Address: "h:5"}},
		{
			"RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=ab TORCHELASTIC_RESTART_COUNT=2 SLURM_PROCID=9",
			launch.Run{Launcher: "torchrun", Engine: "tcp", Rank: 3, Size: 4, LocalRank: 1, LocalSize: 2, Address: "10.0.0.1:29501", Token: "ab/2"},
		},
		{
			"SLURM_PROCID=2 SLURM_NTASKS=8 SLURM_LOCALID=2 SLURM_NTASKS_PER_NODE=4(x2) SLURM_JOB_NODELIST=gpu[01-04,7],x9 SLURM_JOB_ID=123456 SLURM_STEP_ID=0",
			launch.Run{Launcher: "slurm", Engine: "tcp", Rank: 2, Size: 8, LocalRank: 2, LocalSize: 4, Address: "gpu01:23456", Token: "slurm 123456/0/"},
		},
		{
			"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2",
			launch.Run{Launcher: "openmpi", Engine: "mpi", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, Address: "127.0.0.1:29477"},
		},
		{
			"PMI_RANK=0 PMI_SIZE=2 RLX_ADDRESS=m:7 RLX_TOKEN=x",
			launch.Run{Launcher: "mpich", Engine: "mpi", Size: 2, LocalSize: 1, Address: "m:7", Token: "x"},
		},
		{
			"JOB_COMPLETION_INDEX=2 RLX_SIZE=3 RLX_ADDRESS=train-0.train:29477",
			launch.Run{Launcher: "kubernetes", Engine: "tcp", Rank: 2, Size: 3, LocalSize: 1, Address: "train-0.train:29477"},
		},
		{"PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=2", launch.Run{Launcher: "mpich", Engine: "mpi", Rank: 1, Size: 4, LocalSize: 2}},
		{
			"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_NODELIST=n SLURM_JOB_ID=1 PMI_RANK=0 PMI_SIZE=2 RLX_ENGINE=mpi",
			launch.Run{Launcher: "slurm", Engine: "mpi", Size: 2, LocalSize: 1, Address: "n:20001", Token: "slurm 1//"},
		},
		{
			"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 RLX_ENGINE=tcp RLX_ADDRESS=h:5",
			launch.Run{Launcher: "openmpi", Engine: "tcp", Size: 2, LocalSize: 1, Address: "h:5"},
		},
		{"SLURM_PROCID=0 SLURM_NTASKS=1", launch.Run{Launcher: "slurm", Engine: "tcp", Size: 1, LocalSize: 1}},
	} {
		got, err := launch.From(environment(c.variables))
		if err != nil || got != c.want {
			t.Errorf("%s\n gives %+v, %v\n  want %+v", c.variables, got, err, c.want)
		}
	}
}

// TestTheFirstNodeOfAList is where rank 0 of a Slurm job listens.
func TestTheFirstNodeOfAList(t *testing.T) {
	for list, want := range map[string]string{
		"a": "a", "a,b": "a", "n[3,5]": "n3", "n[08-10]-ib,m": "n08-ib", "a,n[1-2]": "a",
	} {
		r, err := launch.From(environment("SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=5 SLURM_JOB_NODELIST=" + list))
		if host, _, _ := strings.Cut(r.Address, ":"); err != nil || host != want {
			t.Errorf("%s gives %q, %v; want %q", list, r.Address, err, want)
		}
	}
}

// TestMalformedVariablesAreNamed in the error.
func TestMalformedVariablesAreNamed(t *testing.T) {
	for variables, name := range map[string]string{
		"RANK=0":                               "WORLD_SIZE",
		"RANK=x WORLD_SIZE=2 MASTER_ADDR=h":    "RANK",
		"RANK=0 WORLD_SIZE=2":                  "RLX_ADDRESS",
		"RANK=2 WORLD_SIZE=2 MASTER_ADDR=h":    "rank 2 of 2",
		"PMI_RANK=0 PMI_SIZE=2 RLX_ADDRESS=hm": "host:port",
		"PMI_RANK=0 PMI_SIZE=2 RLX_ENGINE=tcp": "RLX_ADDRESS",
		"RLX_RANK=0 RLX_SIZE=1 RLX_ENGINE=udp": "RLX_ENGINE",
	} {
		if _, err := launch.From(environment(variables)); !errors.Is(err, ir.ErrAttr) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", variables, err)
		}
	}
}

func environment(variables string) func(name string) string {
	values := map[string]string{}
	for _, v := range strings.Fields(variables) {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}

// processVariable makes a process of the test a rank of [TestProcessesAreStarted]; its value is the
// rank's task.
const processVariable = "RLX_TEST_LAUNCHED"

// TestMain is the program that the tests start.
func TestMain(m *testing.M) {
	r, err := launch.Environment()
	switch os.Getenv(processVariable) {
	case "":
		os.Exit(m.Run())
	case "fail":
		if r.Rank == 1 {
			os.Exit(7)
		}
		time.Sleep(200 * time.Millisecond)
	}
	fmt.Printf("%d of %d, %s, %v\nno end", r.LocalRank, r.LocalSize, r.Launcher, err)
	os.Exit(0)
}

// TestProcessesAreStarted as the ranks of a run, and their output lines do not mix.
func TestProcessesAreStarted(t *testing.T) {
	t.Setenv(processVariable, "say")
	var out strings.Builder
	if err := launch.Start(t.Context(), 3, []string{os.Args[0]}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(lines)
	want := []string{
		"[0] 0 of 3, rlx, <nil>", "[0] no end", "[1] 1 of 3, rlx, <nil>", "[1] no end", "[2] 2 of 3, rlx, <nil>", "[2] no end",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the output is %q", lines)
	}
}

// TestTheFirstFailureIsReported, with the exit code of the process.
func TestTheFirstFailureIsReported(t *testing.T) {
	t.Setenv(processVariable, "fail")
	err := launch.Start(t.Context(), 3, []string{os.Args[0]}, io.Discard, io.Discard)
	var e *exec.ExitError
	if !errors.As(err, &e) || e.ExitCode() != 7 || !strings.Contains(err.Error(), "rank 1") {
		t.Errorf("the error is %v", err)
	}
	if err := launch.Start(t.Context(), 0, []string{os.Args[0]}, io.Discard, io.Discard); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("no processes: %v", err)
	}
}
