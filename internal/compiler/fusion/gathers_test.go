package fusion_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestBroadcastGathers adds values at given places of a table to many matrices, as attention within windows does: one
// thread gathers them once, many gather them for each matrix.
func TestBroadcastGathers(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		bias := ops.Embedding(b, b.Param("table", ir.F32, ir.Dims(20, 3)...), b.Input("places", ir.I32, ir.Dims(7, 7)...))
		b.Output("y", ops.Add(b, b.Input("x", ir.F32, ir.Dims(64, 3, 7, 7)...), ops.Transpose(b, bias, 2, 0, 1)))
	})
	for _, c := range []struct {
		policy fusion.Policy
		groups int
	}{{hardware.Unknown(), 1}, {hardware.Serial{Profile: hardware.Unknown()}, 2}} {
		o := fusion.DefaultOptions
		o.Policy = c.policy
		if p := groupsWith(t, g, o); len(p.Items) != c.groups {
			t.Errorf("%T: %d groups, want %d:\n%s", c.policy, len(p.Items), c.groups, p)
		}
	}
}

// TestSearchedScatters adds a few updates to each of many rows, as the derivative of pictures sampled at some points does: where
// one thread would look for the updates of each element, it visits the updates.
func TestSearchedScatters(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		zeros := ops.Zeros(b, ir.F32, ir.Dims(100, 300)...)
		a := ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{1}, OperandBatch: []int{0}, IndexBatch: []int{0}}}
		y := ops.ScatterAdd(b, zeros, b.Input("places", ir.I32, ir.Dims(100, 49, 1)...), b.Input("x", ir.F32, ir.Dims(100, 49)...), a)
		b.Output("y", ops.Sin(b, y))
	})
	for _, c := range []struct {
		policy fusion.Policy
		kind   fusion.Kind
	}{{hardware.Unknown(), fusion.ReduceKind}, {hardware.Serial{Profile: hardware.Unknown()}, fusion.ScatterKind}} {
		o := fusion.DefaultOptions
		o.Policy = c.policy
		p := groupsWith(t, g, o)
		if !slices.ContainsFunc(p.Items, func(x fusion.Item) bool {
			group, ok := x.(*fusion.Group)
			return ok && group.Kind == c.kind
		}) {
			t.Errorf("%T: no group of kind %v:\n%s", c.policy, c.kind, p)
		}
	}
}

// TestReductionsOfPairsReadTheirWeights sums the differences of all pairs of points by weights that take an exponential and a quotient
// each: they are computed once, in a kernel before, and not for each coordinate of the points.
func TestReductionsOfPairsReadTheirWeights(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		pairs := ir.Dims(100, 120, 64)
		point := func(name string, n, axis int) ir.Value {
			return ops.BroadcastInDim(b, b.Input(name, ir.F32, ir.Dims(n, 64)...), pairs, []int{axis, 2})
		}
		squares := b.Input("squares", ir.F32, ir.Dims(100, 120)...)
		weight := ops.Div(b, ops.Exp(b, ops.Neg(b, squares)), ops.Sqrt(b, squares))
		d := ops.Mul(b, ops.BroadcastInDim(b, weight, pairs, []int{0, 1}), ops.Sub(b, point("x", 100, 0), point("y", 120, 1)))
		b.Output("x", ops.ReduceSum(b, d, 1))
		b.Output("y", ops.ReduceSum(b, ops.Neg(b, d), 0))
	})
	o := fusion.DefaultOptions
	o.TensorCores, o.Policy = true, hardware.H200()
	p := groupsWith(t, g, o)
	if first := p.Items[0].(*fusion.Group); len(p.Items) != 3 || first.Kind != fusion.MapKind || fusion.Product(first.Outer) != 100*120 {
		t.Errorf("the weights are not computed by the first of three kernels\n%s", p)
	}
}
