package cpu_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// TestRowsOfDoubles reduces rows of f64 of every length and computes with the results, in
// types that kernels support and in others. The expected values are computed in Go; sums in
// another order differ by a few roundings.
func TestRowsOfDoubles(t *testing.T) {
	const rows = 5
	everyLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 3, 4, 7, 8, 16, 31, 64, 100, 512, 520, 1024, 4096, 5000} {
			x := make([]float64, rows*n)
			for i, v := range random(rows * n) {
				x[i] = float64(v) * (1 + 0x1p-40)
			}
			x[n/2] = math.Inf(1)
			got := outputsOf[float64](t, graph(t, func(b *ir.Builder) {
				x := b.Input("x", ir.F64, ir.Dims(rows, n)...)
				sum, most := ops.ReduceSum(b, ops.Mul(b, x, x), 1), ops.ReduceMax(b, x, 1)
				b.Output("sum", sum)
				b.Output("most", most)
				clipped := ops.Select(b, ops.Gt(b, x, ops.ConstLike(b, x, 0)), x, ops.Neg(b, x))
				b.Output("y", ops.Div(b, clipped, ops.Sqrt(b, ops.ExpandDims(b, ops.Add(b, sum, ops.ConstLike(b, sum, 1)), -1))))
				b.Output("narrow", ops.Convert(b, ops.Convert(b, ops.Add(b, x, x), ir.F32), ir.F64))
			}), native.Float64s(x, rows, n))
			for i := range rows {
				sum, most := 0.0, math.Inf(-1)
				for _, v := range x[i*n : (i+1)*n] {
					sum, most = sum+v*v, max(most, v)
				}
				nearDouble(t, fmt.Sprint("sum of ", n), i, got["sum"][i], sum)
				nearDouble(t, fmt.Sprint("most of ", n), i, got["most"][i], most)
				for j, v := range x[i*n : (i+1)*n] {
					nearDouble(t, fmt.Sprint("y of ", n), i*n+j, got["y"][i*n+j], math.Abs(v)/math.Sqrt(sum+1))
					nearDouble(t, fmt.Sprint("narrow of ", n), i*n+j, got["narrow"][i*n+j], float64(float32(v+v)))
				}
			}
		}
	})
}

// TestRowsOfLongIntegers computes with rows of i64 and u64 of every length, including numbers
// that neither f64 nor i32 represents. The expected values are computed in Go.
func TestRowsOfLongIntegers(t *testing.T) {
	const rows = 3
	everyLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 3, 7, 16, 31, 100, 512, 520, 1024, 5000} {
			x := make([]int64, rows*n)
			for i := range x {
				x[i] = int64(uint64(i+1)*0x9e3779b97f4a7c15) >> (i % 60)
			}
			got := outputsOf[int64](t, graph(t, func(b *ir.Builder) {
				x := b.Input("x", ir.I64, ir.Dims(rows, n)...)
				u := ops.Convert(b, x, ir.U64)
				b.Output("sum", ops.ReduceSum(b, x, 1))
				b.Output("most", ops.ReduceMax(b, x, 1))
				b.Output("least", ops.Convert(b, ops.ReduceMin(b, u, 1), ir.I64))
				square := ops.Add(b, ops.Mul(b, x, x), ops.ConstLike(b, x, 7))
				b.Output("y", ops.Select(b, ops.Lt(b, x, ops.ConstLike(b, x, 0)), ops.ShiftRight(b, x, ops.ConstLike(b, x, 3)), square))
				b.Output("unsigned", ops.Convert(b, ops.Xor(b, ops.ShiftRight(b, u, ops.ConstLike(b, u, 5)), ops.Not(b, u)), ir.I64))
			}), native.Int64s(x, rows, n))
			for i := range rows {
				row := x[i*n : (i+1)*n]
				sum, least := int64(0), uint64(math.MaxUint64)
				for j, v := range row {
					sum, least = sum+v, min(least, uint64(v))
					y, u := v*v+7, int64(uint64(v)>>5^^uint64(v))
					if v < 0 {
						y = v >> 3
					}
					if at := i*n + j; got["y"][at] != y || got["unsigned"][at] != u {
						t.Fatalf("%d of %d: %d and %#x, not %d and %#x", at, n, got["y"][at], got["unsigned"][at], y, u)
					}
				}
				if most := slices.Max(row); got["sum"][i] != sum || got["most"][i] != most || uint64(got["least"][i]) != least {
					t.Fatalf("row of %d: %d, %d, %d, not %d, %d, %d", n, got["sum"][i], got["most"][i], uint64(got["least"][i]), sum, most, least)
				}
			}
		}
	})
}

