package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// einsum is a job of a sum of products of two arrays.
func einsum(equation string, x, y []int) job {
	return pair("einsum "+equation, ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Einsum(b, equation, x, y) }, x, y)
}

// differentiated is a job of the gradient of half the sum of squares of a result.
func differentiated(name string, f func(b *ir.Builder, x ir.Value) ir.Value, dims ...int) job {
	return job{name, func(tb testing.TB) *ir.Graph {
		g, err := autodiff.ValueAndGrad(build(tb, func(b *ir.Builder) {
			y := f(b, b.Input("x", ir.F32, ir.Dims(dims...)...))
			b.Output("loss", ops.Mul(b, ops.ReduceSum(b, ops.Mul(b, y, y)), ops.Const(b, ir.F32, 0.5)))
		}), "loss", "x")
		return must(tb, g, err)
	}}
}

func triangular(b *ir.Builder, x, y ir.Value) ir.Value {
	dims, _ := x.Shape().Ints()
	return ops.TriangularSolve(b, dominant(b, x, dims[len(dims)-2:]...), y, ops.TriangularAttrs{LeftSide: true, Lower: true})
}

func resized(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Repeat(b, ops.Repeat(b, x, 1, 2), 2, 2)
}

// doubled doubles the sizes of images.
func doubled(b *ir.Builder, x ir.Value) ir.Value {
	dims, _ := x.Shape().Ints()
	return ops.Resize(b, x, ops.ResizeAttrs{Sizes: []int{2 * dims[1], 2 * dims[2]}, Mode: ops.ResizeLinear})
}

// hashed returns integers from 0 to half a scale, of numbers between -½ and ½.
func hashed(b *ir.Builder, x ir.Value, scale float64) ir.Value {
	return ops.Convert(b, ops.Abs(b, ops.Mul(b, x, ops.ConstLike(b, x, scale))), ir.I32)
}

