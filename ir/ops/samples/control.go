package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpCond, condSamples)
}

func condSamples() []ir.Sample {
	types := []ir.Type{ir.TypeOf(ir.F32, ir.N(2), ir.N(3)), ir.TypeOf(ir.F32, ir.N(3))}
	branches := []*ir.Graph{
		sampleGraph(types, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.Mul(b, ops.Sin(b, in[0]), in[1]), ops.ReduceSum(b, in[1])}
		}),
		sampleGraph(types, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.Add(b, ops.Mul(b, in[0], in[0]), ops.Exp(b, in[1])), ops.Const(b, ir.F32, 2)}
		}),
	}
	sample := func(name string, p int64) ir.Sample {
		return ir.Sample{Name: name, Subs: branches, In: []*ir.Array{ir.Int(ir.Bool, p), drawn(ir.F32, 2, 3), drawn(ir.F32, 3)}}
	}
	z := []ir.Type{ir.TypeOf(ir.C64, ir.N(3))}
	complexBranches := []*ir.Graph{
		sampleGraph(z, func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Mul(b, in[0], in[0])} }),
		sampleGraph(z, func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Conj(b, in[0])} }),
	}
	complexNumbers := ir.Sample{Name: "complex", Subs: complexBranches, In: []*ir.Array{ir.Int(ir.Bool, 1), drawn(ir.C64, 3)}}
	return []ir.Sample{sample("true", 1), sample("false", 0), complexNumbers}
}

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

func init() {
	add(ops.OpScan, scanSamples)
}

func scanSamples() []ir.Sample {
	f32 := func(dims ...int) ir.Type { return ir.Type{DType: ir.F32, Shape: ir.Dims(dims...)} }
	recurrent := sampleGraph([]ir.Type{f32(3, 3), f32(2, 3), f32(2, 3)}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		h := ops.Tanh(b, ops.Add(b, ops.MatMul(b, in[1], in[0]), in[2]))
		return []ir.Value{h, ops.Mul(b, h, in[2])}
	})
	sum := sampleGraph([]ir.Type{f32(), f32()}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Add(b, in[0], in[1])}
	})
	counter := sampleGraph([]ir.Type{{DType: ir.I32}, f32(2)}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		next := ops.Add(b, in[0], ops.Const(b, ir.I32, 1))
		return []ir.Value{next, ops.Mul(b, in[1], ops.Convert(b, next, ir.F32))}
	})
	power := sampleGraph([]ir.Type{f32(4), f32(4)}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, in[0], in[1])}
	})
	c64 := ir.TypeOf(ir.C64, ir.N(2))
	turning := sampleGraph([]ir.Type{c64, c64, f32(2)}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		z := ops.Add(b, ops.Mul(b, in[1], in[0]), ops.Complex(b, in[2], in[2]))
		return []ir.Value{z, ops.Mul(b, z, ops.Conj(b, z)), ops.Imag(b, z)}
	})
	one := ir.N(1)
	recurrence := []*ir.Array{drawn(ir.F32, 3, 3), drawn(ir.F32, 2, 3), drawn(ir.F32, 5, 2, 3)}
	return []ir.Sample{
		{Name: "recurrent", Attrs: &ops.ScanAttrs{Consts: 1, Carries: 1, Length: ir.N(5), Reverse: false}, Subs: []*ir.Graph{recurrent}, In: recurrence},
		{Name: "recurrent from the end", Attrs: &ops.ScanAttrs{Consts: 1, Carries: 1, Length: ir.N(5), Reverse: true}, Subs: []*ir.Graph{recurrent}, In: recurrence},
		{Name: "no constants", Attrs: &ops.ScanAttrs{Consts: 0, Carries: 1, Length: ir.N(7), Reverse: false}, Subs: []*ir.Graph{sum}, In: []*ir.Array{drawn(ir.F32), drawn(ir.F32, 7)}},
		{Name: "integer carry", Attrs: &ops.ScanAttrs{Consts: 0, Carries: 1, Length: ir.N(3), Reverse: true}, Subs: []*ir.Graph{counter}, In: []*ir.Array{ir.NewArray(ir.I32), drawn(ir.F32, 3, 2)}},
		{Name: "no slices", Attrs: &ops.ScanAttrs{Consts: 1, Carries: 1, Length: ir.N(3), Reverse: false}, Subs: []*ir.Graph{power}, In: []*ir.Array{drawn(ir.F32, 4), drawn(ir.F32, 4)}},
		{Name: "one step", Attrs: &ops.ScanAttrs{Consts: 0, Carries: 1, Length: one, Reverse: false}, Subs: []*ir.Graph{sum}, In: []*ir.Array{drawn(ir.F32), drawn(ir.F32, 1)}},
		{Name: "no steps", Attrs: &ops.ScanAttrs{Consts: 0, Carries: 1, Length: ir.N(0), Reverse: false}, Subs: []*ir.Graph{sum}, In: []*ir.Array{drawn(ir.F32), drawn(ir.F32, 0)}},
		{Name: "complex carry", Attrs: &ops.ScanAttrs{Consts: 1, Carries: 1, Length: ir.N(3), Reverse: false}, Subs: []*ir.Graph{turning}, In: []*ir.Array{drawn(ir.C64, 2), drawn(ir.C64, 2), drawn(ir.F32, 3, 2)}},
	}
}

