package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add(ops.OpConvert, convertSamples)
	add(ops.OpBitcast, bitcastSamples)
}

func convertSamples() []ir.Sample {
	var out []ir.Sample
	add := func(name string, x *ir.Array, to ir.DType, noGrad string) {
		out = append(out, ir.Sample{Name: name, Attrs: &ops.DTypeAttrs{DType: to}, In: []*ir.Array{x}, NoGrad: noGrad})
	}
	for _, dims := range sampleShapes {
		add(shapeName(dims), draw(1, ir.F32, -3, 3, dims...), ir.F64, "")
	}
	for _, from := range typesIn(isPlain) {
		for _, to := range typesIn(isPlain) {
			if from.IsComplex() == to.IsComplex() {
				add(from.String()+" to "+to.String(), draw(2, from, -100, 100, 6), to, "")
			}
		}
	}
	ends := []float64{0, -1.5, 1.5, 300, -300, 1e10, -1e10, 1e19, 1e30, math.Inf(1), math.Inf(-1), math.NaN()}
	for _, to := range typesIn(isBits) {
		add("ends to "+to.String(), numbersOf(ir.F32, ends), to, "infinities and NaN")
	}
	add("ends of i64", edges(ir.I64), ir.F32, "")
	add("ends of u64", edges(ir.U64), ir.F32, "")
	add("beyond f16", ir.Floats(ir.F32, []float64{65504, 65519, 65520, 1e-8, 6e-8}), ir.F16, "overflow")
	return out
}

func bitcastSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), Attrs: &ops.DTypeAttrs{DType: ir.U32}, In: []*ir.Array{draw(1, ir.F32, -3, 3, dims...)}})
	}
	for _, from := range typesIn(isReal) {
		for _, to := range typesIn(isReal) {
			if from.Size() == to.Size() {
				x := draw(2, from, 1, 100, 5)
				out = append(out, ir.Sample{Name: from.String() + " as " + to.String(), Attrs: &ops.DTypeAttrs{DType: to}, In: []*ir.Array{x}})
			}
		}
	}
	return append(out, ir.Sample{Name: "special floats", Attrs: &ops.DTypeAttrs{DType: ir.I32}, In: []*ir.Array{
		ir.Floats(ir.F32, []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), 1e-45}),
	}})
}
