package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// one returns a literal like x.
func one(b *ir.Builder, x ir.Value) ir.Value { return ops.ConstLike(b, x, 1) }

// statePrograms are graphs in which it matters where and when the new value of a state is stored:
// every other reader must have read the old one.
var statePrograms = []struct {
	name string
	make func(b *ir.Builder)
}{
	{"read by another output", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(5))
		b.Output("sum", ops.ReduceSum(b, s))
		b.SetState("s", ops.Add(b, s, one(b, s)))
	}},
	{"read back to front by its own update", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(300))
		b.SetState("s", ops.Add(b, s, ops.Reverse(b, s, 0)))
	}},
	{"read transposed by its own update", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(20), ir.N(20))
		b.SetState("s", ops.Sub(b, s, ops.Transpose(b, s, 1, 0)))
	}},
	{"the state as it was is an output", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(5))
		b.Output("old", s)
		b.SetState("s", ops.Mul(b, s, ops.ConstLike(b, s, 2)))
	}},
	{"the new value is an output too", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(5))
		next := ops.Sin(b, s)
		b.Output("new", next)
		b.SetState("s", next)
	}},
	{"two states swap", func(b *ir.Builder) {
		s, t := b.State("s", ir.F32, ir.N(5)), b.State("t", ir.F32, ir.N(5))
		b.SetState("s", t)
		b.SetState("t", s)
	}},
	{"one moves on, the next follows", func(b *ir.Builder) {
		s, t, u := b.State("s", ir.F32, ir.N(5)), b.State("t", ir.F32, ir.N(5)), b.State("u", ir.F32, ir.N(5))
		b.SetState("u", t)
		b.SetState("t", s)
		b.SetState("s", ops.Add(b, s, u))
	}},
	{"two states have one new value", func(b *ir.Builder) {
		s, t := b.State("s", ir.F32, ir.N(5)), b.State("t", ir.F32, ir.N(5))
		next := ops.Add(b, s, ops.Exp(b, t))
		b.SetState("s", next)
		b.SetState("t", next)
	}},
	{"each is made from the other's old value", func(b *ir.Builder) {
		s, t := b.State("s", ir.F32, ir.N(5)), b.State("t", ir.F32, ir.N(5))
		b.SetState("s", ops.Exp(b, ops.Neg(b, t)))
		b.SetState("t", ops.Cos(b, s))
	}},
	{"a new value is made from another new value", func(b *ir.Builder) {
		s, t := b.State("s", ir.F32, ir.N(5)), b.State("t", ir.F32, ir.N(7))
		next := ops.Sin(b, s)
		b.SetState("s", next)
		b.SetState("t", ops.Add(b, t, ops.BroadcastTo(b, ops.Reshape(b, ops.ReduceSum(b, next), ir.N(1)), ir.Shape{ir.N(7)})))
	}},
	{"a literal", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(5))
		b.Output("sum", ops.ReduceSum(b, s))
		b.SetState("s", ops.Zeros(b, ir.F32, ir.N(5)))
	}},
	{"an input, a scalar", func(b *ir.Builder) {
		s, t := b.State("s", ir.F32, ir.N(5)), b.State("t", ir.F32)
		x, y := b.Input("x", ir.F32, ir.N(5)), b.Input("y", ir.F32)
		b.Output("sum", ops.Add(b, ops.ReduceSum(b, s), t))
		b.SetState("s", x)
		b.SetState("t", y)
	}},
	{"itself", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(5))
		b.Output("sum", ops.ReduceSum(b, s))
		b.SetState("s", s)
	}},
	{"a factor of the contraction that updates it", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(8), ir.N(8))
		b.SetState("s", ops.MatMul(b, s, s))
	}},
	{"added to a contraction in its epilogue", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(8), ir.N(9))
		x, y := b.Input("x", ir.F32, ir.N(8), ir.N(300)), b.Input("y", ir.F32, ir.N(300), ir.N(9))
		t := ops.Sin(b, ops.Add(b, ops.MatMul(b, x, y), s))
		b.Output("t", t)
		b.SetState("s", ops.Cos(b, t))
	}},
	{"added to a sum over rows", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(70))
		x := b.Input("x", ir.F32, ir.N(70), ir.N(30))
		t := ops.Sin(b, ops.Add(b, ops.ReduceSum(b, x, 1), s))
		b.Output("t", t)
		b.SetState("s", ops.Cos(b, t))
	}},
	{"normalised by its own sum", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(70), ir.N(30))
		sum := ops.BroadcastInDim(b, ops.ReduceSum(b, ops.Exp(b, s), 1), s.Shape(), []int{0})
		b.SetState("s", ops.Div(b, s, sum))
	}},
	{"running sums of itself", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(3), ir.N(7))
		b.SetState("s", ops.CumSum(b, s, ops.CumSumAttrs{Axis: 1}))
	}},
	{"updates scattered into it", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(6), ir.N(2))
		i, u := b.Input("i", ir.I32, ir.N(4), ir.N(1)), b.Input("u", ir.F32, ir.N(4), ir.N(2))
		b.SetState("s", ops.ScatterAdd(b, s, i, u, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}))
	}},
	{"the carry of a loop", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(4))
		carries, _ := ops.Scan(b, ops.Loop{Carries: []ir.Value{s}, Length: ir.N(3), Body: func(b *ir.Builder, _, c, _ []ir.Value) (next, ys []ir.Value) {
			return []ir.Value{ops.Sin(b, c[0])}, nil
		}})
		b.Output("sum", ops.ReduceSum(b, s))
		b.SetState("s", carries[0])
	}},
	{"updated while a loop has it as a constant", func(b *ir.Builder) {
		s := b.State("s", ir.F32, ir.N(4))
		x := b.Input("x", ir.F32, ir.N(3), ir.N(4))
		_, ys := ops.Scan(b, ops.Loop{Consts: []ir.Value{s}, Xs: []ir.Value{x}, Body: func(b *ir.Builder, consts, _, xs []ir.Value) (next, ys []ir.Value) {
			return nil, []ir.Value{ops.Mul(b, consts[0], xs[0])}
		}})
		b.Output("ys", ys[0])
		b.SetState("s", ops.Sin(b, s))
	}},
	{"empty and of one element", func(b *ir.Builder) {
		s, t := b.State("s", ir.F32, ir.N(0), ir.N(3)), b.State("t", ir.F32, ir.N(1), ir.N(1))
		b.SetState("s", ops.Sin(b, s))
		b.SetState("t", ops.Add(b, t, ops.Reshape(b, ops.ReduceSum(b, s), ir.N(1), ir.N(1))))
	}},
	{"integers and booleans", func(b *ir.Builder) {
		s, t, u := b.State("s", ir.I32, ir.N(5)), b.State("t", ir.Bool, ir.N(5)), b.State("u", ir.U32)
		b.SetState("s", ops.Add(b, s, ops.Convert(b, t, ir.I32)))
		b.SetState("t", ops.Not(b, t))
		b.SetState("u", ops.Add(b, u, ops.ConstLike(b, u, 1)))
	}},
}

func TestStatesAreWrittenAfterAllReads(t *testing.T) {
	small := plan.WebGPU()
	small.Limits.StorageBuffers = 4
	for _, p := range statePrograms {
		g, err := ir.Build("g", p.make)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		t.Run(p.name, func(t *testing.T) {
			t.Run("fused", func(t *testing.T) { checkTwoRuns(t, g, someValues(g), plan.WebGPU()) })
			t.Run("of four bindings", func(t *testing.T) { checkTwoRuns(t, g, someValues(g), small) })
		})
	}
}

// someValues returns values for all ports of a graph.
func someValues(g *ir.Graph) map[string]*ir.Array {
	values := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			a.F[i] = float64(i*7%11)/8 - 0.5
		}
		for i := range a.I {
			a.I[i] = int64(i % 2)
		}
		values[p.Name] = a
	}
	return values
}
