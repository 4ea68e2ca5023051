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
