package rlx_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// averagesGraph returns the graph of a linear layer and its loss. The weight is of type d.
func averagesGraph(t *testing.T, d ir.DType) *ir.Graph {
	t.Helper()
	g, err := ir.Build("line", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(4, 2)...)
		w := ops.Convert(b, b.ParamWith("w", ir.PortOptions{Initial: nn.Normal(0, 1)}, d, ir.Dims(2, 1)...), ir.F32)
		y := ops.Add(b, ops.MatMul(b, x, w), b.Param("frozen", ir.F32, ir.N(1)))
		b.Output("y", y)
		b.Output("loss", ops.Mean(b, ops.Square(b, ops.Sub(b, y, ops.Const(b, ir.F32, 3)))))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestEvalAverages compares an entry on averages, and [rlx.Trainer.Averages], with averages that are computed here from the
// parameters after each update.
func TestEvalAverages(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.BF16} {
		g := averagesGraph(t, d)
		trainer, err := session(t).Train(ctx, g, rlx.Training{
			Optimizer: optim.SGD{}, Rate: 0.1, Seed: 3, Options: optim.Options{Average: 0.75, Frozen: []string{"frozen"}},
			EvalAverages: []ir.Entry{{Name: "averaged", Graph: g}},
		})
		if err != nil {
			t.Fatal(err)
		}
		x := rlx.Inputs{"x": rlx.Float32s([]float32{1, -1, 0.5, 2, -0.25, 1, 3, 0.125}, 4, 2)}
		var want [2]float64
		for step := range 8 {
			if err := trainer.Step(ctx, x); err != nil {
				t.Fatal(err)
			}
			now := params(t, trainer)["w"]
			for i := range want {
				if step == 0 {
					want[i] = now[i]
				}
				want[i] = 0.75*want[i] + 0.25*now[i]
			}
		}
		tol := map[ir.DType]float64{ir.F32: 1e-6, ir.BF16: 1e-2}[d] // the step averages before it rounds to bf16
		values, err := trainer.Averages(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := values["w"].Array()
		if err != nil || values["w"].DType != d || len(values) != 2 {
			t.Fatalf("%s: averages are %v: %v", d, values, err)
		}
		for i := range want {
			if !(math.Abs(got.F[i]-want[i]) <= tol) {
				t.Errorf("%s: the average of element %d is %v, want %v", d, i, got.F[i], want[i])
			}
		}
		other := compile(t, g)
		if err := other.Load(ctx, values); err != nil {
			t.Fatal(err)
		}
		y, z := call(t, trainer.Program(), "averaged", x), call(t, other, "run", x)
		for i := range y {
			if y[i] != z[i] {
				t.Errorf("%s: result %d is %v, that of a program with the averages %v", d, i, y[i], z[i])
			}
		}
	}
}

func TestEvalAveragesRefused(t *testing.T) {
	g := averagesGraph(t, ir.F32)
	for name, o := range map[string]rlx.Training{
		"no averages": {EvalAverages: []ir.Entry{{Name: "e", Graph: g}}},
		"no graph":    {Options: optim.Options{Average: 0.9}, EvalAverages: []ir.Entry{{Name: "e"}}},
	} {
		if _, err := session(t).Train(ctx, g, o); !errors.Is(err, ir.ErrGraph) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := rlx.Training{Options: optim.Options{Average: 0.9}, EvalAverages: []ir.Entry{{Name: "e", Graph: g}}, Parallel: &rlx.DataParallel{Shard: true}}
	if _, err := o.Entries(g); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("divided states: %v", err)
	}
	trainer, err := session(t).Train(ctx, g, rlx.Training{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trainer.Averages(ctx); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("a step without averages: %v", err)
	}
}

// TestJointAverages keeps averages in one of two objectives.
func TestJointAverages(t *testing.T) {
	g := averagesGraph(t, ir.F32)
	joint, err := session(t).TrainJointly(ctx, rlx.JointTraining{
		Objectives: []rlx.Objective{
			{Name: "a", Loss: g, Options: optim.Options{Average: 0.5, Frozen: []string{"frozen"}}},
			{Name: "b", Loss: g, Options: optim.Options{Frozen: []string{"w"}}},
		},
		EvalAverages: []ir.Entry{{Name: "averaged", Graph: g}},
	})
	if err != nil {
		t.Fatal(err)
	}
	x := rlx.Inputs{"x": rlx.Zeros(ir.F32, 4, 2)}
	for _, name := range []string{"a", "b", "a"} {
		if err := joint.Trainer(name).Step(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := joint.Trainer("b").Averages(ctx); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("an objective without averages: %v", err)
	}
	values, err := joint.Trainer("a").Averages(ctx)
	if err != nil {
		t.Fatal(err)
	}
	other := compile(t, g)
	if err := other.Load(ctx, rlx.Inputs{"w": values["w"], "frozen": values["frozen"]}); err != nil {
		t.Fatal(err)
	}
	if y, z := call(t, joint.Program(), "averaged", x), call(t, other, "run", x); y[0] != z[0] {
		t.Errorf("the result is %v, that of a program with the averages %v", y, z)
	}
}

func compile(t *testing.T, g *ir.Graph) *rlx.Program {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	p, err := session(t).Compile(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(ctx) })
	return p
}

// call returns the output y of an entry.
func call(t *testing.T, p *rlx.Program, entry string, in rlx.Inputs) []float32 {
	t.Helper()
	out, err := p.Call(ctx, entry, in)
	if err != nil {
		t.Fatal(err)
	}
	y, err := out["y"].Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// params returns the elements of a trainer's parameters.
func params(t *testing.T, trainer *rlx.Trainer) map[string][]float64 {
	t.Helper()
	values, err := trainer.Params(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for name, x := range values {
		a, err := x.Array()
		if err != nil {
			t.Fatal(err)
		}
		out[name] = a.F
	}
	return out
}
