package cpu_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// window is a convolution of images, or its gradient in both operands. The layout is NHWC, or NCHW
// with planes.
type window struct {
	batch, h, w, in, out, groups int
	kernel, strides, dilations   [2]int
	planes, gradient             bool
}

func (c window) job(name string) job {
	lo := []int{(c.kernel[0] - 1) / 2 * c.dilations[0], (c.kernel[1] - 1) / 2 * c.dilations[1]}
	a := ops.ConvAttrs{
		Strides: c.strides[:], PadLo: lo, PadHi: lo, RhsDilation: c.dilations[:], FeatureGroups: ir.N(c.groups),
	}
	x, w := []int{c.batch, c.in, c.h, c.w}, []int{c.out, c.in / c.groups, c.kernel[0], c.kernel[1]}
	if !c.planes {
		x, w = []int{c.batch, c.h, c.w, c.in}, []int{c.kernel[0], c.kernel[1], c.in / c.groups, c.out}
		a.Lhs, a.Rhs, a.Out = []int{0, 3, 1, 2}, []int{3, 2, 0, 1}, []int{0, 3, 1, 2}
	}
	return job{name, func(tb testing.TB) *ir.Graph {
		g := build(tb, func(b *ir.Builder) {
			y := ops.ConvGeneral(b, b.Input("x", ir.F32, ir.Dims(x...)...), b.Input("w", ir.F32, ir.Dims(w...)...), a)
			if c.gradient {
				y = ops.ReduceSum(b, ops.Mul(b, y, y))
			}
			b.Output("y", y)
		})
		if !c.gradient {
			return g
		}
		g, err := autodiff.ValueAndGrad(g, "y", "x", "w")
		return must(tb, g, err)
	}}
}

// multiplied is a product of batches of matrices, with a transposed right factor if asked.
func multiplied(name string, t ir.DType, batch, m, n, k int, transposed bool) job {
	return job{name, func(tb testing.TB) *ir.Graph {
		return build(tb, func(b *ir.Builder) {
			y := ir.Dims(batch, k, n)
			if transposed {
				y = ir.Dims(batch, n, k)
			}
			r := b.Input("y", t, y...)
			if transposed {
				r = ops.Transpose(b, r, 0, 2, 1)
			}
			b.Output("z", ops.MatMul(b, b.Input("x", t, ir.Dims(batch, m, k)...), r))
		})
	}}
}

// reduced is a reduction over axes of an array.
func reduced(name string, f func(b *ir.Builder, x ir.Value, axes ...int) ir.Value, axes []int, dims ...int) job {
	return of(name, func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, axes...) }, dims...)
}

func norm(b *ir.Builder, x ir.Value) ir.Value {
	n := x.Type().Shape[x.Type().Shape.Rank()-1]
	return ops.LayerNorm(b, x, b.Input("scale", ir.F32, n), b.Input("bias", ir.F32, n), 1e-5)
}

