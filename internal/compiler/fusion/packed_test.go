package fusion_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestPackedWeightsAreReadOnce checks that a product of one row or many with packed weights of
// any format, as bytes and as words, is one group: no other group unpacks the weights first.
func TestPackedWeightsAreReadOnce(t *testing.T) {
	const n, k = 128, 512
	for format, bytes := range map[string]int{ // of a row
		"q4_0": 288, "q4_1": 320, "q5_0": 352, "q5_1": 384, "q8_0": 544, "q2_k": 168, "q3_k": 220, "q4_k": 288, "q5_k": 352,
		"q6_k": 420, "q8_k": 584, "iq4_nl": 288, "iq4_xs": 272, "mxfp4": 272, "nvfp4": 288, "f8_e4m3": 512, "f8_e5m2": 512,
	} {
		for _, d := range []ir.DType{ir.U8, ir.U32} {
			for _, rows := range []int{1, 50} {
				p := groups(t, build(t, func(b *ir.Builder) {
					w := b.Input("w", d, ir.Dims(n, bytes/d.Size())...)
					b.Output("y", ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(rows, k)...), w, format))
				}))
				if written := writtenBy(p); len(p.Items) != 1 || written != rows*n {
					t.Errorf("%s as %s, %d rows: %d groups write %d elements", format, d, rows, len(p.Items), written)
				}
			}
		}
	}
}

func writtenBy(p *fusion.Partition) int {
	written := 0
	for _, item := range p.Items {
		for _, w := range item.(*fusion.Group).Writes() {
			written += fusion.Product(w.Dims)
		}
	}
	return written
}
