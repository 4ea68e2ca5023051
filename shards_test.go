package rlx_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/parallel"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/collective"
	"github.com/rlx-go/rlx/native/safetensors"
)

// shardedTrainer returns a rank's trainer of maskedLoss, whose states and parameters are divided.
func shardedTrainer(t *testing.T, g *collective.Group) (*rlx.Trainer, error) {
	s, err := rlx.Open("cpu")
	if err != nil {
		return nil, err
	}
	return s.Train(t.Context(), maskedLoss(t, ir.F32, parallelRows/g.Size()), rlx.Training{
		Rate: 0.03, Parallel: &rlx.DataParallel{Group: g, Weight: "count", ShardParams: true},
	})
}

// shardedSteps makes steps [from, to) on a rank's rows.
func shardedSteps(t *testing.T, tr *rlx.Trainer, g *collective.Group, from, to int) error {
	part := parallelRows / g.Size()
	for step := from; step < to; step++ {
		if err := tr.Step(t.Context(), parallelBatch(ir.F32, step, g.Rank()*part, (g.Rank()+1)*part)); err != nil {
			return err
		}
	}
	return nil
}

// TestShardsAreLoadedByAnotherNumberOfRanks: saved by 4 ranks, loaded and saved by 2, loaded by 1. The
// values are the same, bit for bit, and training goes on as on one rank throughout. The folders have names that are patterns.
func TestShardsAreLoadedByAnotherNumberOfRanks(t *testing.T) {
	dir := t.TempDir()
	name := func(n int) string { return filepath.Join(dir, fmt.Sprintf("[%d]", n)) }
	var lock sync.Mutex
	saved := map[int]map[string]rlx.Tensor{}
	var losses []float32
	before := 0
	for i, n := range []int{4, 2, 1} {
		ranksOf(t, n, func(g *collective.Group) error {
			tr, err := shardedTrainer(t, g)
			if err != nil {
				return err
			}
			if before > 0 {
				if err := tr.LoadShards(t.Context(), name(before)); err != nil {
					return err
				}
				got, err := tr.Whole(t.Context())
				if err != nil || !reflect.DeepEqual(got, saved[before]) {
					return fmt.Errorf("%d ranks load other values than %d have saved: %v", n, before, err)
				}
			}
			if err := shardedSteps(t, tr, g, 5*i, 5*i+5); err != nil {
				return err
			}
			wait, err := tr.SaveShards(t.Context(), name(n))
			if err != nil {
				return err
			}
			whole, err := tr.Whole(t.Context())
			if err != nil {
				return err
			}
			lock.Lock()
			saved[n] = whole
			lock.Unlock()
			if n == 1 {
				losses, err = tr.Losses(t.Context())
			}
			return errors.Join(err, wait())
		})
		before = n
	}
	alone := collective.Local(1, collective.Options{})[0]
	tr, err := shardedTrainer(t, alone)
	if err != nil {
		t.Fatal(err)
	}
	if err := shardedSteps(t, tr, alone, 0, 15); err != nil {
		t.Fatal(err)
	}
	want, err := tr.Losses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range losses {
		if at := len(want) - len(losses) + i; !(x-want[at] <= 1e-6 && want[at]-x <= 1e-6) {
			t.Errorf("loss %d is %v, on one rank %v", at, x, want[at])
		}
	}
	if len(losses) == 0 {
		t.Error("no losses")
	}
	checkWhole(t, saved[4])
	checkDamage(t, tr, name(4))
}

