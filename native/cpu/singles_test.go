package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// of is a job of one op on an input of f32, or one of another type.
func of(name string, f func(b *ir.Builder, x ir.Value) ir.Value, dims ...int) job {
	return typed(name, ir.F32, f, dims...)
}

func typed(name string, t ir.DType, f func(b *ir.Builder, x ir.Value) ir.Value, dims ...int) job {
	return job{name, func(tb testing.TB) *ir.Graph {
		return build(tb, func(b *ir.Builder) { b.Output("y", f(b, b.Input("x", t, ir.Dims(dims...)...))) })
	}}
}

// sumOver sums an input over axes.
func sumOver(name string, axes ...int) job {
	return of(name, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, axes...) }, 64, 64, 64, 16)
}

// permuted transposes an input.
func permuted(name string, axes ...int) job {
	return of(name, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, axes...) }, 64, 32, 48, 20)
}

// imaged is a convolution with a weight of a window, channels in of a group and channels out.
func imaged(name string, a ops.Conv2DAttrs, batch, size, channels, window, out int) job {
	return of(name, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Conv2D(b, x, b.Input("w", ir.F32, ir.Dims(window, window, channels/max(a.Groups, 1), out)...), ir.Value{}, a)
	}, batch, size, size, channels)
}

// dominant adds n to the diagonal of matrices, so that they have all factorisations.
func dominant(b *ir.Builder, x ir.Value, dims ...int) ir.Value {
	n := dims[len(dims)-1]
	diagonal := ops.Eq(b, ops.Iota(b, ir.I32, 0, ir.Dims(dims...)...), ops.Iota(b, ir.I32, 1, ir.Dims(dims...)...))
	d := x.DType()
	return ops.Add(b, x, ops.Mul(b, ops.Convert(b, diagonal, d), ops.Const(b, d, float64(n))))
}

// factors is a job of several results of a matrix or a batch of them, with a dominant diagonal.
func factors(name string, f func(b *ir.Builder, x ir.Value) []ir.Value, dims ...int) job {
	return typedFactors(name, ir.F32, f, dims...)
}

func typedFactors(name string, d ir.DType, f func(b *ir.Builder, x ir.Value) []ir.Value, dims ...int) job {
	return job{name, func(tb testing.TB) *ir.Graph {
		return build(tb, func(b *ir.Builder) {
			x := b.Input("x", d, ir.Dims(dims...)...)
			for i, y := range f(b, dominant(b, x, dims[len(dims)-2:]...)) {
				b.Output(fmt.Sprint("y", i), y)
			}
		})
	}}
}

func qr(b *ir.Builder, x ir.Value) []ir.Value {
	q, r := ops.QR(b, x, false)
	return []ir.Value{q, r}
}

func eigh(b *ir.Builder, x ir.Value) []ir.Value {
	w, v := ops.Eigh(b, x)
	return []ir.Value{w, v}
}

func svd(b *ir.Builder, x ir.Value) []ir.Value {
	u, s, vt := ops.SVD(b, x, false)
	return []ir.Value{u, s, vt}
}

func lu(b *ir.Builder, x ir.Value) []ir.Value {
	y, pivots, _ := ops.LU(b, x)
	return []ir.Value{y, pivots}
}

func inverse(b *ir.Builder, x ir.Value) []ir.Value  { return []ir.Value{ops.Inv(b, x)} }
func det(b *ir.Builder, x ir.Value) []ir.Value      { return []ir.Value{ops.Det(b, x)} }
func cholesky(b *ir.Builder, x ir.Value) []ir.Value { return []ir.Value{ops.Cholesky(b, x)} }
func solve(b *ir.Builder, x ir.Value) []ir.Value {
	return []ir.Value{ops.Solve(b, x, x, ops.SolveAttrs{})}
}

// ids are 100,000 numbers of rows, which the compiler does not know.
func ids(b *ir.Builder, rows int) ir.Value {
	at := ops.Add(b, b.Input("ids", ir.I32, ir.N(100_000)), ops.Iota(b, ir.I32, 0, ir.N(100_000)))
	return ops.Rem(b, at, ops.ConstLike(b, at, float64(rows)))
}

