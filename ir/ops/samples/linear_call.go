package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
