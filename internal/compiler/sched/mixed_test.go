package sched_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestMixedPrecisionStep compares a training step of a transformer in bf16 for tensor cores,
// with rematerialisation, to the graph's values node by node, within the rounding of bf16.
func TestMixedPrecisionStep(t *testing.T) {
	loss, err := irtest.GPT{Vocab: 96, Context: 64, Width: 64, Heads: 1, Blocks: 1, Batch: 2, Tied: true, Packed: true, Tanh: true}.Loss()
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", optim.SGD{}, optim.Options{Schedule: optim.Constant(1)})
	if err == nil {
		g, err = passes.Mixed(g, ir.BF16)
	}
	if err != nil {
		t.Fatal(err)
	}
	in := begun(g)
	want, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, products := range []loop.Products{loop.NoProducts, loop.AllProducts} {
		m, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		s, err := plansim.Open(m, schedtest.WithLibrary(products))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range g.Ports() {
			if p.Kind != ir.InputPort {
				if err := s.Set(p.Name, in[p.Name]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := s.Run("step", in); err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			if !o.State {
				continue
			}
			got, err := s.Get(o.Name)
			if err != nil {
				t.Fatal(err)
			}
			near(t, o.Name, got, want[i], in[o.Name])
		}
	}
}

// begun has small random weights, scales near 1 and random tokens.
func begun(g *ir.Graph) map[string]*ir.Array {
	rng := rand.New(rand.NewPCG(1, 2))
	in := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			if a.F[i] = rng.NormFloat64() / 8; len(dims) == 1 {
				a.F[i]++
			}
		}
		if p.Kind == ir.InputPort {
			for i := range a.I {
				a.I[i] = rng.Int64N(96)
			}
		}
		a.Round()
		in[p.Name] = a
	}
	return in
}

// near compares the changes of a step, relative to the size of a gradient: bf16 keeps 8 bits of
// each factor.
func near(t *testing.T, name string, got, want, old *ir.Array) {
	t.Helper()
	apart, change := 0., 0.
	for i := range want.Len() {
		apart += math.Pow(got.Float(i)-want.Float(i), 2)
		change += math.Pow(want.Float(i)-old.Float(i), 2)
	}
	if !(math.Sqrt(apart) <= 0.02*math.Sqrt(change)) {
		t.Errorf("%s is off by %.3g, having changed by %.3g", name, math.Sqrt(apart), math.Sqrt(change))
	}
}

// TestManyShortRowsShareWorkgroups checks reductions of many short rows, with whole workgroups
// and with one that is not full.
func TestManyShortRowsShareWorkgroups(t *testing.T) {
	for _, rows := range []int{1 << 14, 1<<14 + 3} {
		for _, length := range []int{64, 50} {
			g := schedtest.Build(t, func(b *ir.Builder) {
				x, y := b.Input("x", ir.F32, ir.Dims(rows, length)...), b.Input("y", ir.F32, ir.Dims(rows, length)...)
				b.Output("z", ops.ReduceSum(b, ops.Mul(b, x, y), 1))
			})
			schedtest.RunOn(t, g, schedtest.Hopper(), schedtest.Wholes)
		}
	}
}
