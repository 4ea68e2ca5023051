package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpMatrixPower, func() []ir.Sample {
		var out []ir.Sample
		for _, p := range []int{0, 1, 2, 5, -2} {
			a := &ops.MatrixPowerAttrs{Exponent: p}
			out = append(out, ir.Sample{Name: ir.FormatAttrs(a), Attrs: a, In: []*ir.Array{dominant(uint64(p+9), ir.F32, 2, 3, 3)}})
		}
		return append(out, ir.Sample{Name: "empty", Attrs: &ops.MatrixPowerAttrs{Exponent: 3}, In: []*ir.Array{ir.NewArray(ir.F32, 0, 0)}})
	})
	add(ops.OpExpm, func() []ir.Sample {
		large := dominant(5, ir.F32, 3, 3)
		for i := range large.F {
			large.F[i] *= -8
		}
		out := matrixSamples(general, nil, []int{3, 3}, []int{1, 1}, []int{0, 0}, []int{2, 2, 2})
		return append(out, ir.Sample{Name: "squared often", In: []*ir.Array{large}})
	})
	add(ops.OpMatrixNorm, func() []ir.Sample { return matrixNormSamples(true) })
	add(ops.OpCondNumber, func() []ir.Sample { return matrixNormSamples(false) })
}

func matrixNormSamples(rectangles bool) []ir.Sample {
	var out []ir.Sample
	for i, order := range []string{ops.NormFrobenius, ops.NormNuclear, ops.NormSpectral, ops.NormSmallest, ops.NormColumns, ops.NormRows, "-1", "-inf"} {
		out = append(out, ir.Sample{Name: order, Attrs: &ops.MatrixNormAttrs{Order: order}, In: []*ir.Array{positive(uint64(i), ir.F32, 2, 3, 3)}})
	}
	if rectangles {
		for _, order := range []string{ops.NormNuclear, ops.NormRows, ops.NormSpectral} {
			out = append(out, ir.Sample{Name: "rows, " + order, Attrs: &ops.MatrixNormAttrs{Order: order}, In: []*ir.Array{positive(3, ir.F32, 5, 3)}})
			out = append(out, ir.Sample{Name: "empty, " + order, Attrs: &ops.MatrixNormAttrs{Order: order}, In: []*ir.Array{ir.NewArray(ir.F32, 0, 2)}})
		}
	}
	return loosely(out)
}
