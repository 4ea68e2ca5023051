package rlx_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

func TestInputsThatWereNeverGivenAreNamed(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	batch := rlx.Inputs{"x": examples()["x"]}
	for range 2 {
		err := tr.Step(ctx, batch)
		if !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), `["labels"]`) {
			t.Fatalf("a step without labels: %v", err)
		}
	}
	if err := tr.Run(ctx, 1, nil, nil); !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), `["labels" "x"]`) {
		t.Errorf("a run without anything: %v", err)
	}
	if tr.Steps() != 0 {
		t.Errorf("%d steps were done", tr.Steps())
	}
	if err := tr.Step(ctx, examples()); err != nil {
		t.Fatal(err)
	}
	if err := tr.Step(ctx, batch); err != nil { // labels stay as they were
		t.Error(err)
	}
}

func TestInputsWrittenInPlaceNeedNoBatch(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	for name, x := range examples() {
		copy(tr.Input(name).Data, x.Data)
	}
	if tr.Input("y").Data != nil {
		t.Error("an input that is not there has memory")
	}
	if err := tr.Run(ctx, 3, nil, nil); err != nil || tr.Steps() != 3 {
		t.Errorf("%d steps, %v", tr.Steps(), err)
	}
}

func TestANegativeNumberOfStepsIsRefused(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	for name, x := range examples() {
		copy(tr.Input(name).Data, x.Data)
	}
	if err := tr.Run(ctx, -2, nil, nil); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("a run of -2 steps: %v", err)
	}
	if err := tr.Run(ctx, 0, nil, nil); err != nil || tr.Steps() != 0 {
		t.Errorf("a run of no steps: %v, %d steps", err, tr.Steps())
	}
}

func TestRatesThatMakeNoSenseAreRefused(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	for _, rate := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e-3, 1e39} {
		if err := tr.SetRate(rate); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("rate %v: %v", rate, err)
		}
	}
	if err := tr.SetRate(0); err != nil {
		t.Error(err)
	}
	steps(t, tr, 2)
	if l := losses(t, tr); l[0] != l[1] {
		t.Errorf("losses %v with a rate of 0", l)
	}
	scheduled := trainer(t, rlx.Training{Options: optim.Options{Schedule: optim.Constant(1)}})
	if err := scheduled.SetRate(1); !errors.Is(err, ir.ErrName) {
		t.Errorf("with a schedule: %v", err)
	}
}

