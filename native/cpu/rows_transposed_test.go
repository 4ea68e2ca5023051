package cpu_test

import (
	"context"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestSoftmaxOfShortRows compares rows that fill no whole vectors, scaled by a factor of each column and
// of each row, with the definition in f64.
func TestSoftmaxOfShortRows(t *testing.T) {
	const rows = 301
	for _, n := range []int{9, 50, 95} {
		g := build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(rows, n)...)
			x = ops.Mul(b, x, ops.Convert(b, ops.Iota(b, ir.I32, 1, ir.Dims(1, n)...), ir.F32))
			b.Output("y", ops.Softmax(b, ops.Sub(b, x, b.Input("offset", ir.F32, ir.Dims(rows, 1)...)), 1))
		})
		x, offset := make([]float32, rows*n), make([]float32, rows)
		for i := range x {
			x[i] = float32(math.Mod(float64(i)*0.7548776662, 1) - 0.5)
			offset[i/n] = float32(i/n%13) - 6
		}
		p := compiled(t, g)
		y, err := run(t, p, map[string]native.Tensor{"x": native.Float32s(x, rows, n), "offset": native.Float32s(offset, rows, 1)})["y"].Float32s()
		p.Close(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for row := range rows {
			sum := 0.0
			for j := range n {
				sum += math.Exp(float64(x[row*n+j]) * float64(j))
			}
			for j := range n {
				want := math.Exp(float64(x[row*n+j])*float64(j)) / sum
				if got := float64(y[row*n+j]); !(math.Abs(got-want) <= 1e-5*want+1e-9) {
					t.Fatalf("row %d of %d elements: element %d is %g, not %g", row, n, j, got, want)
				}
			}
		}
	}
}
