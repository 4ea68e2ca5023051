package samples

import (
	"math"

	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	addUnary(ops.OpSin, unary{from: -4, to: 4, at: []float64{0, 100}})
	addUnary(ops.OpCos, unary{from: -4, to: 4, at: []float64{0, 100}})
	addUnary(ops.OpTan, unary{from: -1, to: 1, at: []float64{0}})
	addUnary(ops.OpAsin, unary{from: -0.9, to: 0.9, at: []float64{0}, kinks: []float64{-1, 1}})
	addUnary(ops.OpAcos, unary{from: -0.9, to: 0.9, at: []float64{0}, kinks: []float64{-1, 1}})
	addUnary(ops.OpAtan, unary{from: -4, to: 4, at: []float64{0}})
	addBinary(ops.OpAtan2, binary{from: [2]float64{-2, 0.2}, to: [2]float64{2, 2}, cases: []pair{
		{name: "quadrants", x: []float64{1, 1, -1, -1}, y: []float64{2, -2, 2, -2}},
		{name: "axes", x: []float64{0, 1, -1}, y: []float64{1, 0, 0}},
		{name: "origin", x: []float64{0}, y: []float64{0}, noGrad: "no derivative at the origin"},
	}})
	addUnary(ops.OpSinh, unary{from: -3, to: 3, at: []float64{0}})
	addUnary(ops.OpCosh, unary{from: -3, to: 3, at: []float64{0}})
	addUnary(ops.OpTanh, unary{from: -3, to: 3, at: []float64{0}, kinks: []float64{100, -100}})
	addUnary(ops.OpSigmoid, unary{from: -4, to: 4, at: []float64{0}, kinks: []float64{1000, -1000}})
	addUnary(ops.OpErf, unary{from: -3, to: 3, at: []float64{0}, rounded: true})
	addUnary(ops.OpAsinh, unary{from: -4, to: 4, at: []float64{0, 1e-7, -300}, kinks: []float64{1e30, -1e30, math.Inf(1)}})
	addUnary(ops.OpAcosh, unary{from: 1.3, to: 5, at: []float64{2, 300}, kinks: []float64{1, 0.5, -2, 1e30, math.Inf(1)}})
	addUnary(ops.OpAtanh, unary{from: -0.9, to: 0.9, at: []float64{0, 1e-7}, kinks: []float64{1, -1, 2, -2}})
}
