package passes

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func logicIdentities() map[ir.Op][]identity {
	return map[ir.Op][]identity{
		ops.OpAnd:        {equalOperands, bitConstant(allBits, true), bitConstant(noBits, false)},
		ops.OpOr:         {equalOperands, bitConstant(noBits, true), bitConstant(allBits, false)},
		ops.OpXor:        {xorSelf, bitConstant(noBits, true), xorAll},
		ops.OpNot:        {notNot, notComparison},
		ops.OpShiftLeft:  {shiftByZero},
		ops.OpShiftRight: {shiftByZero},
	}
}

func noBits(v ir.Value) bool { return is(v, 0) }

// allBits reports whether v is true, or −1 in two's complement, everywhere.
func allBits(v ir.Value) bool {
	a, ok := splat(v)
	return ok && a.I != nil && a.I[0] == v.DType().Wrap(-1)
}

// bitConstant handles an operand of special bits: either the neutral element, so that
// the result is the other operand, or the absorbing element, which is the result.
func bitConstant(special func(v ir.Value) bool, keepsOther bool) identity {
	return func(s site) ir.Value {
		return either(s, func(x, y ir.Value) ir.Value {
			switch {
			case !special(y):
				return ir.Value{}
			case keepsOther:
				return x
			}
			return y
		})
	}
}

func xorSelf(s site) ir.Value {
	if s.in[0] == s.in[1] {
		return constant(s, 0)
	}
	return ir.Value{}
}

func xorAll(s site) ir.Value {
	return either(s, func(x, y ir.Value) ir.Value {
		if allBits(y) {
			return ops.Not(s.b, x)
		}
		return ir.Value{}
	})
}

func notNot(s site) ir.Value {
	x, _ := operandOf(s.in[0], ops.OpNot)
	return x
}

// opposites are the negations of comparisons. The order comparisons are not negations
// for floats: with NaN neither holds.
var opposites = map[ir.Op]ir.Op{
	ops.OpEq: ops.OpNe, ops.OpNe: ops.OpEq,
	ops.OpLt: ops.OpGe, ops.OpGe: ops.OpLt,
	ops.OpGt: ops.OpLe, ops.OpLe: ops.OpGt,
}

func notComparison(s site) ir.Value {
	n := s.in[0].Node()
	opposite, ok := opposites[n.Op()]
	if !ok || n.Op() != ops.OpEq && n.Op() != ops.OpNe && !isExact(n.Input(0)) {
		return ir.Value{}
	}
	return s.b.Add1(opposite, nil, n.Inputs()...)
}

func shiftByZero(s site) ir.Value {
	if is(s.in[1], 0) {
		return s.in[0]
	}
	return ir.Value{}
}

func comparisonIdentities() map[ir.Op][]identity {
	return map[ir.Op][]identity{
		ops.OpEq: {compareSelf(true, false)},
		ops.OpLe: {compareSelf(true, false)},
		ops.OpGe: {compareSelf(true, false)},
		ops.OpNe: {compareSelf(false, false)},
		ops.OpLt: {compareSelf(false, true)},
		ops.OpGt: {compareSelf(false, true)},
	}
}

// compareSelf compares a value with itself. result is the result for integers, alsoNaN
// whether NaN gives the same.
func compareSelf(result, alsoNaN bool) identity {
	return func(s site) ir.Value {
		if s.in[0] != s.in[1] || !isExact(s.in[0]) && (!alsoNaN || !s.in[0].DType().IsFloat()) {
			return ir.Value{}
		}
		if result {
			return constant(s, 1)
		}
		return constant(s, 0)
	}
}

func selectIdentities() map[ir.Op][]identity {
	return map[ir.Op][]identity{
		ops.OpSelect: {selectKnown, selectEqual, selectNot, selectSame, selectBool},
	}
}

func selectKnown(s site) ir.Value {
	switch {
	case is(s.in[0], 1):
		return s.in[1]
	case is(s.in[0], 0):
		return s.in[2]
	}
	return ir.Value{}
}

func selectEqual(s site) ir.Value {
	x, okX := literalOf(s.in[1])
	y, okY := literalOf(s.in[2])
	if s.in[1] == s.in[2] || okX && okY && string(x) == string(y) {
		return s.in[1]
	}
	return ir.Value{}
}

func selectNot(s site) ir.Value {
	if p, ok := operandOf(s.in[0], ops.OpNot); ok {
		return ops.Select(s.b, p, s.in[2], s.in[1])
	}
	return ir.Value{}
}

// selectSame: in the operands of a select its predicate is known.
func selectSame(s site) ir.Value {
	p, x, y := s.in[0], s.in[1], s.in[2]
	if q, ok := operandOf(x, ops.OpSelect); ok && q == p {
		return ops.Select(s.b, p, x.Node().Input(1), y)
	}
	if q, ok := operandOf(y, ops.OpSelect); ok && q == p {
		return ops.Select(s.b, p, x, y.Node().Input(2))
	}
	return ir.Value{}
}

func selectBool(s site) ir.Value {
	p, x, y := s.in[0], s.in[1], s.in[2]
	switch {
	case !x.DType().IsBool():
	case is(x, 1) && is(y, 0):
		return p
	case is(x, 0) && is(y, 1):
		return ops.Not(s.b, p)
	}
	return ir.Value{}
}

func conversionIdentities() map[ir.Op][]identity {
	// The graph has been differentiated, so stop_gradient is the identity.
	same := func(s site) ir.Value { return s.in[0] }
	return map[ir.Op][]identity{
		ops.OpStopGradient: {same},
		ops.OpConvert:      {toSameType, convertTwice},
		ops.OpBitcast:      {toSameType, bitcastTwice},
	}
}

func toSameType(s site) ir.Value {
	if s.in[0].DType() == s.n.Types()[0].DType {
		return s.in[0]
	}
	return ir.Value{}
}

// convertTwice drops an intermediate type that represents every value of the first. A
// float between two integer types stays, because it saturates where integers wrap.
func convertTwice(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpConvert)
	if !ok {
		return ir.Value{}
	}
	from, over, to := x.DType(), s.in[0].DType(), s.n.Types()[0].DType
	saturates := from.IsInteger() && over.IsFloat() && to.IsInteger() && to != from
	if !holds(over, from) || saturates {
		return ir.Value{}
	}
	return ops.Convert(s.b, x, to)
}

// holds reports whether every value of type d is one of type e.
func holds(e, d ir.DType) bool {
	switch {
	case d == e || d.IsBool():
		return true
	case d.IsInteger() && e.IsInteger():
		return d.IsSigned() == e.IsSigned() && e.Bits() >= d.Bits() || d.IsUnsigned() && e.IsSigned() && e.Bits() > d.Bits()
	case d.IsInteger() && e.IsFloat():
		return float64(uint64(1)<<d.Bits()-1)*e.Epsilon() <= 2 && d.Bits() < 64
	case d.IsFloat() && e.IsFloat():
		return e.Epsilon() <= d.Epsilon() && e.MaxFloat() >= d.MaxFloat() && e.SmallestNormal() <= d.SmallestNormal()
	}
	return d == ir.C64 && e == ir.C128
}

func bitcastTwice(s site) ir.Value {
	if x, ok := operandOf(s.in[0], ops.OpBitcast); ok {
		return ops.Bitcast(s.b, x, s.n.Types()[0].DType)
	}
	return ir.Value{}
}
