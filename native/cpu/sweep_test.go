package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// rowLengths are multiples of the vector length of one level or of all or have a remainder,
// and are longer than lane registers or not.
var rowLengths = []int{4, 8, 16, 32, 48, 64, 100, 512, 528, 4096, 4128}

// TestRowsThatDependOnTheirIndex has sums under a causal mask, which uses the coordinates of
// rows and of lanes, with two axes of rows, one of them reversed. The expected values are
// computed in float64.
func TestRowsThatDependOnTheirIndex(t *testing.T) {
	const batch, rows = 37, 5 // chunks end within a batch
	everyLevel(t, func(t *testing.T) {
		for _, n := range rowLengths {
			x := random(batch * rows * n)
			got := outputs(t, graph(t, func(b *ir.Builder) {
				dims := ir.Dims(batch, rows, n)
				x := b.Input("x", ir.F32, dims...)
				row, lane := ops.Iota(b, ir.I32, 1, dims...), ops.Iota(b, ir.I32, 2, dims...)
				seen := ops.Select(b, ops.Ge(b, row, lane), x, ops.Mul(b, x, ops.Convert(b, row, ir.F32)))
				b.Output("sum", ops.ReduceSum(b, seen, 2))
				b.Output("y", ops.Reverse(b, ops.Sub(b, seen, ops.ExpandDims(b, ops.ReduceMax(b, seen, 2), -1)), 1))
			}), map[string]native.Tensor{"x": native.Float32s(x, batch, rows, n)})
			for i := range batch * rows {
				sum, most, row := 0.0, math.Inf(-1), i%rows
				seen := make([]float64, n)
				for j := range n {
					seen[j] = float64(x[i*n+j])
					if j > row {
						seen[j] *= float64(row)
					}
					sum, most = sum+seen[j], max(most, seen[j])
				}
				near(t, fmt.Sprint("sum of ", n), i, got["sum"][i], sum, 4*float64(n)*0x1p-24) // n roundings of numbers below 4
				turned := i - row + rows - 1 - row
				for j := range n {
					near(t, fmt.Sprint("difference of ", n), i*n+j, got["y"][turned*n+j], seen[j]-most, 1e-5)
				}
			}
		}
	})
}

// TestRowsAtDataDependentOffsets gathers rows of a table and normalises them: the address
// of a row is computed before it.
func TestRowsAtDataDependentOffsets(t *testing.T) {
	const rows, table = 6, 4
	places := []int32{3, 0, 2, 2, 1, 3}
	everyLevel(t, func(t *testing.T) {
		for _, n := range rowLengths {
			x := random(table * n)
			got := outputs(t, graph(t, func(b *ir.Builder) {
				x := b.Input("x", ir.F32, ir.Dims(table, n)...)
				taken := ops.Embedding(b, x, b.Input("places", ir.I32, ir.N(rows)))
				b.Output("y", ops.Softmax(b, ops.Mul(b, taken, taken), 1))
			}), map[string]native.Tensor{"x": native.Float32s(x, table, n), "places": native.Int32s(places, rows)})
			for i, at := range places {
				sum, row := 0.0, x[int(at)*n:][:n]
				for _, v := range row {
					sum += math.Exp(float64(v) * float64(v))
				}
				for j, v := range row {
					near(t, fmt.Sprint("softmax of ", n), i*n+j, got["y"][i*n+j], math.Exp(float64(v)*float64(v))/sum, 1e-6)
				}
			}
		}
	})
}

// TestMergedAxes transposes the heads of attention, which merges axes of the result that are
// not adjacent in the operand.
func TestMergedAxes(t *testing.T) {
	const batch, heads, length = 2, 3, 5
	everyLevel(t, func(t *testing.T) {
		for _, depth := range []int{1, 6, 16, 40} {
			x := random(batch * heads * length * depth)
			got := outputs(t, graph(t, func(b *ir.Builder) {
				x := ops.Transpose(b, b.Input("x", ir.F32, ir.Dims(batch, heads, length, depth)...), 0, 2, 1, 3)
				merged := ops.Reshape(b, x, ir.Dims(batch, length, heads*depth)...)
				b.Output("y", ops.Add(b, merged, ops.Convert(b, ops.Iota(b, ir.I32, 2, ir.Dims(batch, length, heads*depth)...), ir.F32)))
			}), map[string]native.Tensor{"x": native.Float32s(x, batch, heads, length, depth)})
			for i, y := range got["y"] {
				column, row := i%(heads*depth), i/(heads*depth)
				from := ((row/length*heads+column/depth)*length+row%length)*depth + column%depth
				near(t, fmt.Sprint("depth ", depth), i, y, float64(x[from]+float32(column)), 0)
			}
		}
	})
}
