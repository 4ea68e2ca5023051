package group_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPackedWeightsOfOneRowAreStoredNowhere counts what the kernels of a product
// write: scales of blocks, and not the weights.
func TestPackedWeightsOfOneRowAreStoredNowhere(t *testing.T) {
	const n, k = 128, 512
	for format, words := range map[string]int{"q4_0": k / 32 * 18 / 4, "q8_0": k / 32 * 34 / 4, "q4_k": k / 256 * 144 / 4, "q6_k": k / 256 * 210 / 4} {
		p := groups(t, build(t, func(b *ir.Builder) {
			b.Output("y", ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.N(1), ir.N(k)), b.Input("w", ir.U32, ir.Dims(n, words)...), format))
		}))
		written := 0
		for _, item := range p.Items {
			for _, w := range item.(*group.Group).Writes() {
				size := 1
				for _, d := range w.Dims {
					size *= d
				}
				written += size
			}
		}
		if written > n*k/8 {
			t.Errorf("%s: %d elements are written for %d weights:\n%s", format, written, n*k, p)
		}
	}
}
