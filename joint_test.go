package rlx_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// pursuit are two objectives over the parameters "a/x" and "b/x": a is to be at b, b at the input.
func pursuit(t *testing.T) rlx.JointTraining {
	t.Helper()
	build := func(name string, f func(b *ir.Builder, x, y ir.Value) ir.Value) *ir.Graph {
		g, err := ir.Build(name, func(b *ir.Builder) {
			b.Output("loss", f(b, b.Param("a/x", ir.F32), b.Param("b/x", ir.F32)))
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	square := func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Square(b, ops.Sub(b, x, y)) }
	return rlx.JointTraining{
		Objectives: []rlx.Objective{
			{Name: "a", Loss: build("a", square), Optimizer: optim.SGD{}, Rate: 0.25, Options: optim.Options{Frozen: []string{"b"}}},
			{Name: "b", Optimizer: optim.SGD{}, Options: optim.Options{Frozen: []string{"a"}, Schedule: optim.Constant(0.5)}, Loss: build("b", func(b *ir.Builder, _, y ir.Value) ir.Value {
				return square(b, y, b.Input("at", ir.F32))
			})},
		},
		Init: map[string]rlx.Initializer{"a/x": rlx.Constant(8), "b/*": rlx.Constant(4)},
	}
}

func scalarsOf(t *testing.T, j *rlx.Joint) (a, b float32) {
	t.Helper()
	values, err := j.Program().Save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	x, y := values["a/x"], values["b/x"]
	p, _ := x.Float32s()
	q, _ := y.Float32s()
	return p[0], q[0]
}

// TestJointTrainingUpdatesItsOwn compares steps with those by hand: a goes half of the way to b, b all
// of the way to the input.
func TestJointTrainingUpdatesItsOwn(t *testing.T) {
	o := pursuit(t)
	j, err := session(t).TrainJointly(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Program().Close(ctx)
	at := rlx.Inputs{"at": rlx.Float32(16)}
	step := func(name string, batch rlx.Inputs, wantA, wantB float32) {
		t.Helper()
		if err := j.Trainer(name).Step(ctx, batch); err != nil {
			t.Fatal(err)
		}
		if a, b := scalarsOf(t, j); a != wantA || b != wantB {
			t.Errorf("after a step of %s a is %v and b %v, not %v and %v", name, a, b, wantA, wantB)
		}
	}
	step("a", nil, 6, 4)
	step("a", nil, 5, 4)
	var saved bytes.Buffer
	if err := j.Save(ctx, &saved); err != nil {
		t.Fatal(err)
	}
	step("b", at, 5, 16)
	step("a", nil, 10.5, 16)
	if a, b := j.Trainer("a").Steps(), j.Trainer("b").Steps(); a != 3 || b != 1 {
		t.Errorf("%d steps of a and %d of b", a, b)
	}
	if losses, err := j.Trainer("a").Losses(ctx); err != nil || len(losses) != 3 || losses[0] != 16 || losses[2] != 121 {
		t.Errorf("losses %v, %v", losses, err)
	}
	if err := j.Load(ctx, bytes.NewReader(saved.Bytes())); err != nil {
		t.Fatal(err)
	}
	if a, b := j.Trainer("a").Steps(), j.Trainer("b").Steps(); a != 2 || b != 0 {
		t.Errorf("after loading %d steps of a and %d of b", a, b)
	}
	if err := j.Trainer("a").SetRate(0.5); err != nil {
		t.Fatal(err)
	}
	step("a", nil, 4, 4)
	if err := j.Trainer("b").SetRate(1); !errors.Is(err, ir.ErrName) {
		t.Errorf("the rate of a schedule: %v", err)
	}
	if err := j.Load(ctx, strings.NewReader("x")); err == nil {
		t.Error("a damaged file loads")
	}
	refusesUnknown(t, j, saved.Bytes())
}

// refusesUnknown calls the methods of the trainer of an objective that there is not.
func refusesUnknown(t *testing.T, j *rlx.Joint, saved []byte) {
	t.Helper()
	unknown := j.Trainer("c")
	for name, call := range map[string]func() error{
		"Step":     func() error { return unknown.Step(ctx, nil) },
		"Run":      func() error { return unknown.Run(ctx, 1, nil, nil) },
		"SetRate":  func() error { return unknown.SetRate(1) },
		"Save":     func() error { return unknown.Save(ctx, io.Discard) },
		"Load":     func() error { return unknown.Load(ctx, bytes.NewReader(saved)) },
		"Losses":   func() error { _, err := unknown.Losses(ctx); return err },
		"Params":   func() error { _, err := unknown.Params(ctx); return err },
		"Averages": func() error { _, err := unknown.Averages(ctx); return err },
		"Part":     func() error { _, err := unknown.Part("x", rlx.Float32(0)); return err },
		"Fit": func() error {
			_, err := rlx.Fit(ctx, unknown, rlx.Loop{Steps: 1, Data: rlx.Shuffled(rlx.Inputs{"at": rlx.Zeros(ir.F32, 1)}, 1, 1)})
			return err
		},
	} {
		if err := call(); !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), `unknown objective "c": have ["a" "b"]`) {
			t.Errorf("%s of an unknown objective: %v", name, err)
		}
	}
	if unknown.Steps() != 0 || unknown.Input("at").Data != nil {
		t.Error("an unknown objective has steps or inputs")
	}
}

func TestJointTrainingRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(o *rlx.JointTraining)
		kind   error
		text   string
	}{
		"no objectives":   {func(o *rlx.JointTraining) { o.Objectives = nil }, ir.ErrGraph, `no objectives given`},
		"no name":         {func(o *rlx.JointTraining) { o.Objectives[0].Name = "" }, ir.ErrName, `objective 0 has no name`},
		"one name":        {func(o *rlx.JointTraining) { o.Objectives[1].Name = "a" }, ir.ErrName, `objective 1 has the name "a" of an earlier one`},
		"bad name":        {func(o *rlx.JointTraining) { o.Objectives[1].Name = "a/b" }, ir.ErrName, `a/b`},
		"no graph":        {func(o *rlx.JointTraining) { o.Objectives[1].Loss = nil }, ir.ErrGraph, `objective "b" has no loss`},
		"no output":       {func(o *rlx.JointTraining) { o.Objectives[1].Output = "cost" }, ir.ErrName, `cost`},
		"rate and policy": {func(o *rlx.JointTraining) { o.Objectives[1].Rate = 1 }, ir.ErrName, ``},
		"unknown init":    {func(o *rlx.JointTraining) { o.Init["c/*"] = rlx.Constant(1) }, ir.ErrName, `c/*`},
	} {
		o := pursuit(t)
		c.change(&o)
		if _, err := session(t).TrainJointly(ctx, o); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, not of kind %v with %q", name, err, c.kind, c.text)
		}
	}
}