// singles are ops alone, which the program of PyTorch has by the same names.
var singles = []job{
	of("sort 32x4096", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 1}, x)[0] }, 32, 4096),
	of("sort 4096x32 axis 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{}, x)[0] }, 4096, 32),
	of("sort 1M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{}, x)[0] }, 1<<20),
	of("sort i32 1M", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Sort(b, ops.SortAttrs{}, ops.Convert(b, ops.Mul(b, x, ops.ConstLike(b, x, 1e9)), ir.I32))[0]
	}, 1<<20),
	of("argsort 1M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgSort(b, x, ops.SortAttrs{}) }, 1<<20),
	of("topk 32 of 32x4096", func(b *ir.Builder, x ir.Value) ir.Value {
		y, _ := ops.TopK(b, x, ops.TopKAttrs{K: 32, Axis: 1})
		return y
	}, 32, 4096),
	of("cumsum 1024x1024 axis 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumSum(b, x, ops.CumSumAttrs{}) }, 1024, 1024),
	of("cumsum 1024x1024 axis 1", func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumSum(b, x, ops.CumSumAttrs{Axis: 1}) }, 1024, 1024),
	of("cumsum 64x128x128 axis 1", func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumSum(b, x, ops.CumSumAttrs{Axis: 1}) }, 64, 128, 128),
	of("cumprod 1024x1024 axis 1", func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumProd(b, x, ops.CumSumAttrs{Axis: 1}) }, 1024, 1024),
	of("cholesky 512", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Cholesky(b, dominant(b, x, 512, 512)) }, 512, 512),
	of("cholesky 1024", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Cholesky(b, dominant(b, x, 1024, 1024)) }, 1024, 1024),
	of("lu 512", func(b *ir.Builder, x ir.Value) ir.Value {
		y, _, _ := ops.LU(b, dominant(b, x, 512, 512))
		return y
	}, 512, 512),
	of("solve 512", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Solve(b, dominant(b, x, 512, 512), x, ops.SolveAttrs{})
	}, 512, 512),
	factors("qr 256", qr, 256, 256), factors("qr 1024", qr, 1024, 1024), factors("qr 1000x50", qr, 1000, 50), factors("qr 64 of 32", qr, 64, 32, 32),
	factors("eigh 64", eigh, 64, 64), factors("eigh 256", eigh, 256, 256), factors("eigh 1024", eigh, 1024, 1024), factors("eigh 64 of 32", eigh, 64, 32, 32),
	factors("eigenvalues 256", func(b *ir.Builder, x ir.Value) []ir.Value { return eigh(b, x)[:1] }, 256, 256),
	factors("svd 64", svd, 64, 64), factors("svd 256", svd, 256, 256), factors("svd 512x64", svd, 512, 64), factors("svd 64 of 32", svd, 64, 32, 32),
	factors("singular values 256", func(b *ir.Builder, x ir.Value) []ir.Value { return svd(b, x)[1:2] }, 256, 256),
	factors("inverse 256", inverse, 256, 256), factors("inverse 64 of 32", inverse, 64, 32, 32),
	factors("det 256", det, 256, 256), factors("det 64 of 32", det, 64, 32, 32),
	factors("cholesky 64", cholesky, 64, 64), factors("cholesky 2048", cholesky, 2048, 2048), factors("cholesky 64 of 32", cholesky, 64, 32, 32),
	factors("lu 64", lu, 64, 64), factors("lu 2048", lu, 2048, 2048), factors("lu 64 of 32", lu, 64, 32, 32),
	factors("solve 64", solve, 64, 64), factors("solve 64 of 32", solve, 64, 32, 32),
	typed("fft 64x4096", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{}) }, 64, 4096),
	typed("fft 512x512 axes 0 1", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{Axes: []int{0, 1}}) }, 512, 512),
	of("take 100k of 10000x64", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Take(b, x, ids(b, 10_000), 0, ops.OutsideClip) }, 10_000, 64),
	of("add 100k to 10000x64", func(b *ir.Builder, x ir.Value) ir.Value {
		u := b.Input("u", ir.F32, ir.Dims(100_000, 64)...)
		return ops.ScatterAdd(b, x, ops.ExpandDims(b, ids(b, 10_000), -1), u, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
	}, 10_000, 64),
	{"gradient of embedding 20000x64", func(tb testing.TB) *ir.Graph {
		g, err := autodiff.ValueAndGrad(build(tb, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(20_000, 64)...)
			y := ops.Embedding(b, x, b.Input("ids", ir.I32, ir.Dims(4096)...))
			b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y), 0, 1))
		}), "loss", "x")
		return must(tb, g, err)
	}},
	imaged("conv 3x3 dilated 2, 32", ops.Conv2DAttrs{Dilations: []int{2, 2}, PadLo: []int{2, 2}, PadHi: []int{2, 2}}, 8, 32, 32, 3, 32),
	imaged("conv 3x3 in 8 groups, 64", ops.Conv2DAttrs{Groups: 8, PadLo: []int{1, 1}, PadHi: []int{1, 1}}, 8, 32, 64, 3, 64),
	imaged("conv 5x5 stride 2, 24, batch 1", ops.Conv2DAttrs{Strides: []int{2, 2}, PadLo: []int{2, 2}, PadHi: []int{2, 2}}, 1, 65, 24, 5, 40),
	imaged("conv 1x1 stride 2, 64", ops.Conv2DAttrs{Strides: []int{2, 2}}, 8, 32, 64, 1, 128),
	imaged("conv 3x3 depthwise stride 2, 96", ops.Conv2DAttrs{Groups: 96, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}}, 4, 33, 96, 3, 96),
	of("conv transposed 4x4 stride 2, 32", func(b *ir.Builder, x ir.Value) ir.Value {
		w := b.Input("w", ir.F32, ir.Dims(4, 4, 32, 32)...)
		return ops.ConvTranspose(b, x, w, ir.Value{}, ops.ConvTransposeAttrs{Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	}, 8, 16, 16, 32),
	of("max pool 3x3 stride 2", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.MaxPool(b, x, ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}, PadLo: []int{1, 1}, PadHi: []int{1, 1}})
	}, 8, 64, 64, 32),
	of("average pool 2x2", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.AvgPool(b, x, ops.AvgPoolAttrs{PoolAttrs: ops.PoolAttrs{Sizes: []int{2, 2}}})
	}, 8, 64, 64, 32),
	of("softmax 32x256x64 axis 1", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }, 32, 256, 64),
	of("softmax 512x1024 axis 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 0) }, 512, 1024),
	of("softmax 4096x50", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }, 4096, 50),
	sumOver("sum axes 0 2", 0, 2), sumOver("sum axes 1 3", 1, 3), sumOver("sum axes 0 3", 0, 3), sumOver("sum axes 1 2", 1, 2), sumOver("sum axis 3", 3),
	permuted("transpose 0 2 1 3", 0, 2, 1, 3), permuted("transpose 3 0 1 2", 3, 0, 1, 2), permuted("transpose 2 1 0 3", 2, 1, 0, 3), permuted("transpose 0 3 2 1", 0, 3, 2, 1),
	of("pad 32x64x64x16", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.F32, 0), []int{0, 1, 1, 0}, []int{0, 1, 1, 0}, []int{0, 0, 0, 0})
	}, 32, 64, 64, 16),
	of("concatenate 4 of 1024x256 axis 1", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Concatenate(b, 1, x, b.Input("x1", ir.F32, ir.Dims(1024, 256)...), b.Input("x2", ir.F32, ir.Dims(1024, 256)...), b.Input("x3", ir.F32, ir.Dims(1024, 256)...))
	}, 1024, 256),
	of("concatenate 2 of 4096x33 axis 1", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Concatenate(b, 1, x, b.Input("x1", ir.F32, ir.Dims(4096, 33)...))
	}, 4096, 33),
	typed("random bits 1M", ir.U32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.RandomBits(b, x, ir.Dims(1<<20)...) }, 2),
	typed("add bf16 1M", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Add(b, x, b.Input("z", ir.BF16, ir.N(1<<20))) }, 1<<20),
	typed("gelu f16 1M", ir.F16, ops.GeluTanh, 1<<20),
	typed("matmul bf16 512", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.MatMul(b, x, x) }, 512, 512),
	typed("matmul f16 512", ir.F16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.MatMul(b, x, x) }, 512, 512),
}

