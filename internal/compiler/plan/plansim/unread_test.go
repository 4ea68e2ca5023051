package plansim_test

import (
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// A gather at constant indices that are all out of range reads nothing of its operand: that has no kernel.
func TestUnreadValuesHaveNoKernel(t *testing.T) {
	outside := func(b *ir.Builder) ir.Value { return ops.Literal(b, ir.Ints(ir.I32, []int64{-1}, 1)) }
	x := ir.Floats(ir.F32, []float64{1, 2, 3, 4}, 2, 2)
	for name, operand := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"a sum": func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, ops.MatMul(b, x, x), 0) },
		"a scatter": func(b *ir.Builder, x ir.Value) ir.Value {
			row := ops.SliceAxis(b, x, 0, ir.N(0), ir.N(1))
			return ops.ScatterAdd(b, ops.Zeros(b, ir.F32, ir.Dims(1, 2)...), ops.Reshape(b, outside(b), ir.Dims(1, 1)...), row, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
		},
		"a loop": func(b *ir.Builder, x ir.Value) ir.Value {
			_, ys := ops.Scan(b, ops.Loop{Xs: []ir.Value{x}, Body: func(b *ir.Builder, _, _, xs []ir.Value) (next, ys []ir.Value) {
				return nil, []ir.Value{ops.ReduceSum(b, ops.Exp(b, xs[0]))}
			}})
			return ys[0]
		},
	} {
		s, out := runGraph(t, map[string]*ir.Array{"x": x}, func(b *ir.Builder) {
			v := operand(b, b.Input("x", ir.F32, ir.Dims(2, 2)...))
			y := ops.Take(b, v, outside(b), 0, ops.OutsideFill)
			b.Output("y", ops.Add(b, y, ops.ConstLike(b, y, 7)))
		})
		if got := out["y"].F; slices.ContainsFunc(got, func(x float64) bool { return x != 7 }) {
			t.Errorf("%s: elements %v, not 7", name, got)
		}
		if n := len(s.Plan().Kernels); n != 1 {
			t.Errorf("%s: %d kernels, not 1", name, n)
		}
	}
}
