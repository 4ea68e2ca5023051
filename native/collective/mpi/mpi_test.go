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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/mpi"
)

// jobVariable has the job of a process that mpiexec starts, and dirVariable the folder of its checkpoints.
const (
	jobVariable = "RLX_TEST_MPI"
	dirVariable = "RLX_TEST_MPI_DIR"
)

const (
	ranks    = 4
	guilty   = 2 // the rank that has a fault
	deadline = 2 * time.Second
)

var jobs = map[string]func(ctx context.Context, g *collective.Group) error{
	"calls": calls, "trains": trains, "late": fails, "stopped": fails, "other": fails, "aborts": fails, "plan": trains, "killed": trains,
}

// TestRank is one process of a job.
func TestRank(t *testing.T) {
	job := os.Getenv(jobVariable)
	if job == "" {
		return
	}
	s, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Group(t.Context(), collective.Options{Deadline: deadline})
	if err != nil {
		t.Fatal(err)
	}
	if g.Engine() != "mpi" {
		t.Fatalf("the engine under mpiexec is %q", g.Engine())
	}
	err = jobs[job](t.Context(), g)
	var e *collective.Error
	fmt.Printf("rank %d ended, typed %t: %v\n", g.Rank(), errors.As(err, &e), strings.ReplaceAll(fmt.Sprint(err), "\n", " "))
	if err != nil {
		time.Sleep(deadline + deadline/2) // mpiexec ends all processes with the first
		return
	}
	if _, again := mpi.Join(t.Context(), collective.Options{}); !errors.Is(again, collective.ErrJoin) {
		t.Errorf("a second Join: %v", again)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// start runs a job by mpiexec and returns what the ranks have written.
func start(t *testing.T, job, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := []string{"-n", fmt.Sprint(ranks), os.Args[0], "-test.run=^TestRank$"}
	if job == "killed" {
		// mpiexec kills all ranks when a process of it is killed. It does not see a child of one.
		args = append([]string{"-n", fmt.Sprint(ranks), "sh", "-c", `"$@" || sleep 3`, "sh"}, args[2:]...)
	}
	c := exec.CommandContext(ctx, "mpiexec", args...)
	c.Env = append(
		os.Environ(), jobVariable+"="+job, dirVariable+"="+dir, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe=1",
	)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestMPI runs jobs of four ranks, at the same time, as most of them wait.
func TestMPI(t *testing.T) {
	_, err := exec.LookPath("mpiexec")
	backendtest.Require(t, "mpi", errors.Join(err, mpi.Available()))
	var all sync.WaitGroup
	for job, want := range map[string]error{
		"calls": nil, "late": collective.ErrDeadline, "stopped": collective.ErrDeadline, "other": collective.ErrMismatch,
		"plan": collective.ErrMismatch, "aborts": collective.ErrAborted,
	} {
		all.Go(func() {
			out, err := start(t, job, "")
			if err != nil && want == nil {
				t.Errorf("%s: %v", job, err)
			}
			check(t, job, out, want)
		})
	}
	all.Wait()
}

// TestMPITrainingGoesOn: a rank is killed between two checkpoints. The others end within the deadline, and four
// ranks that start again go on from the last checkpoint as if nothing had happened.
func TestMPITrainingGoesOn(t *testing.T) {
	_, err := exec.LookPath("mpiexec")
	backendtest.Require(t, "mpi", errors.Join(err, mpi.Available()))
	dir := t.TempDir()
	out, _ := start(t, "killed", dir)
	check(t, "killed", out, collective.ErrDeadline)
	out, err = start(t, "trains", dir)
	if err != nil {
		t.Error(err)
	}
	check(t, "trains", out, nil)
	if want := fmt.Sprintf("from step %d", killedStep/saveEach*saveEach); strings.Count(out, want) != ranks {
		t.Errorf("not every rank goes on %s: %s", want, out)
	}
}

// check reports the ranks that have not ended as they should: those without a fault by an error of a kind that
// names the collective, all of them without an error if it is nil.
func check(t *testing.T, job, out string, kind error) {
	found := false
	for rank := range ranks {
		at := strings.Index(out, fmt.Sprintf("rank %d ended", rank))
		if kind != nil && rank == guilty {
			continue
		}
		if at < 0 {
			t.Errorf("%s: rank %d has not ended: %s", job, rank, out)
			continue
		}
		line, _, _ := strings.Cut(out[at:], "\n")
		if kind == nil {
			if !strings.HasSuffix(line, "typed false: <nil>") {
				t.Errorf("%s: %s", job, line)
			}
			continue
		}
		found = found || strings.Contains(line, kind.Error())
		// A rank may learn of a fault by another that has noticed it first.
		if !strings.Contains(line, "typed true") || !strings.Contains(line, kind.Error()) && !strings.Contains(line, collective.ErrAborted.Error()) {
			t.Errorf("%s: %s; it must be %v", job, line, kind)
		}
	}
	if kind != nil && !found {
		t.Errorf("%s: no rank has %v: %s", job, kind, out)
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

// fails makes collectives until one fails, for which a rank has a fault.
func fails(ctx context.Context, g *collective.Group) error {
	x, y := make([]byte, 4000), make([]byte, 4000)
	for step := range 100 {
		if step == 5 && g.Rank() == guilty {
			switch os.Getenv(jobVariable) {
			case "late":
				time.Sleep(2 * deadline)
			case "stopped":
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				time.Sleep(time.Minute) // the signal takes effect a little later
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
