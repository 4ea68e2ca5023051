package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	for _, op := range []ir.Op{ops.OpEq, ops.OpNe, ops.OpLt, ops.OpLe, ops.OpGt, ops.OpGe} {
		addBinary(op, binary{cases: []pair{
			{name: "ties", x: []float64{1, -2, 0, 3}, y: []float64{1, -2, 0, 2}},
			{name: "nan and infinities", x: []float64{math.NaN(), math.NaN(), math.Inf(1), math.Inf(-1)}, y: []float64{1, math.NaN(), math.Inf(1), 0}},
		}})
	}
	for _, op := range []ir.Op{ops.OpIsFinite, ops.OpIsNaN} {
		addUnary(op, unary{from: -2, to: 2, at: []float64{math.Inf(1), math.Inf(-1), math.NaN()}})
	}
	for _, op := range []ir.Op{ops.OpAnd, ops.OpOr, ops.OpXor, ops.OpShiftLeft, ops.OpShiftRight} {
		addBinary(op, binary{from: [2]float64{-100, 0}, to: [2]float64{100, 7}, cases: []pair{
			{name: "zeros and ones", x: []float64{0, 0, 1, 1}, y: []float64{0, 1, 0, 1}},
		}})
	}
	addUnary(ops.OpNot, unary{from: -100, to: 100, at: []float64{0, 1}})
	add(ops.OpSelect, selectSamples)
	add(ops.OpClamp, clampSamples)
}

func selectSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{
			draw(1, ir.Bool, 0, 1, dims...), draw(2, ir.F32, -2, 2, dims...), draw(3, ir.F32, -2, 2, dims...),
		}})
	}
	for _, d := range []ir.DType{ir.Bool, ir.I8, ir.I64, ir.U32, ir.F16, ir.F64, ir.C64} {
		out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{
			draw(1, ir.Bool, 0, 1, 5), draw(2, d, -2, 2, 5), draw(3, d, -2, 2, 5),
		}})
	}
	return append(out, ir.Sample{Name: "masked poison", NoGrad: "infinite and NaN operands", In: []*ir.Array{
		ir.Ints(ir.Bool, []int64{1, 0, 1}), ir.Floats(ir.F32, []float64{1, math.NaN(), 2}), ir.Floats(ir.F32, []float64{math.Inf(1), 3, math.NaN()}),
	}})
}

func clampSamples() []ir.Sample {
	var out []ir.Sample
	for _, dims := range sampleShapes {
		out = append(out, ir.Sample{Name: shapeName(dims), In: []*ir.Array{
			draw(1, ir.F32, -3, 3, dims...), draw(2, ir.F32, -2, -1, dims...), draw(4, ir.F32, 0.5, 2, dims...),
		}})
	}
	for _, d := range []ir.DType{ir.I32, ir.U8, ir.U64, ir.F16, ir.F64} {
		out = append(out, ir.Sample{Name: d.String(), In: []*ir.Array{
			draw(1, d, 0, 9, 7), draw(2, d, 2, 3, 7), draw(4, d, 5, 6, 7),
		}})
	}
	vec := func(x ...float64) *ir.Array { return ir.Floats(ir.F32, x, len(x)) }
	return append(out,
		ir.Sample{Name: "at the bounds", NoGrad: "kinks", In: []*ir.Array{vec(-1, 1, -1, 1), vec(-1, -1, -1, 1), vec(1, 1, -1, 1)}},
		ir.Sample{Name: "bounds crossed", In: []*ir.Array{vec(0, 5, -5, 2.5), vec(3, 3, 3, 3), vec(2, 2, 2, 2)}},
		ir.Sample{Name: "nan", NoGrad: "NaN operands", In: []*ir.Array{vec(math.NaN(), 0, 0, math.NaN()), vec(0, math.NaN(), 0, math.Inf(-1)), vec(1, 1, math.NaN(), math.Inf(1))}},
	)
}
