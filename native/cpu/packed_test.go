package cpu_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// packedWeights returns random quantised weights as rows of bytes, and the numbers they were
// quantised from.
func packedWeights(tb testing.TB, d ir.DType, n, k int) (native.Tensor, []float32) {
	tb.Helper()
	x := random(n * k)
	w, err := native.Quantize(d, x, n, k)
	if err != nil {
		tb.Fatal(err)
	}
	return w, x
}

// TestProductsWithPackedWeights has a few rows, for which the weights are read in place, and
// many. The expected values are sums in float64 of the original numbers; the tolerance is the
// quantisation error.
func TestProductsWithPackedWeights(t *testing.T) {
	const n = 37
	everyLevel(t, func(t *testing.T) {
		for d, loss := range map[ir.DType]float64{dtype.Q8_0: 0.5 / 127 / 2, dtype.Q4_0: 1.0 / 8 / 2} {
			for _, rows := range []int{1, 3, 4, 8, 20} {
				for _, k := range []int{32, 96, 1024, 2048} {
					x := random(rows * k)
					w, exact := packedWeights(t, d, n, k)
					got := outputs(t, graph(t, func(b *ir.Builder) {
						packed := b.Input("w", ir.U8, ir.Dims(w.Dims...)...)
						y := ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(rows, k)...), packed, d.String())
						b.Output("y", ops.Add(b, y, ops.ConstLike(b, y, 1)))
					}), map[string]native.Tensor{"x": native.Float32s(x, rows, k), "w": w})
					for i := range rows * n {
						sum, size := 1.0, 0.0
						for l, v := range x[i/n*k:][:k] {
							sum += float64(v) * float64(exact[i%n*k+l])
							size += max(float64(v), float64(-v))
						}
						near(t, fmt.Sprint(d, " ", rows, " rows of ", k), i, got["y"][i], sum, 1.01*loss*size+1e-5)
					}
				}
			}
		}
	})
}

// TestPackedWeightsAreReadInPlace checks the backend's support for the product.
func TestPackedWeightsAreReadInPlace(t *testing.T) {
	for format, want := range map[string]native.Level{"q8_0": native.Claimed, "f8_e4m3": native.Decomposed} {
		elements, bytes, _ := ops.PackedBlock(format)
		g := build(t, func(b *ir.Builder) {
			b.Output("y", ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(9, 64)...), b.Input("w", ir.U8, ir.Dims(5, 64*bytes/elements)...), format))
		})
		for _, n := range g.Nodes() {
			if n.Op() == ops.OpQuantizedMatMul && cpu.Backend().Support(n).Level != want {
				t.Errorf("%s is not %v", format, want)
			}
		}
	}
}

// BenchmarkPackedProduct multiplies a vector with a matrix of 8192×8192 quantised weights,
// which exceeds the caches, and reports gigabytes of weights per second; for comparison, it
// reports the same for a sum of the same number of bytes of f32.
func BenchmarkPackedProduct(b *testing.B) {
	const n, k = 8192, 8192
	for _, d := range []ir.DType{dtype.Q8_0, dtype.Q4_0} {
		b.Run(d.String(), func(b *testing.B) {
			w, _ := packedWeights(b, d, n, k)
			bytes := len(w.Data)
			product := bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: build(b, func(b *ir.Builder) {
				b.Output("y", ops.QuantizedMatMul(b, b.Input("x", ir.F32, ir.Dims(1, k)...), b.Param("w", ir.U8, ir.Dims(w.Dims...)...), d.String()))
			})}))
			sum := bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: unary(b, func(b *ir.Builder, x ir.Value) ir.Value {
				return ops.ReduceSum(b, x, 1)
			}, bytes/4096, 1024)}))
			best := bestOf(b, product, sum)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(bytes)/best[0], "GB/s")
			b.ReportMetric(float64(bytes/4096*4096)/best[1], "GB/s-read")
			b.ReportMetric(100*best[1]/best[0], "%-of-bandwidth")
		})
	}
}