// shapes are shapes that no other table names.
var shapes = []job{
	window{8, 32, 32, 3, 17, 1, [2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, true, false}.job("conv nchw 3x3 3 to 17"),
	window{8, 32, 32, 5, 100, 1, [2]int{5, 5}, [2]int{1, 1}, [2]int{1, 1}, false, false}.job("conv nhwc 5x5 5 to 100"),
	window{8, 32, 32, 17, 17, 1, [2]int{1, 7}, [2]int{1, 1}, [2]int{1, 1}, false, false}.job("conv nhwc 1x7 17"),
	window{8, 32, 32, 17, 17, 1, [2]int{7, 1}, [2]int{1, 1}, [2]int{1, 1}, true, false}.job("conv nchw 7x1 17"),
	window{1, 64, 64, 100, 100, 1, [2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, true, false}.job("conv nchw 3x3 100 batch 1"),
	window{64, 14, 14, 32, 48, 1, [2]int{3, 3}, [2]int{3, 3}, [2]int{1, 1}, false, false}.job("conv nhwc 3x3 stride 3 batch 64"),
	window{4, 56, 56, 32, 64, 1, [2]int{5, 5}, [2]int{2, 2}, [2]int{1, 1}, true, false}.job("conv nchw 5x5 stride 2"),
	window{4, 40, 40, 24, 24, 1, [2]int{3, 3}, [2]int{1, 1}, [2]int{3, 3}, true, false}.job("conv nchw dilated 3"),
	window{4, 32, 32, 48, 48, 4, [2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, true, false}.job("conv nchw 4 groups"),
	window{4, 32, 32, 96, 96, 32, [2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, false, false}.job("conv nhwc 32 groups"),
	window{4, 33, 33, 50, 50, 50, [2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, false, false}.job("conv nhwc depthwise 50"),
	window{4, 33, 33, 50, 50, 50, [2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1}, true, false}.job("conv nchw depthwise 50 stride 2"),
	window{4, 33, 33, 64, 64, 64, [2]int{5, 5}, [2]int{1, 1}, [2]int{1, 1}, true, false}.job("conv nchw depthwise 5x5"),
	window{8, 28, 28, 32, 32, 1, [2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1}, false, true}.job("grad conv nhwc stride 2"),
	window{8, 28, 28, 32, 32, 4, [2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, false, true}.job("grad conv nhwc 4 groups"),
	window{4, 28, 28, 64, 64, 64, [2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1}, false, true}.job("grad conv nhwc depthwise stride 2"),
	window{8, 28, 28, 16, 24, 1, [2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, true, true}.job("grad conv nchw 16 to 24"),
	window{8, 1, 1000, 30, 40, 1, [2]int{1, 9}, [2]int{1, 1}, [2]int{1, 1}, true, false}.job("conv1d ncw 9"),
	window{8, 1, 1000, 30, 40, 1, [2]int{1, 9}, [2]int{1, 2}, [2]int{1, 1}, false, false}.job("conv1d nwc 9 stride 2"),
	multiplied("matmul 10000x30x20", ir.F32, 1, 10000, 20, 30, false),
	multiplied("matmul 8x8x50000", ir.F32, 1, 8, 8, 50000, false),
	multiplied("matmul 7x5000x300", ir.F32, 1, 7, 5000, 300, false),
	multiplied("matmul 1000x1000x3", ir.F32, 1, 1000, 1000, 3, false),
	multiplied("matmul 500 of 4x4", ir.F32, 5000, 4, 4, 4, false),
	multiplied("matmul 300 of 17x19x23", ir.F32, 300, 17, 19, 23, false),
	multiplied("matmul 64 of 64x64x32 transposed", ir.F32, 64, 64, 64, 32, true),
	multiplied("matmul 64 of 1x200x64", ir.F32, 64, 1, 200, 64, false),
	multiplied("matmul f64 300", ir.F64, 1, 300, 300, 300, false),
	multiplied("matmul i32 200", ir.I32, 1, 200, 200, 200, false),
	multiplied("matmul bf16 128x1000x300", ir.BF16, 1, 128, 1000, 300, false),
	multiplied("matmul bf16 1x4096x1024", ir.BF16, 1, 1, 4096, 1024, false),
	multiplied("matmul bf16 32 of 64x64", ir.BF16, 32, 64, 64, 64, false),
	reduced("sum all", ops.ReduceSum, []int{0, 1, 2, 3}, 30, 31, 32, 33),
	reduced("sum 1 2 3", ops.ReduceSum, []int{1, 2, 3}, 30, 31, 32, 33),
	reduced("sum 0 1 3", ops.ReduceSum, []int{0, 1, 3}, 30, 31, 32, 33),
	reduced("sum 2", ops.ReduceSum, []int{2}, 30, 31, 32, 33),
	reduced("max 0 3", ops.ReduceMax, []int{0, 3}, 30, 31, 32, 33),
	reduced("max 3", ops.ReduceMax, []int{3}, 30, 31, 32, 33),
	reduced("max 10000x7", ops.ReduceMax, []int{1}, 100000, 7),
	of("argmax 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 1) }, 1000, 1000),
	of("argmax 1000x1000 axis 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 0) }, 1000, 1000),
	of("variance 1000x777", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Var(b, x, 0, 1) }, 1000, 777),
	typed("sum f64 1000x1000", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) }, 1000, 1000),
	typed("sum i32 1000x1000", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) }, 1000, 1000),
	typed("cumsum i32 100x10000", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumSum(b, x, ops.CumSumAttrs{Axis: 1}) }, 100, 10000),
	of("cumsum 1M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumSum(b, x, ops.CumSumAttrs{}) }, 1<<20),
	of("cummax 512x2000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.CumMax(b, x, ops.CumSumAttrs{Axis: 1}) }, 512, 2000),
	of("sort 1000x100", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 1}, x)[0] }, 1000, 100),
	of("sort 10000x10", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 1}, x)[0] }, 10000, 10),
	typed("sort f64 100k", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{}, x)[0] }, 100000),
	of("top 5 of 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value {
		y, _ := ops.TopK(b, x, ops.TopKAttrs{K: 5, Axis: 1})
		return y
	}, 1000, 1000),
	of("top 100 of 50000", func(b *ir.Builder, x ir.Value) ir.Value {
		y, _ := ops.TopK(b, x, ops.TopKAttrs{K: 100, Axis: 0})
		return y
	}, 50000),
	of("take 20k of 1000x7", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Take(b, x, b.Input("ids", ir.I32, ir.N(20000)), 0, ops.OutsideClip)
	}, 1000, 7),
	of("take columns 300 of 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Take(b, x, b.Input("ids", ir.I32, ir.N(300)), 1, ops.OutsideClip)
	}, 1000, 1000),
	of("take along axis 1000x500", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.TakeAlongAxis(b, x, b.Input("ids", ir.I32, ir.Dims(1000, 200)...), 1, ops.OutsideClip)
	}, 1000, 500),
	of("scatter skewed 100k to 1000x16", func(b *ir.Builder, x ir.Value) ir.Value {
		u := b.Input("u", ir.F32, ir.Dims(100_000, 16)...)
		at := ops.Rem(b, b.Input("ids", ir.I32, ir.N(100_000)), ops.Const(b, ir.I32, 3))
		return ops.ScatterAdd(b, x, ops.ExpandDims(b, at, -1), u, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
	}, 1000, 16),
	of("scatter 1M numbers to 1000", func(b *ir.Builder, x ir.Value) ir.Value {
		u := b.Input("u", ir.F32, ir.Dims(1<<20)...)
		rows := ops.Add(b, b.Input("zero", ir.I32), ops.Const(b, ir.I32, 1000))
		at := ops.Rem(b, ops.Iota(b, ir.I32, 0, ir.N(1<<20)), rows)
		return ops.ScatterAdd(b, x, ops.ExpandDims(b, at, -1), u, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}})
	}, 1000),
	of("layer norm 1000x333", norm, 1000, 333), of("layer norm 10000x17", norm, 10000, 17), of("layer norm 16x50000", norm, 16, 50000),
	of("rms norm 1000x777", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.RMSNorm(b, x, b.Input("scale", ir.F32, ir.N(777)), 1e-5)
	}, 1000, 777),
	of("group norm 8x32x32x30", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.GroupNorm(b, x, b.Input("scale", ir.F32, ir.N(30)), b.Input("bias", ir.F32, ir.N(30)), 5, 1e-5)
	}, 8, 32, 32, 30),
	of("softmax 20000x10", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }, 20000, 10),
	of("softmax 16x50000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }, 16, 50000),
	of("softmax 1000x333 axis 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 0) }, 1000, 333),
	of("log sum exp 2000x500", func(b *ir.Builder, x ir.Value) ir.Value { return ops.LogSumExp(b, x, 1) }, 2000, 500),
	of("concatenate axis 0", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Concatenate(b, 0, x, b.Input("x1", ir.F32, ir.Dims(300, 999)...))
	}, 500, 999),
	of("concatenate 3 and 5 of 50000 axis 1", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Concatenate(b, 1, x, b.Input("x1", ir.F32, ir.Dims(50000, 5)...))
	}, 50000, 3),
	of("pad 100x99x31", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.F32, 0), []int{0, 2, 1}, []int{0, 2, 1}, []int{0, 0, 0})
	}, 100, 99, 31),
	of("pad planes", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.F32, 0), []int{0, 0, 1, 1}, []int{0, 0, 1, 1}, []int{0, 0, 0, 0})
	}, 8, 32, 30, 30),
	of("transpose 1000x333", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) }, 1000, 333),
	of("transpose 0 2 3 1 of 8x3x100x100", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 0, 2, 3, 1) }, 8, 3, 100, 100),
	of("transpose 0 3 1 2 of 8x100x100x3", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 0, 3, 1, 2) }, 8, 100, 100, 3),
	typed("transpose bf16 1000x1000", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, 1, 0) }, 1000, 1000),
	of("slice stride 2", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Slice(b, x, ir.Dims(0, 0), ir.Dims(1000, 500), []int{1, 2})
	}, 1000, 1000),
	of("reverse 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }, 1000, 1000),
	of("tile 3x4 of 300x100", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Tile(b, x, 3, 4) }, 300, 100),
	of("tanh exp erf 1M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Erf(b, ops.Exp(b, ops.Tanh(b, x))) }, 1<<20),
	of("sin 1M", ops.Sin, 1<<20), of("log 1M", ops.Log, 1<<20), of("sqrt 1M", ops.Sqrt, 1<<20), of("pow 1M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, b.Input("p", ir.F32, ir.N(1<<20))) }, 1<<20),
	typed("exp f64 1M", ir.F64, ops.Exp, 1<<20), typed("sin f64 1M", ir.F64, ops.Sin, 1<<20), typed("tanh f64 1M", ir.F64, ops.Tanh, 1<<20),
	pair("pow f64 1M", ir.F64, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Pow(b, ops.Abs(b, x), y) }, []int{1 << 20}, []int{1 << 20}),
	of("divide 1000x1001 by column", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Div(b, x, b.Input("p", ir.F32, ir.Dims(1000, 1)...))
	}, 1000, 1001),
	typed("remainder i32 1M", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Rem(b, x, b.Input("p", ir.I32, ir.N(1<<20))) }, 1<<20),
	{"lstm step 32x256", func(tb testing.TB) *ir.Graph {
		return build(tb, func(b *ir.Builder) {
			n, h := 32, 256
			gates := ops.Add(b, ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(n, h)...), b.Param("w", ir.F32, ir.Dims(h, 4*h)...)),
				ops.MatMul(b, b.Input("h", ir.F32, ir.Dims(n, h)...), b.Param("u", ir.F32, ir.Dims(h, 4*h)...)))
			gates = ops.Add(b, gates, b.Param("b", ir.F32, ir.Dims(4*h)...))
			part := func(i int) ir.Value {
				return ops.Slice(b, gates, ir.Dims(0, i*h), ir.Dims(n, h), []int{1, 1})
			}
			c := ops.Add(b, ops.Mul(b, ops.Sigmoid(b, part(0)), b.Input("c", ir.F32, ir.Dims(n, h)...)), ops.Mul(b, ops.Sigmoid(b, part(1)), ops.Tanh(b, part(2))))
			b.Output("c2", c)
			b.Output("h2", ops.Mul(b, ops.Sigmoid(b, part(3)), ops.Tanh(b, c)))
		})
	}},
	typed("fft 1000x1000", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{}) }, 1000, 1000),
	typed("fft 1000x16", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{}) }, 10000, 16),
	typed("fft 1M", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{}) }, 1<<20),
	of("rfft 64x4096", func(b *ir.Builder, x ir.Value) ir.Value { return ops.RFFT(b, x, 1, "") }, 64, 4096),
	typed("convert f32 to bf16", ir.F32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Convert(b, x, ir.BF16) }, 1<<20),
	typed("sum bf16 1000x1000", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) }, 1000, 1000),
	typed("softmax bf16 1000x500", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 1) }, 1000, 500),
}

