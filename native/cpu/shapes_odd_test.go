package cpu_test

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// over applies an op of a list of axes to a transposed or plain input of a type.
func over(name string, t ir.DType, f func(b *ir.Builder, x ir.Value, axes ...int) ir.Value, axes []int, dims ...int) job {
	return typed(name, t, func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, axes...) }, dims...)
}

// moved transposes an input of a type.
func moved(name string, t ir.DType, axes []int, dims ...int) job {
	return typed(name, t, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Transpose(b, x, axes...) }, dims...)
}

// pair is an op of two inputs of a type.
func pair(name string, t ir.DType, f func(b *ir.Builder, x, y ir.Value) ir.Value, x, y []int) job {
	return typed(name, t, func(b *ir.Builder, v ir.Value) ir.Value { return f(b, v, b.Input("y", t, ir.Dims(y...)...)) }, x...)
}

func running(f func(b *ir.Builder, x ir.Value, a ops.CumSumAttrs) ir.Value, axis int) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, ops.CumSumAttrs{Axis: axis}) }
}

func to(t ir.DType) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return ops.Convert(b, x, t) }
}

func mean(axes ...int) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return ops.Mean(b, x, axes...) }
}

func variance(axes ...int) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return ops.Var(b, x, 0, axes...) }
}

func softmax(axis int) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, axis) }
}

func taken(b *ir.Builder, x ir.Value, n int) ir.Value {
	return ops.Take(b, x, b.Input("ids", ir.I32, ir.N(n)), 0, ops.OutsideClip)
}