// bestOf runs steps alternately and returns the minimum nanoseconds of each.
func bestOf(b *testing.B, steps ...native.Bound) []float64 {
	best := make([]float64, len(steps))
	for b.Loop() {
		for i, s := range steps {
			start := clock()
			runBound(b, s)
			if took := float64((clock() - start).Nanoseconds()); best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	return best
}

// TestProductsOfActivationsOf8Bits holds products with rounded activations to sums in float64 of the numbers that the
// op's definition rounds them to: by integers, by numbers and unpacked.
func TestProductsOfActivationsOf8Bits(t *testing.T) {
	const n = 37
	everyLevel(t, func(t *testing.T) {
		for _, format := range []gguf.Type{gguf.Q8_0, gguf.Q4_1, gguf.Q5_0} {
			name := strings.ToLower(format.String())
			for _, rows := range []int{1, 3, 20} {
				const k = 7 * 32
				x := random(rows * k)
				packed, err := gguf.Quantize(format, random(n*k))
				if err != nil {
					t.Fatal(err)
				}
				w := make([]float32, n*k)
				if err := gguf.Dequantize(format, w, packed); err != nil {
					t.Fatal(err)
				}
				tensor := native.Tensor{DType: ir.U8, Dims: []int{n, len(packed) / n}, Data: packed}
				got := outputs(t, graph(t, func(b *ir.Builder) {
					y := ops.QuantizedMatMul8(b, b.Input("x", ir.F32, ir.Dims(rows, k)...), b.Input("w", ir.U8, ir.Dims(tensor.Dims...)...), name)
					b.Output("y", ops.Add(b, y, ops.ConstLike(b, y, 1)))
				}), map[string]native.Tensor{"x": native.Float32s(x, rows, k), "w": tensor})
				rounded := roundedTo8Bits(x)
				for i := range rows * n {
					sum, size := 1.0, 1.0
					for l := range k {
						term := rounded[i/n*k+l] * float64(w[i%n*k+l])
						sum, size = sum+term, size+math.Abs(term)
					}
					near(t, fmt.Sprint(name, " ", rows, " rows"), i, got["y"][i], sum, 1e-6*size)
				}
			}
		}
	})
}

// TestGroupedProductsWithPackedWeights holds rows of groups of no row, of one, of more than are read in place, and out of range, to
// sums in float64 of the unpacked numbers, and of rounded activations.
func TestGroupedProductsWithPackedWeights(t *testing.T) {
	const g, n, k = 5, 70, 3 * 256
	everyLevel(t, func(t *testing.T) {
		for _, format := range []gguf.Type{gguf.Q8_0, gguf.Q4_1, gguf.Q6_K} {
			name := strings.ToLower(format.String())
			packed, err := gguf.Quantize(format, random(g*n*k))
			if err != nil {
				t.Fatal(err)
			}
			w := make([]float32, g*n*k)
			if err := gguf.Dequantize(format, w, packed); err != nil {
				t.Fatal(err)
			}
			tensor := native.Tensor{DType: ir.U8, Dims: []int{g, n, len(packed) / g / n}, Data: packed}
			for _, groups := range [][]int32{{3}, {4, 0, 4, -1, 5, 2}, {1, 1, 1, 3, 1, 1, 1, 1, 7, 1, 1, 1, 0, 1, 1}} {
				rows := len(groups)
				x := random(rows * k)
				got := outputs(t, graph(t, func(b *ir.Builder) {
					in, weights, at := b.Input("x", ir.F32, ir.Dims(rows, k)...), b.Input("w", ir.U8, ir.Dims(tensor.Dims...)...), b.Input("groups", ir.I32, ir.N(rows))
					y := ops.QuantizedGroupedMatMul(b, in, weights, at, name)
					b.Output("y", ops.Add(b, y, ops.ConstLike(b, y, 1)))
					b.Output("rounded", ops.QuantizedGroupedMatMul8(b, in, weights, at, name))
				}), map[string]native.Tensor{"x": native.Float32s(x, rows, k), "w": tensor, "groups": native.Int32s(groups, rows)})
				rounded := roundedTo8Bits(x)
				for i := range rows * n {
					sum, size, ofRounded, group := 1.0, 1.0, 0.0, int(groups[i/n])
					for l := 0; l < k && 0 <= group && group < g; l++ {
						factor := float64(w[(group*n+i%n)*k+l])
						term := float64(x[i/n*k+l]) * factor
						sum, size, ofRounded = sum+term, size+math.Abs(term), ofRounded+rounded[i/n*k+l]*factor
					}
					near(t, fmt.Sprint(format, " ", rows, " rows"), i, got["y"][i], sum, 1e-6*size)
					near(t, fmt.Sprint(format, " ", rows, " rounded rows"), i, got["rounded"][i], ofRounded, 1e-6*size)
				}
			}
		}
	})
}

// roundedTo8Bits returns numbers as the definition of the op rounds them: blocks of 32 to multiples of the largest magnitude divided by 127.
func roundedTo8Bits(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		largest := float32(0)
		for _, u := range x[i/32*32:][:32] {
			largest = max(largest, u, -u)
		}
		scale := float64(largest / 127)
		out[i] = math.RoundToEven(float64(v)/scale) * scale
	}
	return out
}
