package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	ties := []pair{
		{name: "ties", x: []float64{1, -2, 0}, y: []float64{1, -2, 0}, noGrad: "ties share the gradient"},
		{name: "infinities", x: []float64{math.Inf(1), math.Inf(-1), 1}, y: []float64{0, 0, math.Inf(-1)}, noGrad: "infinite operands"},
		{name: "nan", x: []float64{math.NaN(), 1}, y: []float64{1, math.NaN()}, noGrad: "NaN operands"},
	}
	addBinary(ops.OpAdd, binary{})
	addBinary(ops.OpSub, binary{})
	addBinary(ops.OpMul, binary{})
	addBinary(ops.OpMulZero, binary{cases: []pair{{
		name: "zero times anything", noGrad: "infinite and NaN factors",
		x: []float64{0, 0, 0, 2, math.Inf(1), math.NaN()}, y: []float64{math.Inf(1), math.NaN(), 3, 0, 0, 2},
	}}})
	addBinary(ops.OpDiv, binary{from: [2]float64{-2, 0.5}, to: [2]float64{2, 2}, cases: []pair{{name: "by zero", x: []float64{1, -1, 0}, y: []float64{0, 0, 0}, noGrad: "division by zero"}}})
	// quotients from 1 to 2
	addBinary(ops.OpRem, binary{from: [2]float64{2.1, 1.5}, to: [2]float64{2.9, 1.95}, cases: []pair{
		{name: "multiples", x: []float64{4, -4, 0}, y: []float64{2, 2, 3}, noGrad: "jumps at multiples"},
		{name: "signs", x: []float64{5, -5, 5, -5}, y: []float64{3, 3, -3, -3}},
	}})
	addUnary(ops.OpNeg, unary{from: -3, to: 3, at: []float64{0}})
	addUnary(ops.OpAbs, unary{from: -3, to: 3, kinks: []float64{0}})
	addUnary(ops.OpSign, unary{from: -3, to: 3, kinks: []float64{0}})
	addBinary(ops.OpMax, binary{cases: ties})
	addBinary(ops.OpMin, binary{cases: ties})
	for _, op := range []ir.Op{ops.OpFloor, ops.OpCeil, ops.OpRound, ops.OpTrunc} {
		addUnary(op, unary{from: -3, to: 3, at: []float64{0.25, -0.75}, kinks: []float64{-1.5, -0.5, 0, 0.5, 1.5, 2.5, 1}})
	}
}
