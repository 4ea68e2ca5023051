package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addUnary(ops.OpStopGradient, unary{from: -2, to: 2, noGrad: "the derivative is 0 by definition"})
	addUnary(ops.OpRematerialize, unary{from: -2, to: 2})
	add(ops.OpCheckIndex, checkIndexSamples)
}

func checkIndexSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), Attrs: &ops.CheckIndexAttrs{Bound: ir.N(10), What: "row"}, In: []*ir.Array{draw(1, ir.I32, 0, 9, dims...)}})
	}
	for _, d := range typesIn(isInteger) {
		out = append(out, ir.Sample{Name: d.String(), Attrs: &ops.CheckIndexAttrs{Bound: ir.N(1000), What: "row"}, In: []*ir.Array{draw(1, d, 0, 99, 5)}})
	}
	return out
}
