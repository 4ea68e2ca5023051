package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addBinary(ops.OpPow, binary{from: [2]float64{0.3, -2}, to: [2]float64{3, 2}, cases: []pair{
		{name: "base zero", x: []float64{0, 0, 0, 0}, y: []float64{0, 1, 2, 0.5}, noGrad: "the edge of the domain"},
		{name: "negative base", x: []float64{-2, -2, -1.5}, y: []float64{2, 3, -1}, noGrad: "no derivative by the exponent"},
	}})
	addUnary(ops.OpSqrt, unary{from: 0.2, to: 4, at: []float64{1, 4}, kinks: []float64{0, -1}})
	addUnary(ops.OpRsqrt, unary{from: 0.2, to: 4, at: []float64{1, 4}, kinks: []float64{0}})
	addUnary(ops.OpExp, unary{from: -3, to: 3, at: []float64{0}, kinks: []float64{math.Inf(1), math.Inf(-1)}})
	addUnary(ops.OpExpm1, unary{from: -3, to: 3, at: []float64{0, 1e-7}})
	addUnary(ops.OpLog, unary{from: 0.2, to: 4, at: []float64{1}, kinks: []float64{0, -1}})
	addUnary(ops.OpLog1p, unary{from: -0.7, to: 4, at: []float64{0, 1e-7}, kinks: []float64{-1}})
	addUnary(ops.OpCbrt, unary{from: 0.2, to: 4, at: []float64{1, 8, -8, -0.001}, kinks: []float64{0}})
	addUnary(ops.OpExp2, unary{from: -3, to: 3, at: []float64{0, 10, -10}, kinks: []float64{math.Inf(1), math.Inf(-1)}, rounded: true})
	for _, op := range []ir.Op{ops.OpLog2, ops.OpLog10} {
		addUnary(op, unary{from: 0.2, to: 4, at: []float64{1, 1000}, kinks: []float64{0, -1}, rounded: true})
	}
}
