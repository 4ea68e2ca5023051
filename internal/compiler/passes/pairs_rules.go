package passes

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// pairRule computes an op from the parts of its operands. Where its result is real
// it is the first part.
type pairRule func(b *ir.Builder, n *ir.Node, in []pair) pair

// rulesFor returns what computes all results of an op, nil where there is none.
func rulesFor(op ir.Op) func(b *ir.Builder, n *ir.Node, in []pair) []pair {
	if op == ops.OpLinearRecurrence {
		return linearRecurrencePair
	}
	rule := ruleFor(op)
	if rule == nil {
		return nil
	}
	return func(b *ir.Builder, n *ir.Node, in []pair) []pair { return []pair{rule(b, n, in)} }
}

// ruleFor returns the rule of an op with one result, nil where there is none.
func ruleFor(op ir.Op) pairRule {
	switch op {
	case ir.OpPort, ir.OpConstant,
		ops.OpAdd, ops.OpSub, ops.OpNeg, ops.OpSelect, ops.OpStopGradient, ops.OpRematerialize, ops.OpReduceSum, ops.OpCumSum,
		ops.OpReshape, ops.OpTranspose, ops.OpBroadcastInDim, ops.OpSlice, ops.OpReverse, ops.OpPad, ops.OpConcatenate,
		ops.OpScatter, ops.OpScatterAdd:
		return eachPart
	case ops.OpComplex:
		return func(_ *ir.Builder, _ *ir.Node, in []pair) pair { return pair{in[0].re, in[1].re} }
	case ops.OpReal:
		return func(_ *ir.Builder, _ *ir.Node, in []pair) pair { return in[0] }
	case ops.OpImag:
		return func(_ *ir.Builder, _ *ir.Node, in []pair) pair { return pair{re: in[0].im} }
	case ops.OpConj:
		return func(b *ir.Builder, _ *ir.Node, in []pair) pair { return pair{in[0].re, ops.Neg(b, in[0].im)} }
	case ops.OpMul, ops.OpMulZero, ops.OpDotGeneral, ops.OpConvGeneral:
		return productPair
	case ops.OpDiv:
		return divPair
	case ops.OpGather:
		return gatherPair
	case ops.OpCumProd:
		return cumProdPair
	case ops.OpReduceProd:
		return reduceProdPair
	case ops.OpScatterMul:
		return scatterMulPair
	case ops.OpEq, ops.OpNe:
		return comparePair
	case ops.OpConvert:
		return convertPair
	case ops.OpDimSize:
		return func(b *ir.Builder, n *ir.Node, _ []pair) pair {
			size := ops.DimSize(b, n.Types()[0].DType.Real(), n.Attrs().(*ops.DimSizeAttrs).Sizes...)
			return pair{size, ops.ZerosLike(b, size)}
		}
	}
	return nil
}

// eachPart applies an op that is linear with real coefficients, or moves elements,
// to both parts. Indices and conditions are real, and the same for both.
func eachPart(b *ir.Builder, n *ir.Node, in []pair) pair {
	re, im := make([]ir.Value, len(in)), make([]ir.Value, len(in))
	for i, x := range in {
		re[i], im[i] = x.re, x.im
	}
	return pair{b.Copy(n, re)[0], b.Copy(n, im)[0]}
}

// gatherPair gives a real number for an index outside.
func gatherPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	a := *n.Attrs().(*ops.GatherAttrs)
	a.Fill = 0
	return pair{b.Copy(n, []ir.Value{in[0].re, in[1].re})[0], ops.Gather(b, in[0].im, in[1].re, a)}
}

func productPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	x, y := in[0], in[1]
	by := func(p, q ir.Value) ir.Value { return b.Copy(n, []ir.Value{p, q})[0] }
	return pair{
		ops.Sub(b, by(x.re, y.re), by(x.im, y.im)),
		ops.Add(b, by(x.re, y.im), by(x.im, y.re)),
	}
}

// divPair divides by the larger part of the divisor first, so that squares
// do not overflow where the quotient does not (Smith, Algorithm 116: Complex
// Division): with |c| ≥ |d|, r = d/c and m = c + d·r, (a + b·i)/(c + d·i) is
// (a + b·r)/m + (b − a·r)/m·i. Where |d| is larger, both numbers are taken times −i.
func divPair(b *ir.Builder, _ *ir.Node, in []pair) pair {
	x, y := in[0], in[1]
	turned := ops.Lt(b, ops.Abs(b, y.re), ops.Abs(b, y.im))
	turn := func(p pair) pair {
		return pair{ops.Select(b, turned, p.im, p.re), ops.Select(b, turned, ops.Neg(b, p.re), p.im)}
	}
	x, y = turn(x), turn(y)
	r := ops.Div(b, y.im, y.re)
	m := ops.Add(b, y.re, ops.Mul(b, y.im, r))
	return pair{
		ops.Div(b, ops.Add(b, x.re, ops.Mul(b, x.im, r)), m),
		ops.Div(b, ops.Sub(b, x.im, ops.Mul(b, x.re, r)), m),
	}
}

func comparePair(b *ir.Builder, n *ir.Node, in []pair) pair {
	parts := eachPart(b, n, in)
	if n.Op() == ops.OpNe {
		return pair{re: ops.Or(b, parts.re, parts.im)}
	}
	return pair{re: ops.And(b, parts.re, parts.im)}
}

// convertPair converts to another complex type.
func convertPair(b *ir.Builder, n *ir.Node, in []pair) pair {
	to := n.Types()[0].DType.Real()
	return pair{ops.Convert(b, in[0].re, to), ops.Convert(b, in[0].im, to)}
}
