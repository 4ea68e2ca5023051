package plansim_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestRepeatedRowsKeepPositions has a reduction of a single row, which the rows of a square matrix may each compute, and a value
// of that row that the rows read at another position: by their number, not by the column.
func TestRepeatedRowsKeepPositions(t *testing.T) {
	const n = 4
	x, z := ir.NewArray(ir.F32, n), ir.NewArray(ir.F32, n, n)
	for i := range z.F {
		z.F[i] = float64(i%5) / 8
	}
	sum, row := 0., make([]float64, n)
	for i := range x.F {
		x.F[i] = float64(i+1) / 8
		row[i] = math.Erf(x.F[i])
		sum += row[i]
	}
	for name, c := range map[string]struct {
		f    func(b *ir.Builder, sum, row, z ir.Value) ir.Value
		want func(i int) float64
	}{
		"after the rows": {func(b *ir.Builder, sum, row, z ir.Value) ir.Value {
			return ops.Mul(b, ops.Mul(b, ops.ReduceSum(b, z, 1), ops.BroadcastTo(b, sum, row.Shape())), row)
		}, func(i int) float64 {
			return (z.F[n*i] + z.F[n*i+1] + z.F[n*i+2] + z.F[n*i+3]) * sum * row[i]
		}},
		"within the rows": {func(b *ir.Builder, sum, row, z ir.Value) ir.Value {
			lower := ops.Max(b, z, ops.BroadcastInDim(b, row, z.Shape(), []int{0}))
			return ops.Mul(b, ops.ReduceSum(b, lower, 1), ops.BroadcastTo(b, sum, row.Shape()))
		}, func(i int) float64 {
			s := 0.
			for j := range n {
				s += max(z.F[n*i+j], row[i])
			}
			return s * sum
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, out := runGraph(t, map[string]*ir.Array{"x": x, "z": z}, func(b *ir.Builder) {
				row := ops.Erf(b, b.Input("x", ir.F32, ir.N(n)))
				b.Output("y", c.f(b, ops.ReduceSum(b, row), row, b.Input("z", ir.F32, ir.Dims(n, n)...)))
			})
			for i, y := range out["y"].F {
				if want := c.want(i); !(math.Abs(y-want) <= 1e-5) {
					t.Errorf("element %d is %g, not %g", i, y, want)
				}
			}
		})
	}
}
