package layers

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// recurrences are loops whose steps depend on the last.
func recurrences() []Layer {
	return []Layer{
		of("lstm", func(b *ir.Builder) ir.Value {
			weights := []ir.Value{floats(b, "u", 100, 800), floats(b, "w", 200, 800), floats(b, "p", 800), floats(b, "q", 800)}
			y, _, _ := ops.LSTM(b, floats(b, "x", 50, 64, 100), floats(b, "h", 1, 64, 200), floats(b, "c", 1, 64, 200), weights, ops.RecurrentAttrs{})
			return y
		}),
		of("gru", func(b *ir.Builder) ir.Value {
			weights := []ir.Value{floats(b, "u", 128, 768), floats(b, "w", 256, 768), floats(b, "p", 768), floats(b, "q", 768)}
			y, _ := ops.GRU(b, floats(b, "x", 100, 32, 128), floats(b, "h", 1, 32, 256), weights, ops.RecurrentAttrs{})
			return y
		}),
		of("lstm in both directions", func(b *ir.Builder) ir.Value {
			var weights []ir.Value
			for _, d := range []string{"forward ", "backward "} {
				weights = append(weights, floats(b, d+"u", 64, 512), floats(b, d+"w", 128, 512), floats(b, d+"p", 512), floats(b, d+"q", 512))
			}
			y, _, _ := ops.LSTM(b, floats(b, "x", 80, 64, 64), floats(b, "h", 2, 64, 128), floats(b, "c", 2, 64, 128), weights, ops.RecurrentAttrs{Bidirectional: true})
			return y
		}),
		of("scan of rows", func(b *ir.Builder) ir.Value {
			carries, _ := ops.Scan(b, ops.Loop{
				Consts: []ir.Value{floats(b, "w", 64, 64)}, Carries: []ir.Value{floats(b, "h", 512, 64)}, Xs: []ir.Value{floats(b, "x", 60, 512, 64)},
				Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
					return []ir.Value{ops.Tanh(b, ops.Add(b, ops.MatMul(b, carries[0], consts[0]), xs[0]))}, nil
				},
			})
			return carries[0]
		}),
	}
}

// scans are recurrences that are associative.
func scans() []Layer {
	return []Layer{
		of("recurrence in the middle", func(b *ir.Builder) ir.Value {
			return ops.LinearRecurrence(b, ops.Sigmoid(b, floats(b, "x", 8, 2000, 256)), floats(b, "y", 8, 2000, 256), ops.CumSumAttrs{Axis: 1})
		}),
		of("recurrence of rows", func(b *ir.Builder) ir.Value {
			return ops.LinearRecurrence(b, ops.Sigmoid(b, floats(b, "x", 2000, 2000)), floats(b, "y", 2000, 2000), ops.CumSumAttrs{Axis: 1})
		}),
		of("selective scan", func(b *ir.Builder) ir.Value {
			y, _ := ops.SelectiveScan(b, ops.StateSpace{
				X: floats(b, "x", 4, 512, 512), Delta: ops.Softplus(b, floats(b, "delta", 4, 512, 512)), A: ops.Neg(b, ops.Exp(b, floats(b, "a", 512, 16))),
				B: floats(b, "b", 4, 512, 16), C: floats(b, "c", 4, 512, 16), State: ops.Zeros(b, ir.F32, ir.Dims(4, 512, 16)...),
			})
			return y
		}),
		of("state space by chunks", func(b *ir.Builder) ir.Value {
			y, _ := ops.SSD(b, ops.StateSpace{
				X: floats(b, "x", 4, 1024, 8, 64), Delta: ops.Softplus(b, floats(b, "delta", 4, 1024, 8)), A: ops.Neg(b, ops.Exp(b, floats(b, "a", 8))),
				B: floats(b, "b", 4, 1024, 1, 64), C: floats(b, "c", 4, 1024, 1, 64), State: ops.Zeros(b, ir.F32, ir.Dims(4, 8, 64, 64)...),
			}, 64)
			return y
		}),
		of("product so far", func(b *ir.Builder) ir.Value {
			return ops.CumProd(b, ops.Add(b, ops.Tanh(b, floats(b, "x", 2000, 500)), ops.Const(b, ir.F32, 1)), ops.CumSumAttrs{Axis: 1})
		}),
		of("transmittance along rays", func(b *ir.Builder) ir.Value {
			density := ops.Softplus(b, floats(b, "x", 8192, 128))
			seen := ops.Exp(b, ops.Neg(b, ops.CumSum(b, density, ops.CumSumAttrs{Axis: 1, Exclusive: true})))
			weight := ops.Mul(b, seen, ops.Sub(b, ops.ConstLike(b, seen, 1), ops.Exp(b, ops.Neg(b, density))))
			return ops.ReduceSum(b, ops.Mul(b, ops.ExpandDims(b, weight, 2), ops.Sigmoid(b, floats(b, "colour", 8192, 128, 3))), 1)
		}),
	}
}