// oddShapes are prime and tiny sizes, long and thin arrays, other types, and views of transposed arrays.
var oddShapes = []job{
	over("sum 1 of 37x41x43", ir.F32, ops.ReduceSum, []int{1}, 37, 41, 43),
	over("sum 0 of 100003x3", ir.F32, ops.ReduceSum, []int{0}, 100003, 3),
	over("sum 1 of 3x100003", ir.F32, ops.ReduceSum, []int{1}, 3, 100003),
	over("sum 0 2 of 17x1000x19", ir.F32, ops.ReduceSum, []int{0, 2}, 17, 1000, 19),
	of("mean 1 of 8x49x768", mean(1), 8, 49, 768),
	over("max 1 of 64x3x1000", ir.F32, ops.ReduceMax, []int{1}, 64, 3, 1000),
	typed("count 1000x1000", ir.Bool, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, ops.Convert(b, x, ir.I32), 1) }, 1000, 1000),
	over("any 1000x1000", ir.Bool, ops.Any, []int{1}, 1000, 1000),
	over("max i8 1000x1000", ir.I8, ops.ReduceMax, []int{1}, 1000, 1000),
	over("sum f16 999x1001 axis 0", ir.F16, ops.ReduceSum, []int{0}, 999, 1001),
	over("prod 5000x13", ir.F32, ops.ReduceProd, []int{1}, 5000, 13),
	of("argmin 20000x11", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ArgMin(b, x, 1) }, 20000, 11),
	of("sum of columns of a transpose", func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, ops.Transpose(b, x, 1, 0), 0) }, 1000, 777),
	of("norm 0 of 513x511", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Norm(b, x, 2, 0) }, 513, 511),
	of("variance 0 of 1000x333", variance(0), 1000, 333),
	of("variance 1 2 of 64x7x7x512", variance(1, 2), 64, 7, 7, 512),
	of("mean 0 2 3 of 16x17x29x29", mean(0, 2, 3), 16, 17, 29, 29),
	of("log sum exp 0 of 1000x100", func(b *ir.Builder, x ir.Value) ir.Value { return ops.LogSumExp(b, x, 0) }, 1000, 100),
	of("softmax 128x12x50x50", softmax(3), 128, 12, 50, 50),
	of("softmax 1 of 64x21x400", softmax(1), 64, 21, 400),
	of("layer norm 64x50x96", norm, 64, 50, 96),
	of("group norm nchw 8x24x33x33", func(b *ir.Builder, x ir.Value) ir.Value {
		y := ops.GroupNorm(b, ops.Transpose(b, x, 0, 2, 3, 1), b.Input("scale", ir.F32, ir.N(24)), b.Input("bias", ir.F32, ir.N(24)), 8, 1e-5)
		return ops.Transpose(b, y, 0, 3, 1, 2)
	}, 8, 24, 33, 33),
	of("cumsum 777x1001", running(ops.CumSum, 1), 777, 1001),
	of("cumsum 1 of 30x31x32", running(ops.CumSum, 1), 30, 31, 32),
	of("cumprod 1000x100", running(ops.CumProd, 1), 1000, 100),
	of("cummax 0 of 2000x300", running(ops.CumMax, 0), 2000, 300),
	typed("cumsum f64 100x5000", ir.F64, running(ops.CumSum, 1), 100, 5000),
	moved("transpose 0 2 1 of 50x77x33", ir.F32, []int{0, 2, 1}, 50, 77, 33),
	moved("transpose 3 1 0 2 of 13x17x19x23", ir.F32, []int{3, 1, 0, 2}, 13, 17, 19, 23),
	moved("transpose i8 777x999", ir.I8, []int{1, 0}, 777, 999),
	moved("transpose f64 500x700", ir.F64, []int{1, 0}, 500, 700),
	over("flip 0 of 1000x1000", ir.F32, ops.Reverse, []int{0}, 1000, 1000),
	over("flip bf16 1000x1000", ir.BF16, ops.Reverse, []int{1}, 1000, 1000),
	over("flip 1 2 of 3x513x511", ir.F32, ops.Reverse, []int{1, 2}, 3, 513, 511),
	of("slice stride 3", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Slice(b, x, ir.Dims(0, 0), ir.Dims(1000, 333), []int{1, 3})
	}, 1000, 1000),
	of("roll 37 of 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Roll(b, x, 1, 37) }, 1000, 1000),
	of("repeat 3 of 10000x7", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Repeat(b, x, 1, 3) }, 10000, 7),
	of("tile 1x1x5 of 100x20x3", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Tile(b, x, 1, 1, 5) }, 100, 20, 3),
	of("spread 1000x1 to 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.BroadcastTo(b, x, ir.Dims(1000, 1000)) }, 1000, 1),
	of("stack 3 of 100000", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Stack(b, 1, x, b.Input("x1", ir.F32, ir.N(100000)), b.Input("x2", ir.F32, ir.N(100000)))
	}, 100000),
	of("pad 1000x100", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Pad(b, x, ops.Const(b, ir.F32, 0), []int{0, 1}, []int{0, 1}, []int{0, 0})
	}, 1000, 100),
	of("triu 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Triu(b, x, 0) }, 1000, 1000),
	pair("add row bf16 999x1001", ir.BF16, ops.Add, []int{999, 1001}, []int{1001}),
	pair("add i8 1M", ir.I8, ops.Add, []int{1 << 20}, []int{1 << 20}),
	pair("mul i64 1M", ir.I64, ops.Mul, []int{1 << 20}, []int{1 << 20}),
	pair("greater 1M", ir.F32, ops.Gt, []int{1 << 20}, []int{1 << 20}),
	pair("and 1M", ir.Bool, ops.And, []int{1 << 20}, []int{1 << 20}),
	pair("outer sum 1000 1001", ir.F32, ops.Add, []int{1000, 1}, []int{1001}),
	typed("convert i8 to f32", ir.I8, to(ir.F32), 1<<20),
	typed("convert f32 to i32", ir.F32, to(ir.I32), 1<<20),
	typed("convert bool to f32", ir.Bool, to(ir.F32), 1<<20),
	typed("sigmoid f16 1M", ir.F16, ops.Sigmoid, 1<<20),
	of("add transposed 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Add(b, x, ops.Transpose(b, x, 1, 0)) }, 1000, 1000),
	of("add flipped 1000x1000", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Add(b, x, ops.Reverse(b, x, 1)) }, 1000, 1000),
	of("exp 7", ops.Exp, 7), of("softmax 1x10", softmax(1), 1, 10),
	multiplied("matmul 1 of 3x3x3", ir.F32, 1, 3, 3, 3, false),
	multiplied("matmul 4096x3x5", ir.F32, 1, 4096, 3, 5, false),
	multiplied("matmul 100 of 7x9x31", ir.F32, 100, 7, 9, 31, false),
	multiplied("matmul i64 100", ir.I64, 1, 100, 100, 100, false),
	typed("take 5000 of 1000x64 bf16", ir.BF16, func(b *ir.Builder, x ir.Value) ir.Value { return taken(b, x, 5000) }, 1000, 64),
	of("take 20000 of 1000", func(b *ir.Builder, x ir.Value) ir.Value { return taken(b, x, 20000) }, 1000),
	pair("mul c64 262144", ir.C64, ops.Mul, []int{1 << 18}, []int{1 << 18}),
	typed("sum c64 512x512", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 1) }, 512, 512),
	typed("sum c64 512x512 axis 0", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, 0) }, 512, 512),
	multiplied("matmul c64 200", ir.C64, 1, 200, 200, 200, false),
	typed("fft 64x210", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{Axes: []int{1}}) }, 64, 210),
	typed("fft 0 of 128x1000", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{Axes: []int{0}}) }, 128, 1000),
	typed("fft 1 2 of 8x64x64", ir.C64, func(b *ir.Builder, x ir.Value) ir.Value { return ops.FFT(b, x, ops.FFTAttrs{Axes: []int{1, 2}}) }, 8, 64, 64),
	of("rfft 1000x96", func(b *ir.Builder, x ir.Value) ir.Value { return ops.RFFT(b, x, 1, ops.FFTBackward) }, 1000, 96),
	typed("sort i32 300x300", ir.I32, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sort(b, ops.SortAttrs{Axis: 1}, x)[0] }, 300, 300),
	of("top 80 of 300x1000", func(b *ir.Builder, x ir.Value) ir.Value {
		y, _ := ops.TopK(b, x, ops.TopKAttrs{K: 80, Axis: 1})
		return y
	}, 300, 1000),
}
