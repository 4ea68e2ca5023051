package backendtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// LargeMaps checks maps large enough for vectorised kernels and tiled transposes, with
// sides that are multiples of the vector length and sides that are not.
func LargeMaps(t *testing.T, b native.Backend) {
	for _, c := range []struct{ rows, columns int }{{1100, 1188}, {1103, 1187}} {
		t.Run(fmt.Sprintf("%dx%d", c.rows, c.columns), func(t *testing.T) {
			p := compile(t, b, build(t, "maps", func(b *ir.Builder) {
				x, bias := b.Input("x", ir.F32, ir.Dims(c.rows, c.columns)...), b.Input("bias", ir.F32, ir.N(c.columns))
				b.Output("transposed", ops.Neg(b, ops.Transpose(b, x, 1, 0)))
				b.Output("straight", ops.Add(b, ops.Mul(b, x, x), ops.BroadcastInDim(b, bias, x.Shape(), []int{1})))
			}))
			defer closeProgram(t, p)
			x, bias := make([]float32, c.rows*c.columns), make([]float32, c.columns)
			transposed, straight := make([]float32, len(x)), make([]float32, len(x))
			for i := range x {
				row, column := i/c.columns, i%c.columns
				x[i], bias[column] = float32(i%4093), float32(column)
				transposed[column*c.rows+row], straight[i] = -x[i], x[i]*x[i]+bias[column]
			}
			r, err := p.Run(context.Background(), "maps", map[string]native.Tensor{
				"x": native.Float32s(x, c.rows, c.columns), "bias": native.Float32s(bias),
			})
			out := wait(t, r, err)
			for name, want := range map[string][]float32{"transposed": transposed, "straight": straight} {
				got := floats(t, out[name])
				for i := range want {
					if !near(got[i], want[i]) {
						t.Fatalf("%s: element %d is %v, not %v", name, i, got[i], want[i])
					}
				}
			}
		})
	}
}
