//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestGPUMoments compares means and variances of columns that many workgroups share with those in f64: of numbers around 0
// and far from it, with an outlier, and of equal ones.
func TestGPUMoments(t *testing.T) {
	d := gpu(t)
	const rows, columns = 200_000, 4
	g, err := ir.Build("moments", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.Dims(rows, columns)...)
		b.Output("y", ops.Stack(b, 0, ops.Mean(b, x, 0), ops.Var(b, x, 0, 0)))
	})
	must(t, err)
	r, x := rand.New(rand.NewPCG(3, 4)), make([]float32, rows*columns)
	for i := range rows {
		noise := r.NormFloat64()
		for j, v := range []float64{noise, 1000 + noise, noise, 0.1} {
			x[i*columns+j] = float32(v)
		}
	}
	x[rows/2*columns+2] = 1e6
	p := compileWith(t, d, g, native.Options{})
	in := map[string]native.Tensor{"x": native.Float32s(x, rows, columns)}
	got := resultOf(t, p, in, []int{2, columns})
	for j, bound := range []float64{1e-5, 1e-4, 1e-4, 1e-9} {
		var sum, squares float64
		for i := range rows {
			sum += float64(x[i*columns+j])
		}
		mean := sum / rows
		for i := range rows {
			squares += math.Pow(float64(x[i*columns+j])-mean, 2)
		}
		if !(math.Abs(float64(got[j])-mean) <= 1e-5*max(1, math.Abs(mean))) {
			t.Errorf("column %d: mean %g, want %g", j, got[j], mean)
		}
		if want := squares / rows; !(math.Abs(float64(got[columns+j])-want) <= bound*max(1, want)) {
			t.Errorf("column %d: variance %g, want %g", j, got[columns+j], want)
		}
	}
}