// TestStencilsOfAnyLayout compares depthwise convolutions of planes, and those with few channels in a group,
// with loops in f64.
func TestStencilsOfAnyLayout(t *testing.T) {
	for _, c := range []window{
		{2, 9, 11, 20, 20, 20, [2]int{3, 3}, [2]int{2, 2}, [2]int{1, 1}, true, false},
		{1, 12, 9, 24, 24, 8, [2]int{3, 3}, [2]int{1, 1}, [2]int{1, 1}, false, false},
	} {
		everyLevel(t, func(t *testing.T) {
			x, w := random(c.batch*c.h*c.w*c.in), random(c.out*c.in/c.groups*c.kernel[0]*c.kernel[1])
			p := compileGraphs(t, ir.Entry{Name: "run", Graph: c.job("").graph(t)})
			in := map[string]native.Tensor{}
			for _, s := range p.Slots("run") {
				if s.Role == native.Input {
					in[s.Name] = native.Float32s(map[string][]float32{"x": x, "w": w}[s.Name], s.Dims...)
				}
			}
			got, err := run(t, p, in)["y"].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.results(x, w) {
				if !(math.Abs(float64(got[i])-want) <= 1e-5) {
					t.Fatalf("%v: element %d is %g, not %g", c, i, got[i], want)
				}
			}
		})
	}
}

