package rlx_test

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestFitSavesTheLastStep ends trainings at a step that is none of those between checkpoints: by epochs, at a report, and by a
// callback.
func TestFitSavesTheLastStep(t *testing.T) {
	stop := func(r rlx.Report) error {
		if r.Step == 5 {
			return rlx.ErrStop
		}
		return nil
	}
	for name, c := range map[string]struct {
		loop rlx.Loop
		last string
	}{
		"epochs":   {rlx.Loop{Epochs: 2, Every: 5}, "step-00000010.safetensors"},
		"steps":    {rlx.Loop{Steps: 7}, "step-00000007.safetensors"},
		"callback": {rlx.Loop{Steps: 20, Every: 5, Callbacks: []func(rlx.Report) error{stop}}, "step-00000005.safetensors"},
	} {
		l := c.loop
		l.Data, l.Save = rlx.Shuffled(points(), 4, 1), rlx.Checkpoints{Folder: t.TempDir(), Every: 4}
		if _, err := rlx.Fit(ctx, pointsTrainer(t, 0.01), l); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(l.Save.Folder, "*"))
		if err != nil || len(files) != 1 || filepath.Base(files[0]) != c.last {
			t.Errorf("%s: the folder has %q, %v; want %s alone", name, files, err, c.last)
		}
	}
}

// TestFitResumesFromAnyFolder has checkpoints in a folder whose name is a pattern of other names.
func TestFitResumesFromAnyFolder(t *testing.T) {
	l := rlx.Loop{
		Data: rlx.Shuffled(points(), 4, 1), Steps: 3, Every: 1,
		Save: rlx.Checkpoints{Folder: filepath.Join(t.TempDir(), "rate=[0.1]*"), Resume: true},
	}
	for _, l.Steps = range []int{3, 5} {
		trainer := pointsTrainer(t, 0.01)
		made := 0
		l.Callbacks = []func(rlx.Report) error{func(r rlx.Report) error { made++; return nil }}
		if _, err := rlx.Fit(ctx, trainer, l); err != nil {
			t.Fatal(err)
		}
		if want := map[int]int{3: 3, 5: 2}[l.Steps]; made != want {
			t.Errorf("%d steps make %d, want %d", l.Steps, made, want)
		}
	}
	if files, err := os.ReadDir(l.Save.Folder); err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v; want the last checkpoint", files, err)
	}
}

// TestCheckpointsOfAnotherTrainingAreRefused trains anew into a folder that has a later checkpoint: those of the new one were
// removed as the oldest ones, and the next resume took the other training's.
func TestCheckpointsOfAnotherTrainingAreRefused(t *testing.T) {
	l := rlx.Loop{Data: rlx.Shuffled(points(), 4, 1), Steps: 5, Save: rlx.Checkpoints{Folder: t.TempDir()}}
	first := pointsTrainer(t, 0.01)
	if _, err := rlx.Fit(ctx, first, l); err != nil {
		t.Fatal(err)
	}
	l.Steps = 3
	if _, err := rlx.Fit(ctx, pointsTrainer(t, 0.01), l); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Join(l.Save.Folder, "step-00000005.safetensors")); err != nil {
		t.Error(err)
	}
	l.Steps = 7
	if _, err := rlx.Fit(ctx, first, l); err != nil {
		t.Errorf("a trainer that did the steps goes on: %v", err)
	}
}

// TestEvaluationsCountBatchesByTheirWeight evaluates batches of 3 and of 0 examples, the mean over which is NaN, with outputs of
// several types.
func TestEvaluationsCountBatchesByTheirWeight(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		b.Output("loss", ops.Square(b, ops.Add(b, b.Param("w", ir.F32), b.Input("x", ir.F32))))
	})
	if err != nil {
		t.Fatal(err)
	}
	eval, err := ir.Build("eval", func(b *ir.Builder) {
		x, mask := b.Input("x", ir.F32, ir.N(4)), b.Input("mask", ir.F32, ir.N(4))
		count := ops.ReduceSum(b, mask)
		mean := ops.Div(b, ops.ReduceSum(b, ops.Mul(b, x, mask)), count)
		b.Output("count", ops.Convert(b, count, ir.U8))
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.F16, ir.I64, ir.Bool} {
			b.Output("in "+d.String(), ops.Convert(b, mean, d))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := session(t).Train(ctx, loss, rlx.Training{Eval: []ir.Entry{{Name: "eval", Graph: eval}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trainer.Program().Close(ctx) })
	batch := func(mask ...float32) rlx.Inputs {
		return rlx.Inputs{"x": rlx.Float32s([]float32{2, 3, 4, 90}), "mask": rlx.Float32s(mask)}
	}
	last, err := rlx.Fit(ctx, trainer, rlx.Loop{
		Data: func(int) iter.Seq2[rlx.Inputs, error] {
			return func(yield func(rlx.Inputs, error) bool) { yield(rlx.Inputs{"x": rlx.Float32(1)}, nil) }
		},
		Steps: 1,
		Eval: rlx.Evaluation{Entry: "eval", Weight: "count", Data: func() iter.Seq2[rlx.Inputs, error] {
			return func(yield func(rlx.Inputs, error) bool) {
				_ = yield(batch(1, 1, 1, 0), nil) && yield(batch(0, 0, 0, 0), nil) && yield(batch(0, 1, 0, 0), nil)
			}
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"in f32", "in f64", "in bf16", "in f16", "in i64"} {
		if got, ok := last.Eval[name]; !ok || got != 3 {
			t.Errorf("%s: %v of %v, want 3", name, got, last.Eval)
		}
	}
	if got, ok := last.Eval["in bool"]; !ok || got != 1 {
		t.Errorf("in bool: %v of %v, want 1", got, last.Eval)
	}
}

// TestEpochsWithoutAnIterator has data that return nil, alone and behind what divides or prepares batches.
func TestEpochsWithoutAnIterator(t *testing.T) {
	none := func(int) iter.Seq2[rlx.Inputs, error] { return nil }
	trainer := pointsTrainer(t, 0.01)
	for name, l := range map[string]rlx.Loop{
		"alone":    {Data: none},
		"prefetch": {Data: rlx.Prefetch(none, 2)},
		"rank":     {Data: rlx.OfRank(none, 0, 2)},
		"eval":     {Data: rlx.Shuffled(points(), 4, 1), Eval: rlx.Evaluation{Entry: "eval", Data: func() iter.Seq2[rlx.Inputs, error] { return nil }}},
	} {
		l.Steps = trainer.Steps() + 1
		if _, err := rlx.Fit(ctx, trainer, l); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("%s: %v, want %v", name, err, ir.ErrAttr)
		}
	}
}