// TestShardsOfAMeshAreLoadedByOneRank: the parts of a matrix along two axes, and its copies.
func TestShardsOfAMeshAreLoadedByOneRank(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(4, 8)...)
		for _, name := range []string{"a", "b", "c"} {
			x = ops.Tanh(b, ops.MatMul(b, x, b.Param(name, ir.F32, ir.Dims(8, 8)...)))
		}
		b.Output("loss", ops.Mean(b, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	var lock sync.Mutex
	var evaluated []float32 // by each rank of four, and then by one
	train := func(p *rlx.Partition) (*rlx.Trainer, error) {
		s, err := rlx.Open("cpu")
		if err != nil {
			return nil, err
		}
		tr, err := s.Train(t.Context(), loss, rlx.Training{Partition: p, Eval: []ir.Entry{{Name: "eval", Graph: loss}}})
		if err != nil {
			return nil, err
		}
		ones := slices.Repeat([]float32{1}, 32)
		x, err := tr.Part("x", native.Float32s(ones, 4, 8))
		if err != nil {
			return nil, err
		}
		if err := tr.Step(t.Context(), rlx.Inputs{"x": x}); err != nil {
			return nil, err
		}
		out, err := tr.Program().Call(t.Context(), "eval", rlx.Inputs{"x": x})
		if err != nil {
			return nil, err
		}
		loss, err := out["loss"].Float32s()
		lock.Lock()
		defer lock.Unlock()
		evaluated = append(evaluated, loss...)
		return tr, err
	}
	dir := t.TempDir()
	var want map[string]rlx.Tensor
	ranksOf(t, 4, func(g *collective.Group) error {
		mesh, err := collective.NewMesh(t.Context(), g, collective.Axis{Name: "data", Size: 2}, collective.Axis{Name: "model", Size: 2})
		if err != nil {
			return err
		}
		tr, err := train(&rlx.Partition{Mesh: mesh, States: "data", Params: true, Shardings: []parallel.Sharding{
			{Pattern: "a", Axes: []string{"", "model"}}, {Pattern: "b", Axes: []string{"model"}}, {Pattern: "x", Axes: []string{"data"}},
		}})
		if err != nil {
			return err
		}
		wait, err := tr.SaveShards(t.Context(), dir)
		if err != nil {
			return err
		}
		whole, err := tr.Whole(t.Context())
		if g.Rank() == 0 {
			want = whole
		}
		return errors.Join(err, wait())
	})
	tr, err := train(nil)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := tr.Whole(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := alikeValues(want, alone); err != nil {
		t.Error(err)
	}
	for _, x := range evaluated {
		if last := evaluated[4]; !(x-last <= 1e-6 && last-x <= 1e-6) {
			t.Errorf("ranks evaluate %v, the last one alone", evaluated)
		}
	}
	if err := tr.LoadShards(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	got, err := tr.Whole(t.Context())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the values differ: %v", err)
	}
	if _, err := tr.Part("x", native.Float32(1)); err != nil {
		t.Errorf("what is not divided: %v", err)
	}
}

// TestEntriesOfEvalReadPartsOfParameters: the loss before the first step is that of one rank with the same
// rows, up to the order of sums.
func TestEntriesOfEvalReadPartsOfParameters(t *testing.T) {
	loss := func(rows int) *ir.Graph { return maskedLoss(t, ir.F32, rows) }
	evaluate := func(o rlx.Training, batch rlx.Inputs, rows int) (float64, error) {
		s, err := rlx.Open("cpu")
		if err != nil {
			return 0, err
		}
		o.Eval = []ir.Entry{{Name: "eval", Graph: loss(rows)}}
		tr, err := s.Train(t.Context(), loss(rows), o)
		if err != nil {
			return 0, err
		}
		out, err := tr.Program().Call(t.Context(), "eval", batch)
		if err != nil {
			return 0, err
		}
		loss, err := out["loss"].Array()
		if err != nil {
			return 0, err
		}
		return loss.F[0], nil
	}
	half := func(rank int) rlx.Inputs {
		return parallelBatch(ir.F32, 0, rank*parallelRows/2, (rank+1)*parallelRows/2)
	}
	ranksOf(t, 2, func(g *collective.Group) error {
		want, err := evaluate(rlx.Training{}, half(g.Rank()), parallelRows/2)
		if err != nil {
			return err
		}
		got, err := evaluate(rlx.Training{Parallel: &rlx.DataParallel{Group: g, ShardParams: true}}, half(g.Rank()), parallelRows/2)
		if err == nil && !(math.Abs(got-want) <= 1e-6*want) {
			err = fmt.Errorf("the loss is %v, not %v", got, want)
		}
		return err
	})
}

// checkWhole loads whole values on two ranks.
func checkWhole(t *testing.T, values map[string]rlx.Tensor) {
	t.Helper()
	ranksOf(t, 2, func(g *collective.Group) error {
		tr, err := shardedTrainer(t, g)
		if err != nil {
			return err
		}
		wrong := maps.Clone(values)
		wrong["w1"] = native.Zeros(ir.F32, 3)
		if err := tr.LoadWhole(t.Context(), wrong); !errors.Is(err, rlx.ErrCheckpoint) || !errors.Is(err, ir.ErrShape) {
			return fmt.Errorf("a value of another shape: %w", err)
		}
		if err := tr.LoadWhole(t.Context(), values); err != nil {
			return err
		}
		got, err := tr.Whole(t.Context())
		if err == nil && !reflect.DeepEqual(got, values) {
			err = errors.New("the values differ")
		}
		return err
	})
}

// TestTrainingGoesOnDuringASave: the steps after a save are made before its files are written, and the files
// have the values before these steps.
func TestTrainingGoesOnDuringASave(t *testing.T) {
	written := make(chan struct{})
	defer rlx.HoldSaves(written)()
	write := sync.OnceFunc(func() { close(written) })
	late := time.AfterFunc(10*time.Second, write) // a save that waits for its files fails below
	defer late.Stop()
	dir := t.TempDir()
	var trained sync.WaitGroup
	trained.Add(2)
	go func() {
		trained.Wait()
		write()
	}()
	ranksOf(t, 2, func(g *collective.Group) error {
		steps := sync.OnceFunc(trained.Done)
		defer steps()
		tr, err := shardedTrainer(t, g)
		if err != nil {
			return err
		}
		if err := shardedSteps(t, tr, g, 0, 3); err != nil {
			return err
		}
		want, err := tr.Whole(t.Context())
		if err != nil {
			return err
		}
		wait, err := tr.SaveShards(t.Context(), dir)
		if err != nil {
			return err
		}
		if err := shardedSteps(t, tr, g, 3, 6); err != nil {
			return err
		}
		after, err := tr.Whole(t.Context())
		if err != nil || reflect.DeepEqual(after, want) {
			return fmt.Errorf("the steps change nothing: %w", err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			return fmt.Errorf("%d files are written before the steps, %w", len(files), err)
		}
		steps()
		if err := errors.Join(wait(), g.Barrier(t.Context()), tr.LoadShards(t.Context(), dir)); err != nil {
			return err
		}
		got, err := tr.Whole(t.Context())
		if err != nil || !reflect.DeepEqual(got, want) {
			return fmt.Errorf("the files have other values than those of the save: %w", err)
		}
		return nil
	})
}

// TestASaveAfterAFailedStepFails: the values are those of the step before, and a save would claim the number of
// the one that failed.
func TestASaveAfterAFailedStepFails(t *testing.T) {
	dir := t.TempDir()
	ranksOf(t, 2, func(g *collective.Group) error {
		tr, err := shardedTrainer(t, g)
		if err != nil {
			return err
		}
		if err := shardedSteps(t, tr, g, 0, 1); err != nil {
			return err
		}
		wait, err := tr.SaveShards(t.Context(), filepath.Join(dir, "1"))
		if err != nil {
			return err
		}
		if err := errors.Join(wait(), g.Barrier(t.Context())); err != nil {
			return err
		}
		if g.Rank() == 1 {
			g.Abort(errors.New("out of paper"))
			return nil
		}
		if err = shardedSteps(t, tr, g, 1, 2); err == nil {
			_, err = tr.SaveShards(t.Context(), filepath.Join(dir, "2"))
		}
		if !errors.Is(err, collective.ErrAborted) {
			return fmt.Errorf("a save after a failed step: %w", err)
		}
		return nil
	})
	if err := os.Mkdir(filepath.Join(dir, "3"), 0o777); err != nil {
		t.Fatal(err)
	}
	if latest, err := rlx.LatestShards(dir); err != nil || filepath.Base(latest) != "1" {
		t.Errorf("the latest complete save is %q, %v", latest, err)
	}
	if none, err := rlx.LatestShards(filepath.Join(dir, "none")); err != nil || none != "" {
		t.Errorf("the latest save of no directory is %q, %v", none, err)
	}
}

// checkDamage changes a bit of a file of a save and removes files, and loads it.
func checkDamage(t *testing.T, tr *rlx.Trainer, dir string) {
	t.Helper()
	for _, rank := range []int{1, 3} {
		name := filepath.Join(dir, fmt.Sprintf("rank-%05d-of-00004.safetensors", rank))
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(file)
		changed[len(file)-1] ^= 1
		if err := os.WriteFile(name, changed, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := tr.LoadShards(t.Context(), dir); !errors.Is(err, safetensors.ErrDamaged) {
			t.Errorf("with another bit in the file of rank %d: %v", rank, err)
		}
		if err := os.WriteFile(name, file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, rank := range []int{2, 0} {
		if err := os.Remove(filepath.Join(dir, fmt.Sprintf("rank-%05d-of-00004.safetensors", rank))); err != nil {
			t.Fatal(err)
		}
		if err := tr.LoadShards(t.Context(), dir); !errors.Is(err, safetensors.ErrDamaged) {
			t.Errorf("without the file of rank %d: %v", rank, err)
		}
	}
}
