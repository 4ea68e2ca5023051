package workload_test

import (
	"testing"

	_ "github.com/rlx-go/rlx/internal/ballast"
	"github.com/rlx-go/rlx/internal/workload"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestWorkByHand counts a product, a loop of products and a sum.
func TestWorkByHand(t *testing.T) {
	const m, k, n, steps = 3, 5, 7, 11
	g, err := ir.Build("g", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(m, k)...), b.Param("w", ir.F32, ir.Dims(k, n)...)
		y := ops.Tanh(b, ops.MatMul(b, x, w))
		square := b.Param("square", ir.F32, ir.Dims(n, n)...)
		z, _ := ops.Scan(b, ops.Loop{
			Consts: []ir.Value{square}, Carries: []ir.Value{y}, Length: ir.N(steps),
			Body: func(b *ir.Builder, consts, carries, _ []ir.Value) (next, ys []ir.Value) {
				return []ir.Value{ops.MatMul(b, carries[0], consts[0])}, nil
			},
		})
		b.Output("total", ops.ReduceSum(b, z[0], 0, 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := workload.Work{
		Operations: 2*m*k*n + steps*2*m*n*n,
		Bytes:      4 * ((m*k + k*n + m*n) + steps*(m*n+n*n+m*n) + (m*n + 1)),
		Kernels:    1 + steps + 1,
		Transfer:   4 * (m*k + 1),
	}
	if got := workload.Of(g); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}
