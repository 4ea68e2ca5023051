package samples

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpFakeQuant, fakeQuantSamples)
	add(ops.OpFakeQuantLSQ, lsqSamples)
}

// sizesAlong returns the sizes of some axes.
func sizesAlong(dims, axes []int) []int {
	var out []int
	for _, axis := range axes {
		out = append(out, dims[axis])
	}
	return out
}

const estimator = "the derivative is an estimator"

func fakeQuantSamples() []ir.Sample {
	sample := func(name string, d ir.DType, a ops.FakeQuantAttrs, dims ...int) ir.Sample {
		largest := draw(4, d, 0.5, 1.5, sizesAlong(dims, a.Axes)...)
		return ir.Sample{Name: name, Attrs: &a, NoGrad: estimator, In: []*ir.Array{draw(1, d, -2, 2, dims...), largest}}
	}
	return []ir.Sample{
		sample("tensor", ir.F32, ops.FakeQuantAttrs{Bits: 8, Axes: nil, STE: ops.STEIdentity, Scale: ops.ScaleBatch, Decay: 0}, 3, 5),
		sample("columns", ir.F32, ops.FakeQuantAttrs{Bits: 4, Axes: []int{1}, STE: ops.STEClipped, Scale: ops.ScaleEMA, Decay: 0.75}, 4, 3),
		sample("given", ir.F32, ops.FakeQuantAttrs{Bits: 2, Axes: []int{0, 2}, STE: ops.STETanh, Scale: ops.ScaleFixed, Decay: 0}, 2, 3, 2),
		sample("half", ir.F16, ops.FakeQuantAttrs{Bits: 8, Axes: nil, STE: ops.STEHardTanh, Scale: ops.ScaleFixed, Decay: 0}, 7),
		sample("empty", ir.F32, ops.FakeQuantAttrs{Bits: 8, Axes: nil, STE: ops.STEIdentity, Scale: ops.ScaleBatch, Decay: 0}, 0),
	}
}

func lsqSamples() []ir.Sample {
	sample := func(name string, d ir.DType, a ops.LSQAttrs, dims ...int) ir.Sample {
		return ir.Sample{Name: name, Attrs: &a, NoGrad: estimator, In: []*ir.Array{draw(1, d, -2, 2, dims...), draw(4, d, 0.25, 0.5, sizesAlong(dims, a.Axes)...)}}
	}
	return []ir.Sample{
		sample("tensor", ir.F32, ops.LSQAttrs{Bits: 3, Axes: nil, Factor: 1}, 3, 5), sample("rows", ir.F32, ops.LSQAttrs{Bits: 4, Axes: []int{0}, Factor: 0.5}, 2, 3),
		sample("half", ir.F16, ops.LSQAttrs{Bits: 3, Axes: nil, Factor: 1}, 7), sample("empty", ir.F32, ops.LSQAttrs{Bits: 8, Axes: nil, Factor: 1}, 0),
	}
}
