package cpu_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/cmplx"
	"github.com/rlx-go/rlx/ir/image"
	"github.com/rlx-go/rlx/ir/ops"
)

// mapped are maps and sums of types other than f32, and functions that compose ops, with 2¹⁸ elements or about as
// many.
var mapped = []job{
	pair("c64 add", ir.C64, ops.Add, []int{1 << 18}, []int{1 << 18}),
	pair("c64 multiply", ir.C64, ops.Mul, []int{1 << 18}, []int{1 << 18}),
	pair("c64 divide", ir.C64, ops.Div, []int{1 << 18}, []int{1 << 18}),
	pair("c128 multiply", ir.C128, ops.Mul, []int{1 << 18}, []int{1 << 18}),
	typed("c64 exp", ir.C64, cmplx.Exp, 1<<18),
	typed("c64 abs", ir.C64, cmplx.Abs, 1<<18),
	typed("c64 conjugate", ir.C64, ops.Conj, 1<<18),
	typed("c64 sum of 512x512 axis 1", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) }, 512, 512),
	typed("c64 sum of 512x512 axis 0", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) }, 512, 512),
	pair("c64 matmul 200", ir.C64, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.MatMul(b, x, y) }, []int{200, 200}, []int{200, 200}),
	pair("c64 matmul 16 of 64x64", ir.C64, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.MatMul(b, x, y) }, []int{16, 64, 64}, []int{16, 64, 64}),
	pair("f64 pow", ir.F64, func(b *ir.Builder, x, y ir.Value) ir.Value { return ops.Pow(b, ops.Abs(b, x), y) }, []int{1 << 18}, []int{1 << 18}),
	typed("f64 sin", ir.F64, ops.Sin, 1<<18),
	typed("f64 exp", ir.F64, ops.Exp, 1<<18),
	typed("f64 log", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Log(b, ops.Abs(b, x)) }, 1<<18),
	typed("f64 tanh", ir.F64, ops.Tanh, 1<<18),
	typed("f64 argmax 1000x500", ir.F64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 1) }, 1000, 500),
	typed("i64 argmax 1000x500", ir.I64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMax(b, x, 1) }, 1000, 500),
	of("pad reflect 8x64x64x16", func(b *ir.Builder, x ir.Value) ir.Value {
		return image.Pad(b, x, []int{0, 3, 3, 0}, []int{0, 3, 3, 0}, image.Reflect)
	}, 8, 64, 64, 16),
	of("pad reflect planes 16x64x64", func(b *ir.Builder, x ir.Value) ir.Value {
		x = image.Pad(b, ops.Reshape(b, x, ir.Dims(128, 64, 64, 1)...), []int{0, 3, 3, 0}, []int{0, 3, 3, 0}, image.Reflect)
		return x
	}, 128, 64, 64),
	differentiated("gradient of pad reflect 8x64x64x16", func(b *ir.Builder, x ir.Value) ir.Value {
		return image.Pad(b, x, []int{0, 3, 3, 0}, []int{0, 3, 3, 0}, image.Reflect)
	}, 8, 64, 64, 16),
	pair("grid sample 4x64x64x32", ir.F32, func(b *ir.Builder, x, y ir.Value) ir.Value { return image.GridSample(b, x, y) }, []int{4, 64, 64, 32}, []int{4, 64, 64, 2}),
	of("embedding bags 4096 of 8, 64", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ReduceSum(b, ops.Embedding(b, x, b.Input("ids", ir.I32, ir.Dims(4096, 8)...)), 1)
	}, 20_000, 64),
	of("sum of every fourth of 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ReduceSum(b, ops.Slice(b, x, ir.Dims(0, 0), ir.Dims(1000, 250), []int{1, 4}), 1)
	}, 1000, 1000),
	over("bf16 sum 1000x1000", ir.BF16, ops.ReduceSum, []int{1}, 1000, 1000),
	over("f16 sum 1000x1000", ir.F16, ops.ReduceSum, []int{1}, 1000, 1000),
	over("f64 sum 1000x1000", ir.F64, ops.ReduceSum, []int{1}, 1000, 1000),
	over("bf16 max 1000x1000", ir.BF16, ops.ReduceMax, []int{1}, 1000, 1000),
	factors("inverse 1000 of 3", inverse, 1000, 3, 3),
	factors("inverse 64 of 32", inverse, 64, 32, 32),
	imaged("conv 3x3 in 4 groups, 64", ops.Conv2DAttrs{Groups: 4, PadLo: []int{1, 1}, PadHi: []int{1, 1}}, 8, 32, 64, 3, 64),
	imaged("conv 3x3 in 32 groups, 128", ops.Conv2DAttrs{Groups: 32, PadLo: []int{1, 1}, PadHi: []int{1, 1}}, 8, 28, 128, 3, 128),
	of("rfft 64x4096", func(b *ir.Builder, x ir.Value) ir.Value { return ops.RFFT(b, x, -1, "") }, 64, 4096),
	of("rfft 1000x512", func(b *ir.Builder, x ir.Value) ir.Value { return ops.RFFT(b, x, -1, "") }, 1000, 512),
	typed("irfft 1000x512", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.IRFFT(b, x, -1, 512, "") }, 1000, 257),
}

// BenchmarkMaps runs the maps, and those of PyTorch in turns with them, as [BenchmarkSingles].
func BenchmarkMaps(b *testing.B) { benchmarkPairs(b, mapped, "peers/maps.py") }

// TestMapsAreGraphs keeps the jobs valid between runs of the benchmark.
func TestMapsAreGraphs(t *testing.T) {
	for _, j := range mapped {
		if g := j.graph(t); len(g.Outputs()) == 0 {
			t.Errorf("%s computes nothing", j.name)
		}
	}
}
