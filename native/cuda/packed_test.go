//go:build cgo && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda"
)

// Products of several rows with packed weights by multiply-adds err by a millionth of the magnitudes of their terms at most:
// of weights that pass through shared memory and of others, with offsets and without, in parts of the contracted space.
func TestGPUMultipliesPackedWeights(t *testing.T) {
	gpu(t)
	for name, b := range map[string]native.Backend{"warp groups": cuda.With(loop.NoProducts), "warps": cuda.ByWarps()} {
		for _, format := range []string{"bf16", "q4_0", "q4_1", "q8_0", "q4_k", "q6_k", "iq4_nl"} {
			for _, s := range []struct{ rows, n, k int }{{3, 130, 1024}, {17, 4096, 512}, {64, 200, 2048}, {150, 1000, 512}} {
				t.Run(fmt.Sprintf("%s %s %dx%dx%d", name, format, s.rows, s.n, s.k), func(t *testing.T) { checkPackedProduct(t, b, format, s.rows, s.n, s.k) })
			}
		}
	}
}

func checkPackedProduct(t *testing.T, b native.Backend, format string, rows, n, k int) {
	t.Helper()
	ctx := context.Background()
	g, err := ir.Build("product", func(b *ir.Builder) {
		b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(rows, k)...), ops.Transpose(b, unpacking(b, format, n, k), 1, 0)))
	})
	must(t, err)
	p := compileWith(t, b, g, native.Options{})
	if !multiplies(p) {
		t.Fatal("no multiply-adds")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	x, w := make([]float32, rows*k), packedWeights(format, n, k)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for i := range w.Data { // no scale is above 1
		w.Data[i] = byte(rng.Uint32()) & 0x3b
	}
	r, err := p.Run(ctx, "step", map[string]native.Tensor{"x": native.Float32s(x, rows, k), "w": w})
	must(t, err)
	out, err := r.Wait(ctx)
	must(t, err)
	got, err := out["y"].Float32s()
	must(t, err)
	weights := unpacked(t, format, n, k, w)
	for i := range got {
		want, magnitudes := 0., 0.
		for j := range k {
			term := float64(x[i/n*k+j]) * weights[i%n*k+j]
			want, magnitudes = want+term, magnitudes+math.Abs(term)
		}
		if limit := 1e-6 * magnitudes; !(math.Abs(float64(got[i])-want) <= limit) {
			t.Fatalf("(%d, %d) is %v, want %v, within %v", i/n, i%n, got[i], want, limit)
		}
	}
}

// packedWeights returns room for weights of a format; "bf16" has no blocks.
func packedWeights(format string, n, k int) native.Tensor {
	if format == "bf16" {
		return native.Zeros(ir.BF16, n, k)
	}
	each, bytes, _ := ops.PackedBlock(format)
	return native.Zeros(ir.U8, n, k/each*bytes)
}

// unpacking adds weights to a graph, as f32.
func unpacking(b *ir.Builder, format string, n, k int) ir.Value {
	w := packedWeights(format, n, k)
	x := b.Input("w", w.DType, ir.Dims(w.Dims...)...)
	if format == "bf16" {
		return ops.Convert(b, x, ir.F32)
	}
	return ops.Dequantize(b, x, format, ir.F32)
}

// unpacked returns weights as the reference interpreter unpacks them.
func unpacked(t *testing.T, format string, n, k int, w native.Tensor) []float64 {
	t.Helper()
	g, err := ir.Build("unpack", func(b *ir.Builder) { b.Output("y", unpacking(b, format, n, k)) })
	must(t, err)
	packed, err := ir.ArrayOf(ir.TypeOf(w.DType, ir.Dims(w.Dims...)...), w.Data)
	must(t, err)
	out, err := ir.Eval(g, map[string]*ir.Array{"w": packed}, ir.EvalOptions{})
	must(t, err)
	numbers := make([]float64, out[0].Len())
	for i := range numbers {
		numbers[i] = out[0].Float(i)
	}
	return numbers
}
