package rlx_test

import (
	"errors"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// steep is the loss Σ x·w. For x of 3·10³⁸ it is finite where w is 0.1, and its gradient is not. The frozen mask is −∞.
func steep(t *testing.T) *ir.Graph {
	t.Helper()
	return must(ir.Build("steep", func(b *ir.Builder) {
		w, x := b.Param("w", ir.F32), b.Input("x", ir.F32, ir.N(2))
		loss := ops.ReduceSum(b, ops.Mul(b, x, w))
		b.Output("loss", ops.Max(b, loss, b.Param("mask", ir.F32)))
	}))(t)
}

// slope returns a batch.
func slope(x float32) rlx.Inputs { return rlx.Inputs{"x": rlx.Float32s([]float32{x, x})} }

// slopes yields 12 batches, of which batch 7 is too steep.
func slopes(int) iter.Seq2[rlx.Inputs, error] {
	return func(yield func(rlx.Inputs, error) bool) {
		for i := range 12 {
			x := float32(1)
			if i == 7 {
				x = 3e38
			}
			if !yield(slope(x), nil) {
				return
			}
		}
	}
}

// steepTrainer returns a trainer of [steep], with an entry whose score grows by 1, whatever w is.
func steepTrainer(t *testing.T, stop bool) *rlx.Trainer {
	t.Helper()
	score := must(ir.Build("score", func(b *ir.Builder) {
		n := b.State("n", ir.F32)
		next := ops.Add(b, n, ops.OnesLike(b, n))
		b.SetState("n", next)
		b.Output("score", next)
	}))(t)
	tr := must(session(t).Train(ctx, steep(t), rlx.Training{
		Optimizer: optim.SGD{}, Options: optim.Options{Frozen: []string{"mask"}}, StopOnNaN: stop,
		Init: map[string]rlx.Initializer{"w": rlx.Constant(0.1)}, Eval: []ir.Entry{{Name: "score", Graph: score}},
	}))(t)
	if err := tr.Program().Set(ctx, "mask", rlx.Float32(float32(math.Inf(-1)))); err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestInfiniteGradientReachesNoCheckpoint: step 7 has a finite loss and sets w to −∞. Neither the checkpoints before it nor the
// best one are replaced, with and without StopOnNaN.
func TestInfiniteGradientReachesNoCheckpoint(t *testing.T) {
	for _, stop := range []bool{false, true} {
		folder, progress := t.TempDir(), &strings.Builder{}
		loop := rlx.Loop{
			Data: slopes, Steps: 12, Every: 2, Progress: progress,
			Eval: rlx.Evaluation{Entry: "score", Data: func() iter.Seq2[rlx.Inputs, error] {
				return func(yield func(rlx.Inputs, error) bool) { yield(nil, nil) }
			}},
			Stop: rlx.EarlyStop{Metric: "score", Larger: true}, Save: rlx.Checkpoints{Folder: folder, Last: 2, Resume: true},
		}
		tr := steepTrainer(t, stop)
		last, err := rlx.Fit(ctx, tr, loop)
		if stop {
			want := `step 7: the training diverged: parameter "w" is not finite after it`
			_, failed := tr.Params(ctx)
			for _, err := range []error{err, failed, tr.Save(ctx, io.Discard)} {
				if !errors.Is(err, rlx.ErrDiverged) || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want one with %q", err, want)
				}
			}
		} else if err != nil || last.Best || !strings.Contains(progress.String(), `step 8: no checkpoint is written: parameter "w" is not finite`) {
			t.Errorf("%+v, %v\n%s", last, err, progress)
		}
		var names []string
		for _, f := range must(filepath.Glob(filepath.Join(folder, "*")))(t) {
			names = append(names, filepath.Base(f))
		}
		if want := []string{"best.safetensors", "best.txt", "step-00000004.safetensors", "step-00000006.safetensors"}; !slices.Equal(names, want) {
			t.Errorf("StopOnNaN %t: files %q, want %q", stop, names, want)
		}
		if best := string(must(os.ReadFile(filepath.Join(folder, "best.txt")))(t)); best != "3\n" {
			t.Errorf("StopOnNaN %t: the best score is %q, not that of step 6", stop, best)
		}
		again := steepTrainer(t, stop)
		loop.Steps = 6
		if last, err := rlx.Fit(ctx, again, loop); err != nil || last.Step != 6 || !(params(t, again)["w"][0] < 0.1) {
			t.Errorf("StopOnNaN %t: it resumes at %+v, %v", stop, last, err)
		}
	}
}

func TestJointTrainingSavesNoInfinity(t *testing.T) {
	joint := must(session(t).TrainJointly(ctx, rlx.JointTraining{StopOnNaN: true, Init: map[string]rlx.Initializer{"mask": rlx.Constant(-1)}, Objectives: []rlx.Objective{
		{Name: "one", Loss: steep(t), Optimizer: optim.SGD{}, Options: optim.Options{Frozen: []string{"mask"}}},
	}}))(t)
	if err := joint.Trainer("one").Step(ctx, slope(3e38)); err != nil {
		t.Fatal(err)
	}
	if err := joint.Save(ctx, io.Discard); !errors.Is(err, rlx.ErrDiverged) || !strings.HasPrefix(err.Error(), `objective "one": step 0: `) {
		t.Errorf("saved with %v", err)
	}
}
