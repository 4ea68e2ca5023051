package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpSoftmax, softmaxSamples)
	add(ops.OpLogSoftmax, softmaxSamples)
	add(ops.OpLogSumExp, softmaxSamples)
}

func softmaxSamples() []ir.Sample {
	sample := func(name string, axis int, x *ir.Array) ir.Sample {
		return ir.Sample{Name: name, Attrs: &ops.AxisAttrs{Axis: axis}, In: []*ir.Array{x}}
	}
	none := math.Inf(-1)
	masked := sample("masked", 1, ir.Floats(ir.F32, []float64{1, none, 3, none, none, none, 0, 0, none}, 3, 3))
	masked.NoGrad = "finite differences fail at infinity"
	return []ir.Sample{
		sample("rows", 1, drawn(ir.F32, 3, 5)),
		sample("beyond a tile", 1, drawn(ir.F32, 5, 300)),
		sample("first axis", 0, drawn(ir.F32, 7, 3)),
		sample("inner axis", 1, drawn(ir.F32, 2, 9, 4)),
		sample("one element", 0, drawn(ir.F32, 1)),
		sample("no rows", 1, ir.NewArray(ir.F32, 0, 4)),
		sample("large", 0, ir.Floats(ir.F32, []float64{1000, 999, -1000})),
		sample("half", 1, drawn(ir.F16, 2, 6)),
		masked,
	}
}
