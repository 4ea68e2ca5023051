package rlx_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

var ctx = context.Background()

// classifier is the loss of a small network on a batch of 8.
func classifier(t testing.TB) *ir.Graph {
	t.Helper()
	g, err := ir.Build("classifier", func(b *ir.Builder) {
		x, labels := b.Input("x", ir.F32, ir.Dims(8, 4)...), b.Input("labels", ir.I32, ir.N(8))
		h := ops.Tanh(b, ops.Linear(b, x, b.Param("w1", ir.F32, ir.Dims(4, 16)...), b.Param("b1", ir.F32, ir.N(16))))
		b.Output("loss", ops.CrossEntropyMean(b, ops.Linear(b, h, b.Param("w2", ir.F32, ir.Dims(16, 3)...), b.Param("b2", ir.F32, ir.N(3))), labels))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func examples() rlx.Inputs {
	x, labels := make([]float32, 32), make([]int32, 8)
	for i := range x {
		x[i] = float32(math.Sin(float64(i * i)))
	}
	for i := range labels {
		labels[i] = int32(i % 3)
	}
	return rlx.Inputs{"x": rlx.Float32s(x, 8, 4), "labels": rlx.Int32s(labels)}
}

func session(t testing.TB) *rlx.Session {
	t.Helper()
	s, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func trainer(t testing.TB, o rlx.Training) *rlx.Trainer {
	t.Helper()
	tr, err := session(t).Train(ctx, classifier(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func losses(t *testing.T, tr *rlx.Trainer) []float32 {
	t.Helper()
	out, err := tr.Losses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func steps(t *testing.T, tr *rlx.Trainer, n int) {
	t.Helper()
	for range n {
		if err := tr.Step(ctx, examples()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTrainingReducesAndRecordsLosses(t *testing.T) {
	const n = 700 // more than the device keeps
	tr := trainer(t, rlx.Training{Seed: 3, Rate: 0.01})
	steps(t, tr, n)
	got := losses(t, tr)
	if len(got) != n || tr.Steps() != n {
		t.Fatalf("%d losses of %d steps, want %d", len(got), tr.Steps(), n)
	}
	if got[n-1] > got[0]/10 {
		t.Errorf("the loss went from %v to %v", got[0], got[n-1])
	}
	for k := range n - 1 {
		if math.IsNaN(float64(got[k])) || got[k+1] > got[k]+0.05 {
			t.Fatalf("step %d: loss %v after %v", k+1, got[k+1], got[k])
		}
	}
}

func TestLossesAreThoseOfTheReference(t *testing.T) {
	tr := trainer(t, rlx.Training{Seed: 5, Optimizer: optim.SGD{Momentum: 0.9}})
	step, err := optim.Step(classifier(t), "loss", optim.SGD{Momentum: 0.9}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]*ir.Array{optim.RateInput: ir.Float(ir.F32, rlx.DefaultRate)}
	saved, err := tr.Program().Save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range step.Ports() {
		x, ok := saved[p.Name]
		if !ok {
			x, ok = examples()[p.Name]
		}
		if !ok {
			continue
		}
		if values[p.Name], err = x.Array(); err != nil {
			t.Fatal(err)
		}
	}
	steps(t, tr, 10)
	for k, got := range losses(t, tr) {
		out, err := ir.Eval(step, values, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range step.Outputs() {
			if o.State {
				values[o.Name] = out[i]
			} else if want := out[i].F[0]; !(math.Abs(float64(got)-want) <= 1e-5) {
				t.Errorf("step %d: loss %v, reference %v", k, got, want)
			}
		}
	}
}

func TestTheSameSeedGivesTheSameWeights(t *testing.T) {
	value := func(seed uint32) []float32 {
		x, err := trainer(t, rlx.Training{Seed: seed}).Program().Get(ctx, "w1")
		if err != nil {
			t.Fatal(err)
		}
		w, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	a, b, c := value(1), value(1), value(2)
	same := 0
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("element %d is %v and %v", i, a[i], b[i])
		}
		if a[i] == c[i] {
			same++
		}
	}
	if same == len(a) {
		t.Error("another seed gives the same weights")
	}
}

func TestResumedTrainingEqualsUninterrupted(t *testing.T) {
	one := trainer(t, rlx.Training{Seed: 7})
	steps(t, one, 20)
	var file bytes.Buffer
	if err := one.Save(ctx, &file); err != nil {
		t.Fatal(err)
	}
	steps(t, one, 20)
	other := trainer(t, rlx.Training{Seed: 8})
	if err := other.Load(ctx, &file); err != nil {
		t.Fatal(err)
	}
	if other.Steps() != 20 {
		t.Errorf("%d steps after loading, want 20", other.Steps())
	}
	steps(t, other, 20)
	if other.Steps() != 40 {
		t.Errorf("%d steps, want 40", other.Steps())
	}
	a, b := losses(t, one)[20:], losses(t, other)
	if len(a) != len(b) {
		t.Fatalf("%d losses after loading, want %d", len(b), len(a))
	}
	for k := range a {
		if a[k] != b[k] {
			t.Fatalf("step %d: %v after loading, %v without", k, b[k], a[k])
		}
	}
}

func TestInvalidBatchesAndFilesKeepTrainerState(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	steps(t, tr, 1)
	wrong := examples()
	wrong["labels"] = rlx.Int32s([]int32{0, 1, 2, 3, 0, 0, 0, 0})
	for _, c := range []struct {
		name string
		err  error
		kind error
	}{
		{"label out of range", tr.Step(ctx, wrong), ir.ErrIndex},
		{"unknown input", tr.Step(ctx, rlx.Inputs{"y": rlx.Float32(1)}), ir.ErrName},
		{"wrong shape", tr.Step(ctx, rlx.Inputs{"x": rlx.Float32s(make([]float32, 32), 4, 8)}), ir.ErrShape},
		{"damaged file", tr.Load(ctx, bytes.NewReader([]byte("no weights"))), safetensors.ErrDamaged},
	} {
		if !errors.Is(c.err, c.kind) {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.kind)
		}
	}
	steps(t, tr, 1)
	if n := len(losses(t, tr)); n != 2 || tr.Steps() != 2 {
		t.Errorf("%d losses of %d steps, want 2", n, tr.Steps())
	}
}

// A plan compiled ahead of time trains as a session does.
func TestEntriesAreThoseOfATraining(t *testing.T) {
	how := rlx.Training{Seed: 5, Eval: []ir.Entry{{Name: "eval", Graph: classifier(t)}}}
	entries, err := how.Entries(classifier(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	if want := []string{"step", "init", "eval"}; !slices.Equal(names, want) {
		t.Fatalf("entries %q, not %q", names, want)
	}
	m, err := ir.NewModule("ahead", entries...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := session(t).Compile(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(ctx)
	if _, err := p.Call(ctx, "init", rlx.Inputs{rlx.SeedInput: rlx.Uint32(5)}); err != nil {
		t.Fatal(err)
	}
	ahead, err := rlx.NewTrainer(ctx, p, "loss")
	if err != nil {
		t.Fatal(err)
	}
	own := trainer(t, how)
	for _, tr := range []*rlx.Trainer{ahead, own} {
		for range 3 {
			if err := tr.Step(ctx, examples()); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := ahead.Losses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want, err := own.Losses(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("losses %v, not %v", got, want)
	}
	if _, err := how.Entries(nil); err == nil {
		t.Error("entries of no graph")
	}
}

func TestTrainingRefusesInvalidLosses(t *testing.T) {
	s := session(t)
	for name, c := range map[string]struct {
		o    rlx.Training
		kind error
	}{
		"unknown loss":           {rlx.Training{Loss: "cost"}, ir.ErrName},
		"initializer of nothing": {rlx.Training{Init: map[string]rlx.Initializer{"w3": rlx.Constant(1)}}, ir.ErrName},
		"negative rate":          {rlx.Training{Rate: -1}, ir.ErrAttr},
		"rate and schedule":      {rlx.Training{Rate: 1, Options: optim.Options{Schedule: optim.Constant(1)}}, ir.ErrName},
		"bad hyper-parameter":    {rlx.Training{Optimizer: optim.Adam{Beta1: 2}}, ir.ErrAttr},
	} {
		if _, err := s.Train(ctx, classifier(t), c.o); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
	if _, err := s.Train(ctx, nil, rlx.Training{}); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("no graph: %v", err)
	}
	if _, err := s.Compile(ctx, nil); !errors.Is(err, ir.ErrGraph) {
		t.Errorf("no module: %v", err)
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	batch := examples()
	if err := tr.Step(ctx, batch); err != nil {
		t.Fatal(err)
	}
	allocations := testing.AllocsPerRun(100, func() {
		if err := tr.Step(ctx, batch); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations a step", allocations)
	}
}

func TestRunReportsProgressAndStopsOnRequest(t *testing.T) {
	tr := trainer(t, rlx.Training{})
	stopping, stop := context.WithCancel(ctx)
	for name, x := range examples() {
		copy(tr.Input(name).Data, x.Data)
	}
	err := tr.Run(stopping, 1000, func(k int) error {
		if k == 10 {
			stop()
		}
		return nil
	}, nil)
	if !errors.Is(err, context.Canceled) || native.KindOf(err) != context.Canceled || tr.Steps() != 10 {
		t.Errorf("after %d steps: %v", tr.Steps(), err)
	}
	var last rlx.Progress
	if err := tr.Run(ctx, 5, func(int) error { return nil }, func(p rlx.Progress) { last = p }); err != nil {
		t.Fatal(err)
	}
	if all := losses(t, tr); last.Step != 5 || last.Steps != 5 || last.Loss != all[len(all)-1] || last.Rate <= 0 {
		t.Errorf("progress %+v", last)
	}
}