// results are those of a convolution whose kernel is 3×3.
func (c window) results(x, w []float32) []float64 {
	h, wide := (c.h-1)/c.strides[0]+1, (c.w-1)/c.strides[1]+1
	from, to := c.in/c.groups, c.out/c.groups
	place := func(n, ch, i, j, channels, h, w int) int {
		if c.planes {
			return ((n*channels+ch)*h+i)*w + j
		}
		return ((n*h+i)*w+j)*channels + ch
	}
	y := make([]float64, c.batch*h*wide*c.out)
	for at := range y {
		n, o, i, j := at/(c.out*h*wide), at/(h*wide)%c.out, at/wide%h, at%wide
		sum := &y[place(n, o, i, j, c.out, h, wide)]
		for k := range 9 * from {
			row, col, ch := i*c.strides[0]+k%9/3-1, j*c.strides[1]+k%3-1, k/9
			if row < 0 || row >= c.h || col < 0 || col >= c.w {
				continue
			}
			tap := (k%9*from+ch)*c.out + o
			if c.planes {
				tap = (o*from+ch)*9 + k%9
			}
			*sum += float64(x[place(n, o/to*from+ch, row, col, c.in, c.h, c.w)]) * float64(w[tap])
		}
	}
	return y
}

// TestRowsOfOddLengths compares norms and reductions of rows that fill no whole vectors, and reductions over the
// axis before such rows, with their definitions in f64.
func TestRowsOfOddLengths(t *testing.T) {
	const rows, n = 40, 101
	x := random(rows * n)
	g := build(t, func(b *ir.Builder) {
		v := b.Input("x", ir.F32, ir.Dims(rows, n)...)
		b.Output("norm", ops.Mul(b, ops.Sub(b, v, ops.ExpandDims(b, ops.Mean(b, v, 1), 1)), ops.ExpandDims(b, ops.ReduceMax(b, v, 1), 1)))
		b.Output("columns", ops.ReduceSum(b, v, 0))
	})
	norm, columns := make([]float64, rows*n), make([]float64, n)
	for row := range rows {
		mean, most := 0.0, math.Inf(-1)
		for i, v := range x[row*n : (row+1)*n] {
			mean, most, columns[i] = mean+float64(v)/n, max(most, float64(v)), columns[i]+float64(v)
		}
		for i, v := range x[row*n : (row+1)*n] {
			norm[row*n+i] = (float64(v) - mean) * most
		}
	}
	everyLevel(t, func(t *testing.T) {
		out := run(t, compileGraphs(t, ir.Entry{Name: "run", Graph: g}), map[string]native.Tensor{"x": native.Float32s(x, rows, n)})
		for name, want := range map[string][]float64{"norm": norm, "columns": columns} {
			got, err := out[name].Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if !(math.Abs(float64(got[i])-want[i]) <= 1e-5) {
					t.Fatalf("%s: element %d is %g, not %g", name, i, got[i], want[i])
				}
			}
		}
	})
}

// TestShapesAreGraphs keeps the jobs valid between runs of the benchmark.
func TestShapesAreGraphs(t *testing.T) {
	for _, j := range slices.Concat(shapes, oddShapes, commonShapes, everyday) {
		if g := j.graph(t); len(g.Outputs()) == 0 {
			t.Errorf("%s computes nothing", j.name)
		}
	}
}

// BenchmarkShapes runs ops of further shapes, as [BenchmarkSingles].
func BenchmarkShapes(b *testing.B) {
	benchmarkPairs(b, slices.Concat(shapes, oddShapes, commonShapes), "peers/shapes.py")
}