// commonShapes are ops that models and their data pipelines use, in shapes of no other table.
var commonShapes = []job{
	of("cumsum 1 of 16x200x64", running(ops.CumSum, 1), 16, 200, 64),
	of("argmax 1 of 32x100x50", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 1) }, 32, 100, 50),
	typed("one hot 10000 of 100", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.OneHot(b, x, ir.N(100), ir.F32) }, 10000),
	of("take 50 of axis 1 of 64x200x32", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Take(b, x, b.Input("ids", ir.I32, ir.N(50)), 1, ops.OutsideClip)
	}, 64, 200, 32),
	of("embedding bags 500 of 20", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ReduceSum(b, ops.Embedding(b, x, b.Input("ids", ir.I32, ir.Dims(500, 20)...)), 1)
	}, 2000, 48),
	pair("where 1M", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.Select(b, b.Input("c", ir.Bool, ir.N(1<<20)), x, y)
	}, []int{1 << 20}, []int{1 << 20}),
	of("masked fill 64x128x128", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Select(b, b.Input("c", ir.Bool, ir.Dims(128, 128)...), x, ops.Const(b, ir.F32, -1e9))
	}, 64, 128, 128),
	of("nearest 2 of 8x32x32x16", resized, 8, 32, 32, 16), of("nearest 2 of 8x48x48x3", resized, 8, 48, 48, 3),
	differentiated("gradient of nearest 2 of 8x32x32x16", resized, 8, 32, 32, 16),
	of("layer norm of axes 1 2 of 64x20x30", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.LayerNorm(b, x, b.Input("scale", ir.F32, ir.Dims(20, 30)...), b.Input("bias", ir.F32, ir.Dims(20, 30)...), 1e-5)
	}, 64, 20, 30),
	pair("triangular 256 for 64", ir.F32, triangular, []int{256, 256}, []int{256, 64}),
	pair("triangular 100 of 16 for 5", ir.F32, triangular, []int{100, 16, 16}, []int{100, 16, 5}),
	over("any 0 of 1000x1000", ir.Bool, ops.Any, []int{0}, 1000, 1000), over("all 1 of 5000x30", ir.Bool, ops.All, []int{1}, 5000, 30),
	typed("clamp i32 1M", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Clamp(b, x, ops.Const(b, ir.I32, 3), ops.Const(b, ir.I32, 70))
	}, 1<<20),
	over("sum i64 1000x1000", ir.I64, ops.ReduceSum, []int{1}, 1000, 1000), over("min i64 0 of 1000x1000", ir.I64, ops.ReduceMin, []int{0}, 1000, 1000),
	over("prod 0 of 300x1000", ir.F32, ops.ReduceProd, []int{0}, 300, 1000),
	of("differences 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value {
		part := func(at int) ir.Value { return ops.Slice(b, x, ir.Dims(0, at), ir.Dims(1000, 999), []int{1, 1}) }
		return ops.Sub(b, part(1), part(0))
	}, 1000, 1000),
	of("log cumulative sum exp 200x500", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.CumLogSumExp(b, x, ops.CumSumAttrs{Axis: 1})
	}, 200, 500),
	of("argsort 1000x50", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgSort(b, x, ops.SortAttrs{Axis: 1}) }, 1000, 50),
	typed("normalize u8 8x112x112x3", ir.U8, func(b *ir.Builder, x ir.Value) ir.Value {
		x = ops.Div(b, ops.Convert(b, x, ir.F32), ops.Const(b, ir.F32, 255))
		return ops.Div(b, ops.Sub(b, x, b.Input("mean", ir.F32, ir.N(3))), b.Input("deviation", ir.F32, ir.N(3)))
	}, 8, 112, 112, 3),
	of("f32 to u8 1M", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Convert(b, ops.Clamp(b, x, ops.Const(b, ir.F32, 0), ops.Const(b, ir.F32, 255)), ir.U8)
	}, 1<<20),
	typed("layer norm f16 512x768", ir.F16, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.LayerNorm(b, x, b.Input("scale", ir.F16, ir.N(768)), b.Input("bias", ir.F16, ir.N(768)), 1e-5)
	}, 512, 768),
	typed("gelu bf16 1M", ir.BF16, ops.GeluTanh, 1<<20), typed("softmax f16 512x100", ir.F16, softmax(1), 512, 100),
	einsum("bqhd,bkhd->bhqk", []int{4, 64, 8, 32}, []int{4, 64, 8, 32}), einsum("bhqk,bkhd->bqhd", []int{4, 8, 64, 64}, []int{4, 64, 8, 32}),
	einsum("bij,bkj->bik", []int{100, 20, 30}, []int{100, 25, 30}), einsum("ij,ij->i", []int{5000, 64}, []int{5000, 64}),
	einsum("i,j->ij", []int{1000}, []int{1000}), einsum("bic,ijc->bij", []int{50, 30, 16}, []int{30, 40, 16}),
	einsum("ij,j->i", []int{2000, 2000}, []int{2000}), einsum("ij,i->j", []int{2000, 2000}, []int{2000}), einsum("i,i->", []int{1 << 20}, []int{1 << 20}),
	moved("transpose bf16 0 2 1 3 of 4x128x8x64", ir.BF16, []int{0, 2, 1, 3}, 4, 128, 8, 64),
	of("concatenate channels 16 and 24", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Concatenate(b, 3, x, b.Input("y", ir.F32, ir.Dims(8, 28, 28, 24)...))
	}, 8, 28, 28, 16),
	{"cross entropy 512x1000 and its gradient", func(tb testing.TB) *ir.Graph {
		g, err := autodiff.ValueAndGrad(build(tb, func(b *ir.Builder) {
			b.Output("loss", ops.CrossEntropyMean(b, b.Input("x", ir.F32, ir.Dims(512, 1000)...), b.Input("labels", ir.I32, ir.N(512))))
		}), "loss", "x")
		return must(tb, g, err)
	}},
	differentiated("gradient of softmax 1000x100", softmax(1), 1000, 100),
	differentiated("gradient of layer norm 2000x96", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.LayerNorm(b, x, b.Input("scale", ir.F32, ir.N(96)), b.Input("bias", ir.F32, ir.N(96)), 1e-5)
	}, 2000, 96),
	differentiated("gradient of cumsum 200x1000", running(ops.CumSum, 1), 200, 1000),
	differentiated("gradient of max 1 of 500x300", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceMax(b, x, 1) }, 500, 300),
	{"cross entropy 256x10000", func(tb testing.TB) *ir.Graph {
		return build(tb, func(b *ir.Builder) {
			b.Output("loss", ops.CrossEntropyMean(b, b.Input("x", ir.F32, ir.Dims(256, 10000)...), b.Input("labels", ir.I32, ir.N(256))))
		})
	}},
	of("f32 to i64 1M", to(ir.I64), 1<<20), typed("f64 to i64 1M", ir.F64, to(ir.I64), 1<<20), pair("equal i64 300k", ir.I64, ops.Eq, []int{300000}, []int{300000}),
	typed("argmax f64 1000x500", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 1) }, 1000, 500),
	of("bincount 1000 of 300k", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Bincount(b, hashed(b, x, 2000), 1000) }, 300000),
	of("histogram 100 of 300k", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Histogram(b, x, 100, -1, 1) }, 300000),
	of("quotients of i32 300k", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Div(b, hashed(b, x, 1e9), ops.Add(b, hashed(b, x, 100), ops.Const(b, ir.I32, 1, ir.N(300000))))
	}, 300000),
	of("linear 64 of 4x32x32x32", doubled, 4, 32, 32, 32), differentiated("gradient of linear 64 of 4x32x32x32", doubled, 4, 32, 32, 32),
	differentiated("gradient of take along 1 of 1000x500", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.TakeAlongAxis(b, x, b.Input("ids", ir.I32, ir.Dims(1000, 64)...), 1, ops.OutsideClip)
	}, 1000, 500),
	differentiated("gradient of every other of 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Slice(b, x, ir.Dims(0, 0), ir.Dims(500, 500), []int{2, 2})
	}, 1000, 1000),
	of("silu 1M", ops.Silu, 1<<20), of("softplus 1M", ops.Softplus, 1<<20), of("std 0 of 5000x64", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Std(b, x, 0, 0) }, 5000, 64),
}
