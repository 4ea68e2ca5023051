package fusion_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestRowsAreContiguousInReshapes sums values that are read by digits of coordinates: the loads of elements that are adjacent in
// memory decide, not the smaller values beside them.
func TestRowsAreContiguousInReshapes(t *testing.T) {
	for name, c := range map[string]struct {
		sum  func(b *ir.Builder) ir.Value
		want bool
	}{
		"columns of a matrix in parts of 4": {func(b *ir.Builder) ir.Value {
			x := b.Input("x", ir.F32, ir.Dims(4096, 16, 4)...)
			return ops.ReduceSum(b, ops.Reshape(b, x, ir.Dims(4096, 64)...), 0)
		}, true},
		"groups of ten channels": {func(b *ir.Builder) ir.Value {
			x, mean := b.Input("x", ir.F32, ir.Dims(4, 64, 320)...), b.Input("mean", ir.F32, ir.Dims(4, 1, 32, 1)...)
			parts := ops.Reshape(b, x, ir.Dims(4, 64, 32, 10)...)
			return ops.ReduceSum(b, ops.Square(b, ops.Sub(b, parts, ops.BroadcastTo(b, mean, parts.Shape()))), 1, 3)
		}, false},
		"parts of 4 in another order": {func(b *ir.Builder) ir.Value {
			x := b.Input("x", ir.F32, ir.Dims(4096, 4, 16)...)
			return ops.ReduceSum(b, ops.Reshape(b, ops.Transpose(b, x, 0, 2, 1), ir.Dims(4096, 64)...), 0)
		}, true},
		"weights that adjacent rows share": {func(b *ir.Builder) ir.Value {
			w := ops.BroadcastInDim(b, b.Input("w", ir.F32, ir.Dims(100, 1200)...), ir.Dims(100, 1200, 64), []int{0, 1})
			y := ops.BroadcastInDim(b, b.Input("y", ir.F32, ir.Dims(1200, 64)...), ir.Dims(100, 1200, 64), []int{1, 2})
			return ops.ReduceSum(b, ops.Mul(b, w, ops.Abs(b, y)), 1)
		}, true},
		"rows": {func(b *ir.Builder) ir.Value {
			x := b.Input("x", ir.F32, ir.Dims(4096, 16, 4)...)
			return ops.ReduceSum(b, ops.Reshape(b, x, ir.Dims(4096, 64)...), 1)
		}, false},
	} {
		p := groupsOnTensorCores(t, build(t, func(b *ir.Builder) { b.Output("y", c.sum(b)) }))
		for _, item := range p.Items {
			if g := item.(*fusion.Group); g.Kind == fusion.ReduceKind && g.Rows().AreContiguous() != c.want {
				t.Errorf("%s: adjacent rows are contiguous: %t, not %t\n%s", name, !c.want, c.want, p)
			}
		}
	}
}
