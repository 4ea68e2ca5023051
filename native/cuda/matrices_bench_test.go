//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// matrixSizes are many small matrices, and one large one.
var matrixSizes = [][2]int{{1024, 64}, {64, 64}, {1, 512}, {1, 1024}, {1, 2048}, {1, 4096}, {1, 8192}}

// BenchmarkMatrices times factorisations and solves, for which bench/peers.py has
// those of PyTorch.
func BenchmarkMatrices(b *testing.B) {
	d := gpu(b)
	for _, c := range []struct {
		name string
		f    func(b *ir.Builder, x ir.Value) []ir.Value
	}{
		{"cholesky", func(b *ir.Builder, x ir.Value) []ir.Value { return []ir.Value{ops.Cholesky(b, x)} }},
		{"lu", func(b *ir.Builder, x ir.Value) []ir.Value { return b.Add(ops.OpLU, nil, x)[:1] }},
		{"solve", func(b *ir.Builder, x ir.Value) []ir.Value { return []ir.Value{ops.Solve(b, x, x, ops.SolveAttrs{})} }},
		{"qr", func(b *ir.Builder, x ir.Value) []ir.Value { return b.Add(ops.OpQR, &ops.FullAttrs{}, x) }},
		{"eigh", func(b *ir.Builder, x ir.Value) []ir.Value { return b.Add(ops.OpEigh, nil, x) }},
		{"svd", func(b *ir.Builder, x ir.Value) []ir.Value { return b.Add(ops.OpSVD, &ops.FullAttrs{}, x) }},
	} {
		for _, s := range matrixSizes {
			batch, size := s[0], s[1]
			b.Run(fmt.Sprintf("%s_%dx%d", c.name, batch, size), func(b *testing.B) {
				g, err := ir.Build("matrices", func(b *ir.Builder) {
					for i, y := range c.f(b, b.Param("x", ir.F32, ir.Dims(batch, size, size)...)) {
						b.Output(fmt.Sprint("y", i), y) // not read by replays
					}
				})
				must(b, err)
				p := compile(b, d, g)
				must(b, p.Set(context.Background(), "x", native.Float32s(dominant(batch, size), batch, size, size)))
				replayed(b, p)
			})
		}
	}
}

// replayed times replays of a program, and reports microseconds.
func replayed(b *testing.B, p native.Program) {
	must(b, cuda.Replay(p, "step", 3))
	b.ResetTimer()
	must(b, cuda.Replay(p, "step", b.N))
	b.ReportMetric(float64(cuda.Launches(p)), "launches")
	b.ReportMetric(1e6*b.Elapsed().Seconds()/float64(b.N), "µs")
}

// BenchmarkFourier times transforms of rows of 2²⁰ complex numbers. A pass reads and
// writes all of them.
func BenchmarkFourier(b *testing.B) {
	d := gpu(b)
	const rows, length = 16, 1 << 20
	g, err := ir.Build("fourier", func(b *ir.Builder) {
		p := func(name string) ir.Value { return b.Param(name, ir.F32, ir.Dims(rows, length)...) }
		re, im := ops.DFT(b, p("re"), p("im"), false)
		for i, y := range []ir.Value{re, im} {
			b.Output(fmt.Sprint("y", i), y)
		}
	})
	must(b, err)
	p := compile(b, d, g)
	x := make([]float32, rows*length)
	for i := range x {
		x[i] = rand.Float32() - 0.5
	}
	for _, name := range []string{"re", "im"} {
		must(b, p.Set(context.Background(), name, native.Float32s(x, rows, length)))
	}
	b.Run(fmt.Sprintf("%dx%d", rows, length), func(b *testing.B) {
		replayed(b, p)
		passes := float64(b.N * cuda.Launches(p))
		b.ReportMetric(passes*2*8*rows*length/b.Elapsed().Seconds()/1e9, "GB/s/pass")
	})
	timings, err := p.(native.Profiler).Profile(context.Background(), "step", 3)
	must(b, err)
	must(b, native.WriteTimings(os.Stdout, timings))
}

// dominant returns symmetric matrices of random numbers with large diagonals.
func dominant(batch, size int) []float32 {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]float32, batch*size*size)
	for m := range batch {
		for i := range size {
			for j := range i + 1 {
				x := rng.Float32() - 0.5
				if i == j {
					x += float32(size)
				}
				out[(m*size+i)*size+j], out[(m*size+j)*size+i] = x, x
			}
		}
	}
	return out
}
