package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// running is the lowering of a scan with one accumulator.
func running(typeOf func(d ir.DType) ir.DType, init func(d ir.DType) scalar.Expr, combine func(x, y scalar.Expr) scalar.Expr) *ir.PrefixLowering {
	own := func(n *ir.Node) ir.DType { return typeOf(n.Input(0).DType()) }
	return &ir.PrefixLowering{
		Accumulators: func(n *ir.Node) []ir.Accumulator { return []ir.Accumulator{{DType: own(n), Init: init(own(n))}} },
		Element: func(n *ir.Node, at ir.Index, load ir.Load) []scalar.Expr {
			return []scalar.Expr{scalar.Convert(load(0, at), own(n))}
		},
		Combine: func(_ *ir.Node, x, y []scalar.Expr) []scalar.Expr { return []scalar.Expr{combine(x[0], y[0])} },
		Finish: func(n *ir.Node, acc []scalar.Expr) []scalar.Expr {
			return []scalar.Expr{scalar.Convert(acc[0], n.Input(0).DType())}
		},
	}
}

func combining(init float64, combine func(x, y scalar.Expr) scalar.Expr) func() *ir.PrefixLowering {
	return func() *ir.PrefixLowering {
		return running(sumType, func(d ir.DType) scalar.Expr { return scalar.Const(d, init) }, combine)
	}
}

func runningExtremum(sign int, combine func(x, y scalar.Expr) scalar.Expr) func() *ir.PrefixLowering {
	return func() *ir.PrefixLowering {
		same := func(d ir.DType) ir.DType { return d }
		return running(same, func(d ir.DType) scalar.Expr { return scalar.Extreme(d, sign) }, combine)
	}
}

// logSums carries the maximum and the sum of the exponentials relative to it, which
// neither overflows nor underflows.
func logSums() *ir.PrefixLowering {
	return &ir.PrefixLowering{
		Accumulators: func(n *ir.Node) []ir.Accumulator {
			d := sumType(n.Input(0).DType())
			return []ir.Accumulator{{DType: d, Init: scalar.Extreme(d, -1)}, {DType: d, Init: scalar.Const(d, 0)}}
		},
		Element: func(n *ir.Node, at ir.Index, load ir.Load) []scalar.Expr {
			d := sumType(n.Input(0).DType())
			return []scalar.Expr{scalar.Convert(load(0, at), d), scalar.Const(d, 1)}
		},
		Combine: func(_ *ir.Node, x, y []scalar.Expr) []scalar.Expr {
			m := scalar.Max(x[0], y[0])
			part := func(v []scalar.Expr) scalar.Expr {
				return scalar.Select(scalar.Eq(v[0], m), v[1], scalar.Mul(v[1], scalar.Exp(scalar.Sub(v[0], m))))
			}
			return []scalar.Expr{m, scalar.Add(part(x), part(y))}
		},
		Finish: func(n *ir.Node, acc []scalar.Expr) []scalar.Expr {
			// The sum is 0 only for no elements, whose maximum is -Inf.
			sum := scalar.Max(acc[1], scalar.Const(acc[1].Type, 1))
			return []scalar.Expr{scalar.Convert(scalar.Add(acc[0], scalar.Log(sum)), n.Input(0).DType())}
		},
	}
}