// diverging returns a trainer whose loss is NaN from step 2 on.
func diverging(t *testing.T, stop bool) *rlx.Trainer {
	t.Helper()
	g, err := ir.Build("diverging", func(b *ir.Builder) {
		n := b.State("n", ir.F32)
		b.SetState("n", ops.Add(b, n, ops.OnesLike(b, n)))
		w := b.Param("w", ir.F32)
		b.Output("loss", ops.Add(b, ops.Mul(b, w, w), ops.Sqrt(b, ops.Sub(b, ops.Const(b, ir.F32, 1), n))))
	})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := session(t).Train(ctx, g, rlx.Training{StopOnNaN: stop})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestNaNLossStopsTrainingIfRequested(t *testing.T) {
	tr := diverging(t, true)
	err := tr.Run(ctx, 1000, nil, nil)
	if !errors.Is(err, rlx.ErrDiverged) || !strings.Contains(err.Error(), "step 2") || tr.Steps() > 128 {
		t.Errorf("after %d steps: %v", tr.Steps(), err)
	}
	if tr = diverging(t, false); tr.Run(ctx, 300, nil, nil) != nil || tr.Steps() != 300 {
		t.Errorf("by default training stops after %d steps", tr.Steps())
	}
	if l := losses(t, tr); !slices.ContainsFunc(l, func(x float32) bool { return x != x }) {
		t.Errorf("the losses are %v", l)
	}
}

// Two trainers of one program would count each other's steps.
func TestAProgramHasOneTrainer(t *testing.T) {
	one := trainer(t, rlx.Training{})
	steps(t, one, 3)
	other, err := rlx.NewTrainer(ctx, one.Program(), "loss")
	if err != nil {
		t.Fatal(err)
	}
	for call, err := range map[string]error{
		"Step": one.Step(ctx, examples()), "Run": one.Run(ctx, 1, nil, nil), "LoadFile": one.LoadFile(ctx, checkpoint(t, nil)),
	} {
		if !errors.Is(err, native.ErrClosed) {
			t.Errorf("%s of the trainer before: %v", call, err)
		}
	}
	if _, err := one.Losses(ctx); !errors.Is(err, native.ErrClosed) {
		t.Errorf("Losses of the trainer before: %v", err)
	}
	steps(t, other, 2)
	if n := len(losses(t, other)); n != 2 || other.Steps() != 5 {
		t.Errorf("%d losses and %d steps, want 2 and 5", n, other.Steps())
	}
}

func TestTrainersOfOneSessionAreIndependent(t *testing.T) {
	s := session(t)
	var each [2][]float32
	var trainers [2]*rlx.Trainer
	for i := range trainers {
		tr, err := s.Train(ctx, classifier(t), rlx.Training{Seed: 9})
		if err != nil {
			t.Fatal(err)
		}
		trainers[i] = tr
	}
	for k := range 300 {
		for i := range trainers {
			if i == 0 || k%2 == 0 {
				steps(t, trainers[i], 1)
			}
		}
	}
	for i, tr := range trainers {
		each[i] = losses(t, tr)
	}
	if trainers[0].Steps() != 300 || trainers[1].Steps() != 150 || !slices.Equal(each[0][:150], each[1]) {
		t.Errorf("%d and %d steps, the losses differ: %t", trainers[0].Steps(), trainers[1].Steps(), !slices.Equal(each[0][:150], each[1]))
	}
}

// Runs of the step without the trainer are steps too; losses that are not read in
// time are omitted.
func TestStepsRunWithoutTheTrainerAreCounted(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	steps(t, tr, 2)
	in := examples()
	in["lr"] = rlx.Float32(1e-3)
	for range 300 {
		if _, err := tr.Program().Call(ctx, "step", in); err != nil {
			t.Fatal(err)
		}
	}
	steps(t, tr, 1)
	l := losses(t, tr)
	if tr.Steps() != 303 || len(l) != 256 || l[255] >= l[0] {
		t.Fatalf("%d steps, losses %v, want those of the last 256 of 303", tr.Steps(), l)
	}
	if _, err := tr.Program().Call(ctx, "init", rlx.Inputs{rlx.SeedInput: rlx.Uint32(1)}); err != nil {
		t.Fatal(err)
	}
	steps(t, tr, 1)
	if l := losses(t, tr); tr.Steps() != 1 || len(l) != 1 {
		t.Errorf("%d steps and losses %v after the states were set anew", tr.Steps(), l)
	}
}

func TestALossIsReadBeforeAShortHistoryForgetsIt(t *testing.T) {
	step, err := optim.Step(classifier(t), "loss", optim.SGD{}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 7} {
		g, err := optim.History(step, "loss", n)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ir.NewModule("short", ir.Entry{Name: "step", Graph: g}, ir.Entry{Name: "init", Graph: must(rlx.InitGraph(g, []string{"w1", "w2"}, map[string]rlx.Initializer{"b1": rlx.Constant(0), "b2": rlx.Constant(0)}))(t)})
		if err != nil {
			t.Fatal(err)
		}
		p, err := session(t).Compile(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Call(ctx, "init", rlx.Inputs{rlx.SeedInput: rlx.Uint32(0)}); err != nil {
			t.Fatal(err)
		}
		tr, err := rlx.NewTrainer(ctx, p, "loss")
		if err != nil {
			t.Fatal(err)
		}
		steps(t, tr, 20)
		if l := losses(t, tr); len(l) != 20 {
			t.Errorf("a history of %d: %d losses of 20 steps", n, len(l))
		}
	}
}

func TestSavingAClosedProgramIsAnError(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	if err := tr.Program().Close(ctx); err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	if err := tr.Save(ctx, &file); !errors.Is(err, native.ErrClosed) || file.Len() > 0 {
		t.Errorf("%d bytes, %v", file.Len(), err)
	}
	if err := tr.Step(ctx, examples()); !errors.Is(err, native.ErrClosed) {
		t.Errorf("a step: %v", err)
	}
}
