package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// everyday are ops of 10⁵ to 10⁷ numbers, in types and layouts of no other table.
var everyday = []job{
	of("clip 4M", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Clamp(b, x, ops.Const(b, ir.F32, -0.1), ops.Const(b, ir.F32, 0.1))
	}, 1<<22),
	pair("where of a comparison 4M", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.Select(b, ops.Gt(b, x, y), x, ops.Const(b, ir.F32, 0))
	}, []int{1 << 22}, []int{1 << 22}),
	pair("where of a column bf16 2048x1024", ir.BF16, func(b *ir.Builder, x, y ir.Value) ir.Value {
		return ops.Select(b, b.Input("c", ir.Bool, ir.Dims(2048, 1)...), x, y)
	}, []int{2048, 1024}, []int{2048, 1024}),
	of("argmax 2 of 64x128x256", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 2) }, 64, 128, 256),
	typed("argmax bf16 1 of 2000x1000", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 1) }, 2000, 1000),
	typed("argmax i32 0 of 2000x1000", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 0) }, 2000, 1000),
	typed("take 65536 rows of 4096x256 bf16", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return taken(b, x, 1<<16) }, 4096, 256),
	typed("take 65536 rows of 4096x64 f64", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return taken(b, x, 1<<16) }, 4096, 64),
	of("take along 0 of 2000x500", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.TakeAlongAxis(b, x, b.Input("ids", ir.I32, ir.Dims(2000, 500)...), 0, ops.OutsideClip)
	}, 2000, 500),
	typed("pad bf16 16x64x64x32", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.BF16, 0), []int{0, 1, 1, 0}, []int{0, 1, 1, 0}, []int{0, 0, 0, 0})
	}, 16, 64, 64, 32),
	typed("pad f64 2000x500", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.F64, 0), []int{0, 3}, []int{0, 3}, []int{0, 0})
	}, 2000, 500),
	typed("roll 0 f64 2000x500", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Roll(b, x, 0, 3) }, 2000, 500),
	typed("roll 1 bf16 2000x500", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Roll(b, x, 1, 3) }, 2000, 500),
	typed("flip 1 f64 1000x1000", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }, 1000, 1000),
	typed("flip 1 i64 1000x1000", ir.I64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }, 1000, 1000),
	typed("flip 1 u8 1000x3000", ir.U8, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Reverse(b, x, 1) }, 1000, 3000),
	pair("concatenate last bf16 8192x96", ir.BF16, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Concatenate(b, 1, x, y) }, []int{8192, 96}, []int{8192, 32}),
	pair("concatenate last f64 20000x17", ir.F64, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Concatenate(b, 1, x, y) }, []int{20000, 17}, []int{20000, 15}),
	moved("transpose 0 2 1 f32 32x256x384", ir.F32, []int{0, 2, 1}, 32, 256, 384),
	moved("transpose 0 2 1 bf16 32x256x384", ir.BF16, []int{0, 2, 1}, 32, 256, 384),
	moved("transpose 0 2 1 f64 16x256x384", ir.F64, []int{0, 2, 1}, 16, 256, 384),
	moved("transpose 0 2 1 i8 32x256x384", ir.I8, []int{0, 2, 1}, 32, 256, 384),
	moved("transpose 0 3 1 2 f32 8x56x56x64", ir.F32, []int{0, 3, 1, 2}, 8, 56, 56, 64),
	moved("transpose 0 3 1 2 bf16 8x56x56x64", ir.BF16, []int{0, 3, 1, 2}, 8, 56, 56, 64),
	moved("transpose 0 3 1 2 u8 8x224x224x3", ir.U8, []int{0, 3, 1, 2}, 8, 224, 224, 3),
	moved("transpose 0 2 1 3 f64 8x128x8x64", ir.F64, []int{0, 2, 1, 3}, 8, 128, 8, 64),
	typed("repeat 1 bf16 2000x500", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Repeat(b, x, 1, 2) }, 2000, 500),
	of("repeat 0 f32 2000x500", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Repeat(b, x, 0, 4) }, 2000, 500),
	of("tile 1x3 f32 2000x501", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Tile(b, x, 1, 3) }, 2000, 501),
	typed("cumsum 0 f64 2000x500", ir.F64, running(ops.CumSum, 0), 2000, 500),
	typed("cumsum 1 i64 2000x500", ir.I64, running(ops.CumSum, 1), 2000, 500),
	of("cummax 1 f32 1000x1000", running(ops.CumMax, 1), 1000, 1000),
	of("cumprod 0 f32 1000x1000", running(ops.CumProd, 0), 1000, 1000),
	typed("log sum exp bf16 4096x1000", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return ops.LogSumExp(b, x, 1) }, 4096, 1000),
	typed("variance 0 f64 5000x200", ir.F64, variance(0), 5000, 200),
	of("norm of 4M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Norm(b, x, 2, 0) }, 1<<22),
	of("norm 1 of 100000x16", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Norm(b, x, 2, 1) }, 100_000, 16),
	typed("softmax bf16 4096x1000", ir.BF16, softmax(1), 4096, 1000),
	typed("softmax f64 1000x1000", ir.F64, softmax(1), 1000, 1000),
	of("sort 1 of 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 1}, x)[0] }, 1000, 1000),
	typed("sort i64 1 of 1000x1000", ir.I64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 1}, x)[0] }, 1000, 1000),
	of("top 50 of 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value {
		y, _ := ops.TopK(b, x, ops.TopKAttrs{K: 50, Axis: 1})
		return y
	}, 1000, 1000),
	of("unique of 200000", func(b *ir.Builder, x ir.Value) ir.Value {
		y, _, _ := ops.Unique(b, hashed(b, x, 2000), ir.N(1000))
		return y
	}, 200_000),
	of("max pool 2x2 of 8x112x112x32", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.MaxPool(b, x, ops.PoolAttrs{Sizes: []int{2, 2}})
	}, 8, 112, 112, 32),
	of("average pool 3x3 stride 2 of 8x112x112x32", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.AvgPool(b, x, ops.AvgPoolAttrs{PoolAttrs: ops.PoolAttrs{Sizes: []int{3, 3}, Strides: []int{2, 2}}})
	}, 8, 112, 112, 32),
	of("nearest 2 of 4x64x64x64", resized, 4, 64, 64, 64),
	typed("nearest 2 bf16 of 4x64x64x32", ir.BF16, resized, 4, 64, 64, 32),
	of("linear 2 of 4x64x64x64", doubled, 4, 64, 64, 64), of("linear 2 of 4x64x64x3", doubled, 4, 64, 64, 3),
	typed("linear 2 f64 of 4x64x64x16", ir.F64, doubled, 4, 64, 64, 16),
	of("group norm 16x32x32x64", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.GroupNorm(b, x, b.Input("scale", ir.F32, ir.N(64)), b.Input("bias", ir.F32, ir.N(64)), 8, 1e-5)
	}, 16, 32, 32, 64),
	of("layer norm 4095x777", norm, 4095, 777),
	typed("layer norm bf16 2048x768", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.LayerNorm(b, x, b.Input("scale", ir.BF16, ir.N(768)), b.Input("bias", ir.BF16, ir.N(768)), 1e-5)
	}, 2048, 768),
	window{16, 1, 2000, 32, 64, 1, [2]int{1, 5}, [2]int{1, 1}, [2]int{1, 1}, true, false}.job("conv1d ncw 5 of 16x32x2000"),
	einsum("bij,bjk->ik", []int{64, 100, 50}, []int{64, 50, 80}), einsum("bnhd,bmhd->bhnm", []int{2, 256, 8, 64}, []int{2, 256, 8, 64}),
	pair("outer 2000x2000", ir.F32, ops.Outer, []int{2000}, []int{2000}),
	multiplied("matmul 512 of 16x16", ir.F32, 512, 16, 16, 16, false), multiplied("matmul f64 2000 of 8x8", ir.F64, 2000, 8, 8, 8, false),
	multiplied("matmul 10000 of 3x3", ir.F32, 10000, 3, 3, 3, false), multiplied("matmul 100000 of 4x4 by vectors", ir.F32, 100000, 4, 1, 4, false),
	factors("inverse 10000 of 3", inverse, 10000, 3, 3), factors("det 10000 of 3", det, 10000, 3, 3),
	factors("lu 1000 of 8", lu, 1000, 8, 8), factors("cholesky 1000 of 8", cholesky, 1000, 8, 8), factors("eigh 1000 of 3", eigh, 1000, 3, 3),
	typedFactors("inverse f64 1000 of 4", ir.F64, inverse, 1000, 4, 4),
	over("sum all i32 2000x2000", ir.I32, ops.ReduceSum, []int{0, 1}, 2000, 2000), over("sum 0 i64 1000x1000", ir.I64, ops.ReduceSum, []int{0}, 1000, 1000),
	over("sum 1 u8 1000x3000", ir.U8, ops.ReduceSum, []int{1}, 1000, 3000), over("sum 1 bf16 2000x2000", ir.BF16, ops.ReduceSum, []int{1}, 2000, 2000),
	over("max 1 bf16 2000x2000", ir.BF16, ops.ReduceMax, []int{1}, 2000, 2000), over("sum 0 bf16 2000x2000", ir.BF16, ops.ReduceSum, []int{0}, 2000, 2000),
	pair("equal bf16 2M", ir.BF16, ops.Eq, []int{1 << 21}, []int{1 << 21}), pair("less f64 1M", ir.F64, ops.Lt, []int{1 << 20}, []int{1 << 20}),
	typed("f64 to f32 2M", ir.F64, to(ir.F32), 1<<21), typed("bf16 to f32 2M", ir.BF16, to(ir.F32), 1<<21), typed("i64 to f32 1M", ir.I64, to(ir.F32), 1<<20),
	typed("f16 to f32 2M", ir.F16, to(ir.F32), 1<<21), typed("u8 to f32 4M", ir.U8, to(ir.F32), 1<<22), of("f32 to f16 2M", to(ir.F16), 1<<21), of("f32 to bool 2M", to(ir.Bool), 1<<21),
	of("erf 4M", ops.Erf, 1<<22), of("erfinv 1M", ops.Erfinv, 1<<20), typed("erfinv f64 200k", ir.F64, ops.Erfinv, 200_000),
	of("log1p 4M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Log1p(b, x) }, 1<<22), of("expm1 4M", ops.Expm1, 1<<22),
	typed("gelu bf16 4M", ir.BF16, ops.Gelu, 1<<22), typed("silu bf16 4M", ir.BF16, ops.Silu, 1<<22), typed("tanh f16 2M", ir.F16, ops.Tanh, 1<<21),
	pair("atan2 2M", ir.F32, ops.Atan2, []int{1 << 21}, []int{1 << 21}), pair("fmod 2M", ir.F32, ops.Rem, []int{1 << 21}, []int{1 << 21}),
	of("square 4M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, ops.ConstLike(b, x, 2)) }, 1<<22),
	of("power 0.75 1M", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, ops.Abs(b, x), ops.ConstLike(b, x, 0.75)) }, 1<<20),
	pair("mul c64 1M", ir.C64, ops.Mul, []int{1 << 20}, []int{1 << 20}),
	typed("fft 256x1024", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{Axes: []int{1}}) }, 256, 1024),
	of("rfft 256x1024", func(b *ir.Builder, x ir.Value) ir.Value { return ops.RFFT(b, x, 1, "") }, 256, 1024),
	pair("mean squared error 2M", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.MSE(b, x, y, "mean") }, []int{1 << 21}, []int{1 << 21}),
	pair("cosine similarity 10000x128", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.CosineSimilarity(b, x, y, 1, 1e-8) }, []int{10000, 128}, []int{10000, 128}),
	of("tril f32 2000x2000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Tril(b, x, 0) }, 2000, 2000),
	of("pixel shuffle 2 of 4x64x64x64", func(b *ir.Builder, x ir.Value) ir.Value { return ops.PixelShuffle(b, x, 2) }, 4, 64, 64, 64),
}

// BenchmarkEveryday runs the everyday jobs beside PyTorch's, as [BenchmarkSingles].
func BenchmarkEveryday(b *testing.B) { benchmarkPairs(b, everyday, "peers/everyday.py") }