// TestSinglesAreGraphs keeps the jobs valid between runs of the benchmark.
func TestSinglesAreGraphs(t *testing.T) {
	for _, j := range singles {
		if g := j.graph(t); len(g.Outputs()) == 0 {
			t.Errorf("%s computes nothing", j.name)
		}
	}
}

// BenchmarkSingles runs ops alone, and those of PyTorch in turns with them, as [BenchmarkFamilies]
// runs models.
func BenchmarkSingles(b *testing.B) { benchmarkPairs(b, singles, "peers/singles.py") }

// benchmarkPairs runs jobs, and those of the same names of a script in turns with them.
func benchmarkPairs(b *testing.B, jobs []job, script string) {
	torch := startPython(b, "PyTorch", script)
	for _, j := range jobs {
		b.Run(j.name, func(b *testing.B) {
			step := bindAny(b, compileGraphs(b, ir.Entry{Name: "run", Graph: j.graph(b)}))
			least, theirs := math.Inf(1), math.Inf(1)
			for range 3 {
				least = min(least, minTime(b, step))
				if ms := torch.ask(j.name); ms > 0 {
					theirs = min(theirs, ms)
				}
			}
			for b.Loop() {
				least = min(least, timed(b, step))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(least, "ms")
			if !math.IsInf(theirs, 1) {
				b.ReportMetric(theirs, "ms-PyTorch")
				b.ReportMetric(least/theirs, "x-PyTorch")
			}
		})
	}
}
