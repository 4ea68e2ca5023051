package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpDropout, dropoutSamples)
}

func dropoutSamples() []ir.Sample {
	key := ir.Ints(ir.U32, []int64{6, 28})
	sample := func(name string, rate float64, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.DropoutAttrs{Rate: rate}, In: []*ir.Array{drawn(ir.F32, dims...), key}}
	}
	return []ir.Sample{
		sample("a quarter", 0.25, 7, 33), sample("a hundred-thousandth", 1e-5, 3, 5), sample("none", 0, 5), sample("all", 1, 5), sample("empty", 0.5, 0, 2), sample("scalar", 0.5),
	}
}