// TestWatchNamesTheFirstLayer trains until the logarithm in the second layer is that of a negative
// number: in the forward pass of the third step. A later layer is not finite, too. A loss scale skips that step.
func TestWatchNamesTheFirstLayer(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		x := nn.Linear(b, b.Input("x", ir.F32, ir.Dims(1, 2)...), 2, nn.LinearOptions{Name: "first"})
		b.Label("second")
		y := ops.Log(b, x)
		b.Label("")
		y = nn.Linear(b, y, 2, nn.LinearOptions{Name: "third"})
		b.Output("loss", ops.Mean(b, y))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		watch bool
		scale *optim.LossScale
	}{{false, nil}, {true, nil}, {true, &optim.LossScale{Initial: 2}}} {
		trainer, err := session(t).Train(ctx, loss, rlx.Training{
			Optimizer: optim.SGD{}, Options: optim.Options{Scale: c.scale}, Rate: 1e-6, StopOnNaN: true, Watch: c.watch,
			Init: map[string]rlx.Initializer{"first/*": rlx.Constant(1), "third/*": rlx.Constant(1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		good, bad := rlx.Inputs{"x": rlx.Float32s([]float32{1, 1}, 1, 2)}, rlx.Inputs{"x": rlx.Float32s([]float32{-8, 1}, 1, 2)}
		for _, batch := range []rlx.Inputs{good, good, bad, good} {
			if err := trainer.Step(ctx, batch); err != nil {
				t.Fatal(err)
			}
		}
		losses, err := trainer.Losses(ctx)
		if !errors.Is(err, rlx.ErrDiverged) || !strings.HasPrefix(err.Error(), "step 2: ") || !math.IsNaN(float64(losses[2])) {
			t.Errorf("%v, %v", losses, err)
		}
		if got := strings.HasSuffix(err.Error(), `; the first value that is not finite is that of layer "second" (log)`); got != c.watch {
			t.Errorf("%+v: %v", c, err)
		}
		if err := trainer.Program().Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
