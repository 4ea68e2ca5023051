package ops

import "github.com/rlx-go/rlx/ir"

func whileSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	f32 := func(dims ...int) ir.Type { return ir.Type{DType: ir.F32, Shape: ir.Dims(dims...)} }
	i32 := ir.Type{DType: ir.I32}
	below := func(n float64) func(b *ir.Builder, in []ir.Value) []ir.Value {
		return func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{Lt(b, in[0], Const(b, in[0].DType(), n))}
		}
	}
	up := func(b *ir.Builder, x ir.Value) ir.Value { return Add(b, x, OnesLike(b, x)) }
	count := []ir.Type{i32, f32(2, 3)}
	step := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{up(b, in[0]), Sin(b, Mul(b, in[1], in[1]))}
	}
	mixing := []ir.Type{f32(3, 3), i32, f32(3)}
	mix := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{up(b, in[1]), Tanh(b, MatMul(b, in[0], in[2]))}
	}
	second := func(b *ir.Builder, in []ir.Value) []ir.Value { return below(3)(b, in[1:]) }
	graphs := func(types []ir.Type, cond, body func(b *ir.Builder, in []ir.Value) []ir.Value) []*ir.Graph {
		return []*ir.Graph{sampleGraph(types, cond), sampleGraph(types, body)}
	}
	grow := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{Mul(b, Const(b, ir.F32, 1.5), up(b, in[0]))}
	}
	// Squares and adds, as the Mandelbrot set does, as long as |z| is below 2.
	orbit := []ir.Type{ir.TypeOf(ir.C64), ir.TypeOf(ir.C64)}
	inside := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{Lt(b, Real(b, Mul(b, in[1], Conj(b, in[1]))), Const(b, ir.F32, 4))}
	}
	square := func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{Add(b, Mul(b, in[1], in[1]), in[0])} }
	start := func(z complex128) *ir.Array { return &ir.Array{DType: ir.C64, C: []complex128{z}} }
	zero, values := ir.NewArray(ir.I32), drawn(ir.F32, 2, 3)
	return []ir.Sample{
		{Name: "counted", Attrs: &WhileAttrs{0, 5}, Subs: graphs(count, below(3), step), In: []*ir.Array{zero, values}},
		{Name: "stopped by the bound", Attrs: &WhileAttrs{0, 2}, Subs: graphs(count, below(9), step), In: []*ir.Array{zero, values}},
		{Name: "no step", Attrs: &WhileAttrs{0, 3}, Subs: graphs(count, below(0), step), In: []*ir.Array{zero, values}},
		{Name: "a carry that every step mixes", Attrs: &WhileAttrs{1, 4}, Subs: graphs(mixing, second, mix), In: []*ir.Array{drawn(ir.F32, 3, 3), zero, drawn(ir.F32, 3)}},
		{Name: "until a value is large", Attrs: &WhileAttrs{0, 9}, Subs: graphs([]ir.Type{f32()}, below(20), grow), In: []*ir.Array{drawn(ir.F32)}},
		{Name: "complex carry", Attrs: &WhileAttrs{1, 7}, Subs: graphs(orbit, inside, square), In: []*ir.Array{start(0.5 + 0.25i), start(0.125)}},
	}
}