func nearDouble(tb testing.TB, name string, at int, got, want float64) {
	if same := got == want || got != got && want != want; !same && !(math.Abs(got-want) <= 1e-13*math.Max(1, math.Abs(want))) {
		tb.Helper()
		tb.Fatalf("%s: element %d is %v, not %v", name, at, got, want)
	}
}

// outputsOf is [outputs] for results of another type, with one input x.
func outputsOf[T native.Element](tb testing.TB, e ir.Entry, x native.Tensor) map[string][]T {
	tb.Helper()
	p := compileGraphs(tb, e)
	out := map[string]native.Tensor{}
	for _, s := range p.Slots("run") {
		if s.Role == native.Output {
			out[s.Name] = native.Zeros(s.DType, s.Dims...)
		}
	}
	runBound(tb, bind(tb, p, "run", map[string]native.Tensor{"x": x}, out))
	values := map[string][]T{}
	for name, t := range out {
		var err error
		if values[name], err = native.Elements[T](t); err != nil {
			tb.Fatal(err)
		}
	}
	return values
}

// BenchmarkDoubles runs jobs in f64 and in f32 and reports the ratio of their times. It is 2 if
// memory or arithmetic is the bottleneck. It is more for square roots, which have less than half
// the rate in f64, and for softmax and gelu, whose exp and erf have polynomials of higher degree.
func BenchmarkDoubles(b *testing.B) {
	for name, f := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"relu of x+1": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Relu(b, ops.Add(b, x, ops.ConstLike(b, x, 1))) },
		"square root": ops.Sqrt,
		"row sums":    func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) },
		"column sums": func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) },
		"layer norm": func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.LayerNorm(b, x, ops.Const(b, x.DType(), 1, x.Dim(1)), ops.Const(b, x.DType(), 0, x.Dim(1)), 1e-5)
		},
		"gelu":                           func(b *ir.Builder, x ir.Value) ir.Value { return ops.Gelu(b, x) },
		"log":                            ops.Log,
		"tanh":                           ops.Tanh,
		"softmax":                        func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) },
		"product with its own transpose": func(b *ir.Builder, x ir.Value) ir.Value { return ops.MatMul(b, x, ops.Transpose(b, x, 1, 0)) },
	} {
		b.Run(name, func(b *testing.B) { compareDoubles(b, f, 512, 1024) })
	}
	for _, n := range []int{256, 512, 1024} {
		b.Run(fmt.Sprint("product of squares of ", n), func(b *testing.B) {
			compareDoubles(b, func(b *ir.Builder, x ir.Value) ir.Value { return ops.MatMul(b, x, x) }, n, n)
		})
	}
}

// compareDoubles reports the time of a function of numbers of a shape in f64, and its ratio to
// that in f32.
func compareDoubles(b *testing.B, f func(b *ir.Builder, x ir.Value) ir.Value, dims ...int) {
	run := func(d ir.DType) native.Bound {
		return bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: build(b, func(b *ir.Builder) {
			b.Output("y", f(b, b.Input("x", d, ir.Dims(dims...)...)))
		})}))
	}
	best := bestOf(b, run(ir.F64), run(ir.F32))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(best[0]/1e6, "ms-f64")
	b.ReportMetric(best[0]/best[1], "x-f32")
}

// TestErfinvOfSingles compares erfinv of f32 with Go's of f64, over numbers next to 0, to 1 and between.
func TestErfinvOfSingles(t *testing.T) {
	const n, bound = 200_000, 2.5 // units in the last place
	var x []float32
	for i := 1; i < n; i++ {
		at := float64(i) / n
		x = append(x, float32(at), float32(1-math.Exp(-16.6*at)), float32(math.Exp(-40*at)))
	}
	x = slices.DeleteFunc(x, func(x float32) bool { return x >= 1 })
	everyLevel(t, func(t *testing.T) {
		got := outputs(t, graph(t, func(b *ir.Builder) {
			b.Output("y", ops.Erfinv(b, b.Input("x", ir.F32, ir.N(len(x)))))
		}), map[string]native.Tensor{"x": native.Float32s(x, len(x))})
		for i, y := range got["y"] {
			want := math.Erfinv(float64(x[i]))
			single := float32(want)
			if ulp := float64(math.Nextafter32(single, math.MaxFloat32) - single); !(math.Abs(float64(y)-want) <= bound*ulp) {
				t.Fatalf("erfinv(%v) is %v, not %v", x[i], y, want)
			}
		}
	})
}
