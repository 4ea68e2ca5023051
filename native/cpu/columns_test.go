package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestColumnsOfEveryHeight reduces columns several rows at a time, with a remainder, over one axis
// and over two that are not adjacent. The terms of one sum depend on the row's position, those of
// the others do not. The expected values are computed in float64.
func TestColumnsOfEveryHeight(t *testing.T) {
	const batch, cols = 3, 130
	everyLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 3, 7, 8, 9, 12, 16, 31, 64, 100} {
			x, y := random(batch*n*cols), random(batch*n*cols)
			got := outputs(t, graph(t, func(b *ir.Builder) {
				dims := ir.Dims(batch, n, cols)
				x, y := b.Input("x", ir.F32, dims...), b.Input("y", ir.F32, dims...)
				b.Output("sum", ops.ReduceSum(b, x, 0, 1))
				b.Output("each", ops.ReduceSum(b, ops.Mul(b, x, y), 1))
				b.Output("most", ops.ReduceMax(b, x, 1))
				b.Output("placed", ops.ReduceSum(b, ops.Mul(b, x, ops.Convert(b, ops.Iota(b, ir.I32, 1, dims...), ir.F32)), 0, 1))
			}), map[string]native.Tensor{"x": native.Float32s(x, batch, n, cols), "y": native.Float32s(y, batch, n, cols)})
			for j := range cols {
				sum, placed := 0.0, 0.0
				for k := range batch {
					each, most := 0.0, math.Inf(-1)
					for i := range n {
						at := (k*n+i)*cols + j
						v := float64(x[at])
						sum, placed, each, most = sum+v, placed+v*float64(i), each+v*float64(y[at]), max(most, v)
					}
					near(t, fmt.Sprint("products of ", n), k*cols+j, got["each"][k*cols+j], each, 1e-5)
					near(t, fmt.Sprint("most of ", n), k*cols+j, got["most"][k*cols+j], most, 0)
				}
				near(t, fmt.Sprint("sum of ", n), j, got["sum"][j], sum, 1e-4)
				near(t, fmt.Sprint("placed sum of ", n), j, got["placed"][j], placed, 1e-3)
			}
		}
	})
}

// TestColumnsFromTheLastRow sums columns of a length that fills no vectors from the last row to the first: the lanes
// after the last column of the last row are outside of the array.
func TestColumnsFromTheLastRow(t *testing.T) {
	everyLevel(t, func(t *testing.T) {
		for _, n := range []int{2, 12, 50} {
			for _, cols := range []int{3, 17, 187} {
				x := random(n * cols)
				got := outputs(t, graph(t, func(b *ir.Builder) {
					turned := ops.Reverse(b, b.Input("x", ir.F32, ir.Dims(n, cols)...), 0)
					b.Output("sum", ops.ReduceSum(b, turned, 0))
					b.Output("most", ops.ReduceMax(b, turned, 0))
				}), map[string]native.Tensor{"x": native.Float32s(x, n, cols)})
				for j := range cols {
					sum, most := 0.0, math.Inf(-1)
					for i := range n {
						v := float64(x[i*cols+j])
						sum, most = sum+v, max(most, v)
					}
					near(t, fmt.Sprint("sum of ", n), j, got["sum"][j], sum, 1e-5)
					near(t, fmt.Sprint("most of ", n), j, got["most"][j], most, 0)
				}
			}
		}
	})
}
