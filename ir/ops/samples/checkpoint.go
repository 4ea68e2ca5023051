package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
