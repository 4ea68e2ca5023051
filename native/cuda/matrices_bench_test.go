//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// BenchmarkMatrices times factorisations and solves of many small matrices.
func BenchmarkMatrices(b *testing.B) {
	d := gpu(b)
	for _, c := range []struct {
		name        string
		batch, size int
		f           func(b *ir.Builder, x ir.Value) ir.Value
	}{
		{"cholesky", 1024, 32, ops.Cholesky},
		{"cholesky", 1024, 64, ops.Cholesky},
		{"cholesky", 1024, 128, ops.Cholesky},
		{"solve", 1024, 64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Solve(b, x, x, ops.SolveAttrs{}) }},
	} {
		b.Run(fmt.Sprintf("%s_%dx%d", c.name, c.batch, c.size), func(b *testing.B) {
			dims := ir.Dims(c.batch, c.size, c.size)
			g, err := ir.Build("matrices", func(b *ir.Builder) {
				b.State("y", ir.F32, dims...)
				b.SetState("y", c.f(b, b.Param("x", ir.F32, dims...)))
			})
			must(b, err)
			p := compile(b, d, g)
			must(b, p.Set("x", native.Float32s(dominant(c.batch, c.size), c.batch, c.size, c.size)))
			must(b, cuda.Replay(p, "step", 3))
			b.ResetTimer()
			must(b, cuda.Replay(p, "step", b.N))
			b.ReportMetric(float64(cuda.Launches(p)), "launches")
			b.ReportMetric(1e6*b.Elapsed().Seconds()/float64(b.N), "µs")
		})
	}
}

// dominant returns symmetric matrices with large diagonals.
func dominant(batch, size int) []float32 {
	out := make([]float32, batch*size*size)
	for i := range out {
		row, col := i/size%size, i%size
		out[i] = float32((row*col+i/size/size)%7) / 7
		if row == col {
			out[i] += 2 * float32(size)
		}
	}
	return out
}
