package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpWhile, whileSamples)
}

func whileSamples() []ir.Sample {
	f32 := func(dims ...int) ir.Type { return ir.Type{DType: ir.F32, Shape: ir.Dims(dims...)} }
	i32 := ir.Type{DType: ir.I32}
	below := func(n float64) func(b *ir.Builder, in []ir.Value) []ir.Value {
		return func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.Lt(b, in[0], ops.Const(b, in[0].DType(), n))}
		}
	}
	up := func(b *ir.Builder, x ir.Value) ir.Value { return ops.Add(b, x, ops.OnesLike(b, x)) }
	count := []ir.Type{i32, f32(2, 3)}
	step := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{up(b, in[0]), ops.Sin(b, ops.Mul(b, in[1], in[1]))}
	}
	mixing := []ir.Type{f32(3, 3), i32, f32(3)}
	mix := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{up(b, in[1]), ops.Tanh(b, ops.MatMul(b, in[0], in[2]))}
	}
	second := func(b *ir.Builder, in []ir.Value) []ir.Value { return below(3)(b, in[1:]) }
	graphs := func(types []ir.Type, cond, body func(b *ir.Builder, in []ir.Value) []ir.Value) []*ir.Graph {
		return []*ir.Graph{sampleGraph(types, cond), sampleGraph(types, body)}
	}
	grow := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, ops.Const(b, ir.F32, 1.5), up(b, in[0]))}
	}
	// Squares and adds, as the Mandelbrot set does, as long as |z| is below 2.
	orbit := []ir.Type{ir.TypeOf(ir.C64), ir.TypeOf(ir.C64)}
	inside := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Lt(b, ops.Real(b, ops.Mul(b, in[1], ops.Conj(b, in[1]))), ops.Const(b, ir.F32, 4))}
	}
	square := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Add(b, ops.Mul(b, in[1], in[1]), in[0])}
	}
	start := func(z complex128) *ir.Array { return &ir.Array{DType: ir.C64, C: []complex128{z}} }
	zero, values := ir.NewArray(ir.I32), drawn(ir.F32, 2, 3)
	return []ir.Sample{
		{Name: "counted", Attrs: &ops.WhileAttrs{Consts: 0, MaxSteps: 5}, Subs: graphs(count, below(3), step), In: []*ir.Array{zero, values}},
		{Name: "stopped by the bound", Attrs: &ops.WhileAttrs{Consts: 0, MaxSteps: 2}, Subs: graphs(count, below(9), step), In: []*ir.Array{zero, values}},
		{Name: "no step", Attrs: &ops.WhileAttrs{Consts: 0, MaxSteps: 3}, Subs: graphs(count, below(0), step), In: []*ir.Array{zero, values}},
		{Name: "a carry that every step mixes", Attrs: &ops.WhileAttrs{Consts: 1, MaxSteps: 4}, Subs: graphs(mixing, second, mix), In: []*ir.Array{drawn(ir.F32, 3, 3), zero, drawn(ir.F32, 3)}},
		{Name: "until a value is large", Attrs: &ops.WhileAttrs{Consts: 0, MaxSteps: 9}, Subs: graphs([]ir.Type{f32()}, below(20), grow), In: []*ir.Array{drawn(ir.F32)}},
		{Name: "complex carry", Attrs: &ops.WhileAttrs{Consts: 1, MaxSteps: 7}, Subs: graphs(orbit, inside, square), In: []*ir.Array{start(0.5 + 0.25i), start(0.125)}},
	}
}
