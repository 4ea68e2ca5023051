//go:build cgo && linux && (amd64 || arm64)

package mpi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/mpi"
)

// jobVariable has the job of a process that mpiexec starts.
const jobVariable = "RLX_TEST_MPI"

const ranks = 4

var jobs = map[string]func(ctx context.Context, g *collective.Group) error{"calls": calls, "trains": trains, "late": fails, "other": fails, "aborts": fails}

// TestRank is one process of a job.
func TestRank(t *testing.T) {
	job := os.Getenv(jobVariable)
	if job == "" {
		return
	}
	g, err := mpi.Join(t.Context(), collective.Options{Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = jobs[job](t.Context(), g)
	var e *collective.Error
	fmt.Printf("rank %d ended, typed %t: %v\n", g.Rank(), errors.As(err, &e), strings.ReplaceAll(fmt.Sprint(err), "\n", " "))
	if err == nil {
		if _, again := mpi.Join(t.Context(), collective.Options{}); !errors.Is(again, collective.ErrJoin) {
			t.Errorf("a second Join: %v", again)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		time.Sleep(1500 * time.Millisecond) // mpiexec ends all processes with the first
	}
}

// start runs a job by mpiexec and returns what the ranks have written.
func start(t *testing.T, job string) string {
	t.Setenv(jobVariable, job)
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
	t.Setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
	t.Setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
	t.Setenv("OMPI_MCA_rmaps_base_oversubscribe", "1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "mpiexec", "-n", fmt.Sprint(ranks), os.Args[0], "-test.run=^TestRank$").CombinedOutput()
	if err != nil && job == "calls" {
		t.Errorf("%v: %s", err, out)
	}
	return string(out)
}

// TestMPI runs jobs of four ranks.
func TestMPI(t *testing.T) {
	_, err := exec.LookPath("mpiexec")
	backendtest.Require(t, "mpi", errors.Join(err, mpi.Available()))
	for job, want := range map[string]struct {
		ranks []int
		texts []string
	}{
		"calls":  {[]int{0, 1, 2, 3}, []string{"typed false: <nil>"}},
		"trains": {[]int{0, 1, 2, 3}, []string{"typed false: <nil>"}},
		"late":   {[]int{0, 1, 3}, []string{"typed true", "all_reduce sum f32[1000]", collective.ErrDeadline.Error()}},
		"other":  {[]int{0, 1, 3}, []string{"typed true", collective.ErrMismatch.Error(), "rank 2"}},
		"aborts": {[]int{0, 1, 3}, []string{"typed true", collective.ErrAborted.Error(), "rank 2", "out of paper"}},
	} {
		t.Run(job, func(t *testing.T) {
			out := start(t, job)
			for _, rank := range want.ranks {
				at := strings.Index(out, fmt.Sprintf("rank %d ended", rank))
				if at < 0 {
					t.Fatalf("rank %d has not ended: %s", rank, out)
				}
				line, _, _ := strings.Cut(out[at:], "\n")
				for _, text := range want.texts {
					// A rank may learn of a fault by another that has noticed it first.
					if !strings.Contains(line, text) && !strings.Contains(line, collective.ErrAborted.Error()) {
						t.Errorf("%s; it must have %q", line, text)
					}
				}
			}
			if !strings.Contains(out, want.texts[len(want.texts)-1]) {
				t.Errorf("no rank has %q: %s", want.texts[len(want.texts)-1], out)
			}
		})
	}
}

// callsOf returns the calls of n ranks, of all ops and of some element types and sizes.
func callsOf(n int) (all [][]*collective.Call) {
	random := rand.New(rand.NewPCG(3, 4))
	for op := range collective.Broadcast + 1 {
		for _, d := range []ir.DType{ir.F32, ir.BF16, ir.I8, ir.F64} {
			for _, length := range []int{0, n, 3 * n, 10240 * n} {
				var same []*collective.Call
				for range n {
					c := &collective.Call{Op: op, DType: d, Send: make([]byte, length*d.Size()), Root: 1, Pairs: [][2]int{{0, 2}, {2, 0}, {1, 1}}}
					size := len(c.Send)
					switch op {
					case collective.AllGather:
						size *= n
					case collective.ReduceScatter:
						size /= n
					}
					if op <= collective.ReduceScatter {
						c.Reduction = collective.Reduction(length % 3)
					}
					c.Recv = make([]byte, size)
					for i := range c.Send {
						c.Send[i] = byte(random.Uint32())
					}
					same = append(same, c)
				}
				all = append(all, same)
			}
		}
	}
	return all
}

// calls makes all calls, of the whole group and of two halves, and compares them with their reference.
func calls(ctx context.Context, g *collective.Group) error {
	half, err := g.Split(ctx, g.Rank()%2, -g.Rank())
	if err != nil {
		return err
	}
	for _, group := range []*collective.Group{g, half} {
		for _, same := range callsOf(group.Size()) {
			c := same[group.Rank()]
			if group == half {
				c.Pairs = [][2]int{{0, 1}}
				for _, other := range same {
					other.Pairs = c.Pairs
				}
			}
			if err := group.Do(ctx, c); err != nil {
				return err
			}
			got := bytes.Clone(c.Recv)
			collective.Reference(same)
			if !bytes.Equal(got, c.Recv) {
				return fmt.Errorf("%s of %d ranks differs from the reference", c, group.Size())
			}
		}
	}
	return nil
}

// fails makes collectives until one fails, for which rank 2 has a fault.
func fails(ctx context.Context, g *collective.Group) error {
	x, y := make([]byte, 4000), make([]byte, 4000)
	for step := range 100 {
		if step == 5 && g.Rank() == 2 {
			switch os.Getenv(jobVariable) {
			case "late":
				time.Sleep(2 * time.Second)
			case "other":
				x, y = x[:400], y[:400]
			case "aborts":
				g.Abort(errors.New("out of paper"))
			}
		}
		if err := g.AllReduce(ctx, ir.F32, collective.Sum, x, y); err != nil {
			if later := g.Barrier(ctx); later == nil {
				return errors.New("a call after a failure")
			}
			return err
		}
	}
	return errors.New("no failure")
}
