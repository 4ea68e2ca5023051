package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addUnary(ops.OpConj, unary{from: -2, to: 2})
	add(ops.OpComplex, complexSamples)
	addUnary(ops.OpReal, unary{from: -2, to: 2})
	addUnary(ops.OpImag, unary{from: -2, to: 2})
}

func complexSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{draw(1, ir.F32, -2, 2, dims...), draw(2, ir.F32, -2, 2, dims...)}})
	}
	return append(out, ir.Sample{Name: "f64", In: []*ir.Array{draw(1, ir.F64, -2, 2, 5), draw(2, ir.F64, -2, 2, 5)}})
}
