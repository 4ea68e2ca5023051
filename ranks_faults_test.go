//go:build unix

package rlx_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/collective/launch"
	"github.com/rlx-go/rlx/native/collective/tcp"
)

// guiltyVariable has the way, the fault, the address and the folder of a process that fails, with a space between.
const guiltyVariable = "RLX_TEST_GUILTY"

// A run of two ranks fails in a step after the last of some checkpoints.
const (
	faultDeadline = 3 * time.Second
	faultStep     = 7
	faultSteps    = 12
	saveEach      = 3
)

// waysToTrain are the ways to train with several ranks.
var waysToTrain = map[string]func(g *collective.Group, mesh *collective.Mesh) rlx.Training{
	"data": func(g *collective.Group, _ *collective.Mesh) rlx.Training {
		return dataTraining(rlx.DataParallel{Group: g})
	},
	"zero-2": func(g *collective.Group, _ *collective.Mesh) rlx.Training {
		return dataTraining(rlx.DataParallel{Group: g, Shard: true})
	},
	"zero-3": func(g *collective.Group, _ *collective.Mesh) rlx.Training {
		return dataTraining(rlx.DataParallel{Group: g, ShardParams: true})
	},
	"partition": func(_ *collective.Group, mesh *collective.Mesh) rlx.Training {
		p := &rlx.Partition{Mesh: mesh, States: "data", Params: true}
		for _, name := range []string{"x", "y", "mask"} {
			p.Shardings = append(p.Shardings, parallel.Sharding{Pattern: name, Axes: []string{"data"}})
		}
		return rlx.Training{Partition: p}
	},
}

func dataTraining(p rlx.DataParallel) rlx.Training {
	p.Weight = "count"
	return rlx.Training{Parallel: &p}
}

// trainThrough loads the checkpoint of a folder, if it has one, trains to the last step, and saves every few
// steps. A rank with a fault has it before a step.
func trainThrough(t *testing.T, g *collective.Group, way, fault, dir string) (*rlx.Trainer, error) {
	ctx := t.Context()
	mesh, err := collective.NewMesh(ctx, g, collective.Axis{Name: "data", Size: g.Size()})
	if err != nil {
		return nil, err
	}
	s, err := rlx.Open("cpu")
	if err != nil {
		return nil, err
	}
	o := waysToTrain[way](g, mesh)
	o.Rate = 0.03
	if fault == "plan" {
		o.Options = optim.Options{ClipNorm: 1}
	}
	part := parallelRows / g.Size()
	rows := part
	if o.Partition != nil {
		rows = parallelRows
	}
	tr, err := s.Train(ctx, maskedLoss(t, ir.F32, rows), o)
	if err != nil {
		return nil, err
	}
	if saved, err := rlx.LatestShards(dir); err != nil || saved != "" {
		if err := errors.Join(err, tr.LoadShards(ctx, saved)); err != nil {
			return nil, err
		}
	}
	for step := tr.Steps(); step < faultSteps; step++ {
		if step == faultStep {
			suffer(fault)
		}
		if err := tr.Step(ctx, parallelBatch(ir.F32, step, g.Rank()*part, (g.Rank()+1)*part)); err != nil {
			return tr, err
		}
		if step%saveEach == saveEach-1 {
			wait, err := tr.SaveShards(ctx, filepath.Join(dir, fmt.Sprint(tr.Steps())))
			if err != nil {
				return tr, err
			}
			if err := wait(); err != nil {
				return tr, err
			}
		}
	}
	return tr, nil
}

// suffer has the fault of a process or a rank.
func suffer(fault string) {
	switch fault {
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "stopped":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		time.Sleep(time.Minute) // the signal takes effect a little later
	case "late":
		time.Sleep(faultDeadline + faultDeadline/2)
	}
}

// rankTrains is a rank of a run of two. It returns the error of the run.
func rankTrains(t *testing.T, rank int, address, way, fault, dir string) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := tcp.Join(ctx, launch.Run{Rank: rank, Size: 2, Address: address}, collective.Options{Deadline: faultDeadline})
	if err != nil {
		return err
	}
	_, err = trainThrough(t, g, way, fault, dir)
	return errors.Join(err, g.Close())
}

