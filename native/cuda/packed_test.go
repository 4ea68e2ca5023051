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
		for _, format := range []string{"q4_0", "q4_1", "q8_0", "q4_k", "q6_k", "iq4_nl"} {
			for _, s := range []struct{ rows, n, k int }{{3, 130, 1024}, {17, 4096, 512}, {64, 200, 2048}} {
				t.Run(fmt.Sprintf("%s %s %dx%dx%d", name, format, s.rows, s.n, s.k), func(t *testing.T) { checkPackedProduct(t, b, format, s.rows, s.n, s.k) })
			}
		}
	}
}

func checkPackedProduct(t *testing.T, b native.Backend, format string, rows, n, k int) {
	t.Helper()
	ctx := context.Background()
	each, bytes, _ := ops.PackedBlock(format)
	g, err := ir.Build("product", func(b *ir.Builder) {
		b.Output("y", ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(rows, k)...), b.Input("w", ir.U8, ir.Dims(n, k/each*bytes)...), format))
	})
	must(t, err)
	p := compileWith(t, b, g, native.Options{})
	if !multiplies(p) {
		t.Fatal("no multiply-adds")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	x, w := make([]float32, rows*k), native.Zeros(ir.U8, n, k/each*bytes)
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
	weights := unpacked(t, format, w)
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

// unpacked returns packed weights as the reference interpreter unpacks them.
func unpacked(t *testing.T, format string, w native.Tensor) []float64 {
	t.Helper()
	g, err := ir.Build("unpack", func(b *ir.Builder) {
		b.Output("y", ops.Dequantize(b, b.Input("w", ir.U8, ir.Dims(w.Dims...)...), format, ir.F32))
	})
	must(t, err)
	packed := ir.NewArray(ir.U8, w.Dims...)
	for i, v := range w.Data {
		packed.I[i] = int64(v)
	}
	out, err := ir.Eval(g, map[string]*ir.Array{"w": packed}, ir.EvalOptions{})
	must(t, err)
	numbers := make([]float64, out[0].Len())
	for i := range numbers {
		numbers[i] = out[0].Float(i)
	}
	return numbers
}