func init() {
	add(ops.OpCheckpoint, checkpointSamples)
}

func checkpointSamples() []ir.Sample {
	v := ir.TypeOf(ir.F32, ir.N(3))
	product := sampleGraph([]ir.Type{v, v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, ops.Sin(b, in[0]), in[1]), ops.Cos(b, in[1])}
	})
	in := []*ir.Array{drawn(ir.F32, 3), ir.Floats(ir.F32, []float64{1, -2, 0.5})}
	return []ir.Sample{
		{Name: "forward", Attrs: &ops.CheckpointAttrs{}, Subs: []*ir.Graph{product}, In: in},
		{Name: "again", Attrs: &ops.CheckpointAttrs{Residuals: 1}, Subs: []*ir.Graph{product}, In: in},
	}
}

func init() {
	add(ops.OpLinearCall, linearCallSamples)
	add(ops.OpCustomVJP, customVJPSamples)
	add(ops.OpCustomJVP, customJVPSamples)
}

func linearCallSamples() []ir.Sample {
	v := ir.TypeOf(ir.F32, ir.N(3))
	scaled := sampleGraph([]ir.Type{v, v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, in[0], in[1])}
	})
	return []ir.Sample{{
		Name: "scaling", Attrs: &ops.LinearCallAttrs{Residuals: 1}, Subs: []*ir.Graph{scaled, scaled},
		In: []*ir.Array{drawn(ir.F32, 3), ir.Floats(ir.F32, []float64{1, -2, 0.5})},
	}}
}

func customVJPSamples() []ir.Sample {
	v := ir.TypeOf(ir.F32, ir.N(3))
	forward := sampleGraph([]ir.Type{v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, in[0], in[0]), in[0]}
	})
	return []ir.Sample{{
		Name: "square", Attrs: &ops.CustomVJPAttrs{Results: 1}, Subs: []*ir.Graph{forward, doubledProduct(v)}, In: []*ir.Array{drawn(ir.F32, 3)},
	}}
}

func customJVPSamples() []ir.Sample {
	v := ir.TypeOf(ir.F32, ir.N(3))
	f := sampleGraph([]ir.Type{v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, in[0], in[0])}
	})
	return []ir.Sample{{Name: "square", Subs: []*ir.Graph{f, doubledProduct(v)}, In: []*ir.Array{drawn(ir.F32, 3)}}}
}

// doubledProduct is (x, t) ↦ 2·x·t, the derivative of the square in both modes.
func doubledProduct(v ir.Type) *ir.Graph {
	return sampleGraph([]ir.Type{v, v}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, ops.Mul(b, in[0], in[1]), ops.ConstLike(b, in[0], 2))}
	})
}