// TestTrainingSurvivesItsRanks: in every way to train, a rank is killed, stopped, late or has another plan. The
// other ends within its deadline by a typed error, and one rank alone goes on from the last checkpoint
// as if nothing had happened.
func TestTrainingSurvivesItsRanks(t *testing.T) {
	if job := strings.Fields(os.Getenv(guiltyVariable)); len(job) == 4 {
		t.Log(rankTrains(t, 1, job[2], job[0], job[1], job[3]))
		return
	}
	alone, err := trainThrough(t, collective.Local(1, collective.Options{})[0], "data", "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want, err := alone.Losses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup // not subtests, of which few run at a time: most of a deadline is waiting
	for way := range waysToTrain {
		for fault, kind := range map[string]error{
			"killed": collective.ErrPeer, "stopped": collective.ErrDeadline, "late": collective.ErrDeadline, "plan": collective.ErrMismatch,
		} {
			address, dir := freeAddress(t), t.TempDir()
			all.Go(func() {
				if err := survives(t, way, fault, address, dir, kind, want); err != nil {
					t.Errorf("%s, %s: %v", way, fault, err)
				}
			})
		}
	}
	all.Wait()
}

// freePorts counts the ports that freeAddress has tried, from a random one on, so that it returns none twice.
var freePorts atomic.Uint32

func init() { freePorts.Store(rand.Uint32()) }

// freeAddress returns an address that none has, at a port that systems do not give to connections.
func freeAddress(t *testing.T) string {
	const first, ports = 10000, 20000
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+freePorts.Add(1)%ports))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

// restarts returns an error if two ranks that go on from a checkpoint have other losses, in any bit, than
// two that were not interrupted.
func restarts(t *testing.T, way, saved string) error {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(saved)); err != nil {
		return err
	}
	got, err := pairTrains(t, way, dir)
	if err != nil {
		return err
	}
	want, err := pairTrains(t, way, t.TempDir())
	if err != nil {
		return err
	}
	if n := len(want) - len(got); n <= 0 || !slices.Equal(got, want[n:]) {
		return fmt.Errorf("two ranks that go on have the losses %v, without the fault %v", got, want)
	}
	return nil
}

// pairTrains returns the losses of two ranks of this process.
func pairTrains(t *testing.T, way, dir string) ([]float32, error) {
	var losses []float32
	groups, errs := collective.Local(2, collective.Options{Deadline: time.Minute}), make([]error, 2)
	var all sync.WaitGroup
	for rank, g := range groups {
		all.Go(func() {
			tr, err := trainThrough(t, g, way, "", dir)
			if err == nil && rank == 0 {
				losses, err = tr.Losses(t.Context())
			}
			if errs[rank] = err; err != nil {
				g.Abort(err)
			}
		})
	}
	all.Wait()
	return losses, errors.Join(errs...)
}

// survives returns what is wrong with a run in which rank 1 has a fault.
func survives(t *testing.T, way, fault, address, dir string, kind error, want []float32) error {
	if fault == "killed" || fault == "stopped" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTrainingSurvivesItsRanks$")
		c.Env = append(os.Environ(), guiltyVariable+"="+strings.Join([]string{way, fault, address, dir}, " "))
		if err := c.Start(); err != nil {
			return err
		}
		defer func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		}()
	} else {
		ended := make(chan error, 1)
		go func() { ended <- rankTrains(t, 1, address, way, fault, dir) }()
		defer func() { <-ended }()
	}
	err := rankTrains(t, 0, address, way, "", dir)
	var e *collective.Error
	if !errors.As(err, &e) || !errors.Is(err, kind) || e.Peer != 1 {
		return fmt.Errorf("rank 0 ends with %w, which must be of kind %v and name rank 1", err, kind)
	}
	if fault == "plan" {
		return nil
	}
	// A rank that is lost after a step may have results of it that another still waits for.
	if !strings.Contains(e.Call, fmt.Sprintf("step %d", faultStep+1)) && !strings.Contains(e.Call, fmt.Sprintf("step %d", faultStep)) {
		return fmt.Errorf("%w names another step than %d and %d", err, faultStep, faultStep+1)
	}
	if fault == "killed" {
		if err := restarts(t, way, dir); err != nil {
			return err
		}
	}
	tr, err := trainThrough(t, collective.Local(1, collective.Options{})[0], way, "", dir)
	if err != nil {
		return err
	}
	got, err := tr.Losses(t.Context())
	if err != nil {
		return err
	}
	if len(got) < faultSteps-faultStep/saveEach*saveEach {
		return fmt.Errorf("the run that goes on has the losses %v", got)
	}
	for i, x := range got {
		if w := want[len(want)-len(got)+i]; !(x-w <= 1e-6 && w-x <= 1e-6) {
			return fmt.Errorf("loss %d from the end is %v, without the fault %v", len(got)-i, x, w)
		}
	}
	return nil
}
