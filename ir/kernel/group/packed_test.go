package group_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPackedWeightsAreStoredNowhere counts what the kernels of products with one
// row and with many write: scales of blocks and results, and not the weights.
func TestPackedWeightsAreStoredNowhere(t *testing.T) {
	const n, k = 128, 512
	for format, words := range map[string]int{"q4_0": k / 32 * 18 / 4, "q8_0": k / 32 * 34 / 4, "q4_k": k / 256 * 144 / 4, "q6_k": k / 256 * 210 / 4} {
		for _, rows := range []int{1, 50} {
			written := writtenBy(groups(t, build(t, func(b *ir.Builder) {
				b.Output("y", ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(rows, k)...), b.Input("w", ir.U32, ir.Dims(n, words)...), format))
			})))
			if most := n*k/8 + rows*n; written > most {
				t.Errorf("%s, %d rows: %d elements are written for %d weights", format, rows, written, n*k)
			}
		}
	}
}

func writtenBy(p *group.Partition) int {
	written := 0
	for _, item := range p.Items {
		for _, w := range item.(*group.Group).Writes() {
			written += group.Product(w.Dims)
		}
	}
	return written
}
