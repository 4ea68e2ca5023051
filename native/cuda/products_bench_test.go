//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// products are the shapes of products that are timed: m×k times k×n, many at once
// where batch is more than 1, each as stored or transposed.
var products = []struct {
	batch, m, n, k int
	layout         string
}{
	{1, 256, 256, 256, "nn"},
	{1, 512, 512, 512, "nn"},
	{1, 1024, 1024, 1024, "nn"},
	{1, 2048, 2048, 2048, "nn"},
	{1, 4096, 4096, 4096, "nn"},
	{1, 4096, 4096, 4096, "nt"},
	{1, 4096, 4096, 4096, "tn"},
	{1, 4096, 4096, 4096, "tt"},
	{1, 128, 512, 784, "nn"},
	{1, 4096, 512, 784, "nn"},
	{1, 784, 512, 4096, "tn"},
	{1, 4096, 10, 512, "nn"},
	// Few rows: recurrent steps, and requests that a server joins.
	{1, 1, 4096, 4096, "nn"},
	{1, 4, 4096, 4096, "nn"},
	{1, 16, 4096, 1024, "nn"},
	{1, 64, 4096, 1024, "nn"},
	{1, 16, 1024, 4096, "nt"},
	{1, 16, 4096, 4096, "nn"},
	{1, 16, 4096, 4096, "nt"},
	{1, 32, 14336, 4096, "nn"},
	{1, 32, 4096, 14336, "nn"},
	{1, 64, 4096, 4096, "nt"},
	{1, 16384, 1152, 384, "nn"},
	{1, 16384, 384, 1536, "nt"},
	{1, 384, 1536, 16384, "tn"},
	{1, 16384, 768, 3072, "nn"},
	{1, 256, 256, 65536, "tn"},
	{1, 16384, 64, 4096, "nn"},
	{64, 256, 256, 64, "nt"},
	{64, 512, 64, 512, "nn"},
	{384, 256, 64, 256, "tn"},
	{1, 8192, 8192, 8192, "nn"},
	// GPT-2 124M: forward, the gradients of activations, those of weights.
	{1, 16384, 2304, 768, "nn"},
	{1, 16384, 768, 768, "nn"},
	{1, 16384, 3072, 768, "nn"},
	{1, 16384, 50304, 768, "nt"},
	{1, 16384, 768, 2304, "nt"},
	{1, 16384, 768, 768, "nt"},
	{1, 16384, 3072, 768, "nt"},
	{1, 16384, 768, 3072, "nt"},
	{1, 16384, 768, 50304, "nn"},
	{1, 768, 2304, 16384, "tn"},
	{1, 768, 768, 16384, "tn"},
	{1, 768, 3072, 16384, "tn"},
	{1, 3072, 768, 16384, "tn"},
	{1, 768, 50304, 16384, "tn"},
	// Small transformers: projections, and the gradients of their weights.
	{1, 4096, 192, 192, "nn"},
	{1, 4096, 192, 192, "nt"},
	{1, 192, 192, 4096, "tn"},
	{1, 2048, 256, 256, "nn"},
	{1, 256, 256, 2048, "tn"},
	{1, 8192, 384, 384, "nn"},
	{1, 384, 384, 8192, "tn"},
	// Recurrent steps of small batches, the gradients of their states and weights, and their vocabulary.
	{1, 64, 1024, 256, "nn"},
	{1, 64, 256, 1024, "nt"},
	{1, 128, 1024, 256, "nn"},
	{1, 128, 256, 1024, "nt"},
	{1, 128, 768, 256, "nn"},
	{1, 128, 2048, 512, "nn"},
	{1, 128, 512, 2048, "nt"},
	{1, 256, 512, 512, "nn"},
	{1, 256, 512, 512, "nt"},
	{1, 256, 1024, 128, "tn"},
	{1, 128, 1024, 4096, "tn"},
	{1, 256, 1000, 4096, "tn"},
	{1, 4096, 1000, 256, "nn"},
	{1, 4096, 128, 1024, "nt"},
	// Narrow multilayer perceptrons.
	{1, 4096, 64, 64, "nn"},
	{1, 4096, 64, 64, "nt"},
	{1, 64, 64, 4096, "tn"},
	{1, 16384, 64, 64, "nn"},
	{1, 64, 64, 16384, "tn"},
	{1, 4096, 128, 128, "nn"},
	{1, 4096, 128, 128, "nt"},
	{1, 128, 128, 4096, "tn"},
	{1, 256, 128, 128, "nn"},
	{1, 128, 128, 256, "tn"},
}

// BenchmarkProducts compares products by kernels with those by cuBLASLt, alone and with a sum and a
// maximum as epilogue: the measurements for [loop.FasterProducts].
func BenchmarkProducts(b *testing.B) {
	gpu(b)
	ways := []struct {
		name string
		by   native.Backend
	}{
		{"kernels", cuda.With(loop.NoProducts)}, {"cublaslt", cuda.With(loop.AllProducts)}, {"chosen", cuda.With(loop.FasterProducts)}, {"warps", cuda.ByWarps()},
	}
	for _, s := range products {
		for _, kind := range []string{"f32", "tf32", "bf16"} {
			for _, behind := range []string{"", "_bias_relu"} {
				for _, w := range ways {
					d := map[string]ir.DType{"f32": ir.F32, "tf32": ir.F32, "bf16": ir.BF16}[kind]
					b.Run(fmt.Sprintf("%dx%dx%dx%d_%s_%s%s/%s", s.batch, s.m, s.n, s.k, s.layout, kind, behind, w.name), func(b *testing.B) {
						g := productIn(b, d, s.batch, s.m, s.n, s.k, s.layout, behind != "")
						p := compileWith(b, w.by, g, native.Options{TF32: kind == "tf32"})
						begin(b, p, g, 1)
						must(b, cuda.Replay(p, "step", 3))
						b.ResetTimer()
						must(b, cuda.Replay(p, "step", b.N))
						work := 2 * float64(s.batch) * float64(s.m) * float64(s.n) * float64(s.k)
						b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e12, "TFLOP/s")
						b.ReportMetric(float64(cuda.Calls(p)), "calls")
					})
				}
			}
		}
	}
}

// productIn stores products, or the larger of them plus a bias and 0, in a state.
func productIn(b *testing.B, d ir.DType, batch, m, n, k int, layout string, behind bool) *ir.Graph {
	g, err := ir.Build("product", func(b *ir.Builder) {
		operand := func(name string, turned bool, r, c int) ir.Value {
			if turned {
				return ops.Transpose(b, b.Param(name, d, ir.Dims(batch, c, r)...), 0, 2, 1)
			}
			return b.Param(name, d, ir.Dims(batch, r, c)...)
		}
		z := ops.MatMul(b, operand("x", layout[0] == 't', m, k), operand("y", layout[1] == 't', k, n))
		if behind {
			z = ops.Relu(b, ops.Add(b, z, b.Param("bias", d, ir.N(n))))
		}
		b.State("z", d, ir.Dims(batch, m, n)...)
		b.SetState("z", z)
	})
	must(b, err)
	return g
}
