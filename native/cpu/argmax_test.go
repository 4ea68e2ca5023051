package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// The first NaN is the maximum, at any position of a row.
func TestArgMaxFindsNaNInRowsOfAnyLength(t *testing.T) {
	for _, n := range []int{5, 17, 100, 700, 5000} {
		for _, at := range []int{1, n / 2, n - 2} {
			t.Run(fmt.Sprint(n, " ", at), func(t *testing.T) {
				x := make([]float32, n)
				x[0], x[at], x[at+1] = 3, float32(math.NaN()), float32(math.NaN())
				p := compileGraphs(t, graph(t, func(b *ir.Builder) {
					b.Output("y", ops.ArgMax(b, b.Input("x", ir.F32, ir.N(n)), 0))
				}))
				out := run(t, p, map[string]native.Tensor{"x": native.Float32s(x)})
				if y, err := out["y"].Int32s(); err != nil || int(y[0]) != at {
					t.Errorf("the place is %v, not %d: %v", y, at, err)
				}
			})
		}
	}
}
