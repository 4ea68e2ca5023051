package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
