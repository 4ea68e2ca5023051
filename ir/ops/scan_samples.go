package ops

import "github.com/rlx-go/rlx/ir"

func scanSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	f32 := func(dims ...int) ir.Type { return ir.Type{DType: ir.F32, Shape: ir.Dims(dims...)} }
	recurrent := sampleGraph([]ir.Type{f32(3, 3), f32(2, 3), f32(2, 3)}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		h := Tanh(b, Add(b, MatMul(b, in[1], in[0]), in[2]))
		return []ir.Value{h, Mul(b, h, in[2])}
	})
	sum := sampleGraph([]ir.Type{f32(), f32()}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{Add(b, in[0], in[1])}
	})
	counter := sampleGraph([]ir.Type{{DType: ir.I32}, f32(2)}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		next := Add(b, in[0], Const(b, ir.I32, 1))
		return []ir.Value{next, Mul(b, in[1], Convert(b, next, ir.F32))}
	})
	power := sampleGraph([]ir.Type{f32(4), f32(4)}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{Mul(b, in[0], in[1])}
	})
	c64 := ir.TypeOf(ir.C64, ir.N(2))
	turning := sampleGraph([]ir.Type{c64, c64, f32(2)}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		z := Add(b, Mul(b, in[1], in[0]), Complex(b, in[2], in[2]))
		return []ir.Value{z, Mul(b, z, Conj(b, z)), Imag(b, z)}
	})
	one := ir.N(1)
	recurrence := []*ir.Array{drawn(ir.F32, 3, 3), drawn(ir.F32, 2, 3), drawn(ir.F32, 5, 2, 3)}
	return []ir.Sample{
		{Name: "recurrent", Attrs: &ScanAttrs{1, 1, ir.N(5), false}, Subs: []*ir.Graph{recurrent}, In: recurrence},
		{Name: "recurrent from the end", Attrs: &ScanAttrs{1, 1, ir.N(5), true}, Subs: []*ir.Graph{recurrent}, In: recurrence},
		{Name: "no constants", Attrs: &ScanAttrs{0, 1, ir.N(7), false}, Subs: []*ir.Graph{sum}, In: []*ir.Array{drawn(ir.F32), drawn(ir.F32, 7)}},
		{Name: "integer carry", Attrs: &ScanAttrs{0, 1, ir.N(3), true}, Subs: []*ir.Graph{counter}, In: []*ir.Array{ir.NewArray(ir.I32), drawn(ir.F32, 3, 2)}},
		{Name: "no slices", Attrs: &ScanAttrs{1, 1, ir.N(3), false}, Subs: []*ir.Graph{power}, In: []*ir.Array{drawn(ir.F32, 4), drawn(ir.F32, 4)}},
		{Name: "one step", Attrs: &ScanAttrs{0, 1, one, false}, Subs: []*ir.Graph{sum}, In: []*ir.Array{drawn(ir.F32), drawn(ir.F32, 1)}},
		{Name: "no steps", Attrs: &ScanAttrs{0, 1, ir.N(0), false}, Subs: []*ir.Graph{sum}, In: []*ir.Array{drawn(ir.F32), drawn(ir.F32, 0)}},
		{Name: "complex carry", Attrs: &ScanAttrs{1, 1, ir.N(3), false}, Subs: []*ir.Graph{turning}, In: []*ir.Array{drawn(ir.C64, 2), drawn(ir.C64, 2), drawn(ir.F32, 3, 2)}},
	}
}
