package matmul_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// tensorMapCases are products, with the rank of the first operand's tensor map.
var tensorMapCases = []struct {
	name string
	axes int // of the first operand's tensor map, 0 for none
	f    func(b *ir.Builder)
}{
	{"rows of both", 2, func(b *ir.Builder) { schedtest.MatmulOf(b, ir.BF16, 200, 136, 264, "nn", true) }},
	{"rows of odd lengths, which are staged", 2, func(b *ir.Builder) { schedtest.MatmulOf(b, ir.F16, 200, 135, 263, "nn", true) }},
	{"turned f32, whose rows go by registers", 0, func(b *ir.Builder) { schedtest.MatmulOf(b, ir.F32, 200, 136, 264, "tt", false) }},
	{"batches", 3, func(b *ir.Builder) {
		x, y := b.Input("x", ir.BF16, ir.Dims(3, 136, 72)...), b.Input("y", ir.BF16, ir.Dims(3, 72, 72)...)
		b.Output("z", ops.MatMul(b, x, y))
	}},
	{"batches of two axes that lie crosswise", 0, func(b *ir.Builder) {
		x := ops.Transpose(b, b.Input("x", ir.BF16, ir.Dims(2, 136, 3, 72)...), 0, 2, 1, 3)
		y := ops.Transpose(b, b.Input("y", ir.BF16, ir.Dims(2, 72, 3, 72)...), 0, 2, 1, 3)
		b.Output("z", ops.MatMul(b, x, y))
	}},
	{"rows of a larger matrix", 2, func(b *ir.Builder) {
		x := ops.Slice(b, b.Input("x", ir.BF16, ir.Dims(140, 96)...), ir.Dims(2, 8), ir.Dims(136, 72), nil)
		b.Output("z", ops.MatMul(b, x, b.Input("y", ir.BF16, ir.Dims(72, 72)...)))
	}},
	{"rows in reverse", 0, func(b *ir.Builder) {
		x := ops.Reverse(b, b.Input("x", ir.BF16, ir.Dims(136, 72)...), 0)
		b.Output("z", ops.MatMul(b, x, b.Input("y", ir.BF16, ir.Dims(72, 72)...)))
	}},
	{"a matrix with zeros around it, which is staged", 2, func(b *ir.Builder) {
		x := ops.Pad(b, b.Input("x", ir.BF16, ir.Dims(120, 72)...), ops.Const(b, ir.BF16, 0), []int{8, 0}, []int{8, 0}, []int{0, 0})
		b.Output("z", ops.MatMul(b, x, b.Input("y", ir.BF16, ir.Dims(72, 72)...)))
	}},
}

// TestOperandsCopiedByTensorMaps expects copies by tensor map for operands that have one, and right
// results for all, also beyond the ends, in tiles whose results pass through the memory of their stages.
func TestOperandsCopiedByTensorMaps(t *testing.T) {
	for _, c := range tensorMapCases {
		t.Run(c.name, func(t *testing.T) {
			g := schedtest.Build(t, c.f)
			by := schedtest.ContractionsBy(t, g, schedtest.Hopper(), matmul.OverlaySchedules(schedtest.Hopper().Caps)[0])
			axes, found := 0, false
			for _, k := range schedtest.Kernels(t, g, by) {
				if k.HasMma() {
					found = true
				}
				if len(k.TensorMaps) > 0 {
					axes = len(k.TensorMaps[0].Dims)
				}
				if k.HasRoles() != (len(k.TensorMaps) > 0) {
					t.Errorf("%s has roles %t and %d tensor maps", k.Name, k.HasRoles(), len(k.TensorMaps))
				}
				if err := schedtest.Hopper().Check(k); err != nil {
					t.Error(err)
				}
			}
			if !found || axes != c.axes {
				t.Errorf("multiply-adds %t, tensor maps of %d axes, want %d", found, axes, c.axes)
			}
			schedtest.RunOn(t, g, by, schedtest.Wholes)
		})
	}
}
