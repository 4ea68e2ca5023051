package passes

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func arithmeticIdentities() map[ir.Op][]identity {
	return map[ir.Op][]identity{
		ops.OpAdd:     {addZero, addNeg},
		ops.OpSub:     {subZero, subFromZero, subNeg, subSelf},
		ops.OpMul:     {mulOne, mulMinusOne, mulByZero, mulNegs, mulNegConstant},
		ops.OpMulZero: {mulZeroOfZero, mulZeroExact},
		ops.OpDiv:     {secondOne, divMinusOne, divNegs, divPowerOfTwo},
		ops.OpRem:     {remOne},
		ops.OpPow:     {powZero, secondOne, powTwo, powMinusOne},
		ops.OpNeg:     {negNeg, negDifference},
		ops.OpAbs:     {absUnsigned, absNeg, absAbs},
		ops.OpMax:     {equalOperands, neutral(math.Inf(-1))},
		ops.OpMin:     {equalOperands, neutral(math.Inf(1))},
	}
}

// addZero: x + 0 = x unless x is −0, whose sum with 0 is 0; x + −0 = x always.
func addZero(s site) ir.Value {
	return either(s, func(x, y ir.Value) ir.Value {
		if is(y, math.Copysign(0, -1)) || is(y, 0) && hasNoNegativeZero(x) {
			return x
		}
		return ir.Value{}
	})
}

// addNeg: x + −z = x − z.
func addNeg(s site) ir.Value {
	return either(s, func(x, y ir.Value) ir.Value {
		if z, ok := operandOf(y, ops.OpNeg); ok {
			return ops.Sub(s.b, x, z)
		}
		return ir.Value{}
	})
}

// subZero: x − 0 = x always; x − −0 = x + 0.
func subZero(s site) ir.Value {
	x, y := s.in[0], s.in[1]
	if is(y, 0) || is(y, math.Copysign(0, -1)) && hasNoNegativeZero(x) {
		return x
	}
	return ir.Value{}
}

// subFromZero: −0 − y = −y always; 0 − y is not −y for y = 0.
func subFromZero(s site) ir.Value {
	x, y := s.in[0], s.in[1]
	if is(x, math.Copysign(0, -1)) || is(x, 0) && isExact(x) {
		return ops.Neg(s.b, y)
	}
	return ir.Value{}
}

// subNeg: x − −z = x + z.
func subNeg(s site) ir.Value {
	if z, ok := operandOf(s.in[1], ops.OpNeg); ok {
		return ops.Add(s.b, s.in[0], z)
	}
	return ir.Value{}
}

// subSelf: n − n = 0. For floats not: ∞ − ∞ is NaN.
func subSelf(s site) ir.Value {
	if s.in[0] == s.in[1] && isExact(s.in[0]) {
		return constant(s, 0)
	}
	return ir.Value{}
}

// mulOne: x · 1 = x.
func mulOne(s site) ir.Value {
	return either(s, func(x, y ir.Value) ir.Value {
		if is(y, 1) {
			return x
		}
		return ir.Value{}
	})
}

// mulMinusOne: x · −1 = −x.
func mulMinusOne(s site) ir.Value {
	return either(s, func(x, y ir.Value) ir.Value {
		if is(y, -1) {
			return ops.Neg(s.b, x)
		}
		return ir.Value{}
	})
}

// mulByZero: n · 0 = 0. For floats not: ∞ · 0 is NaN, −1 · 0 is −0.
func mulByZero(s site) ir.Value {
	return either(s, func(x, y ir.Value) ir.Value {
		if isExact(x) && is(y, 0) {
			return y
		}
		return ir.Value{}
	})
}

// mulNegs: −x · −y = x · y.
func mulNegs(s site) ir.Value {
	x, okX := operandOf(s.in[0], ops.OpNeg)
	y, okY := operandOf(s.in[1], ops.OpNeg)
	if okX && okY {
		return ops.Mul(s.b, x, y)
	}
	return ir.Value{}
}

// mulNegConstant: −x · c = x · −c, where −c folds.
func mulNegConstant(s site) ir.Value {
	return either(s, func(x, y ir.Value) ir.Value {
		z, ok := operandOf(x, ops.OpNeg)
		if _, known := splat(y); ok && known {
			return ops.Mul(s.b, z, ops.Neg(s.b, y))
		}
		return ir.Value{}
	})
}

// mulZeroOfZero: in mul_zero 0 times anything is 0.
func mulZeroOfZero(s site) ir.Value {
	return either(s, func(_, y ir.Value) ir.Value {
		if is(y, 0) || is(y, math.Copysign(0, -1)) {
			return constant(s, 0)
		}
		return ir.Value{}
	})
}

// mulZeroExact: mul_zero is the product if that is never −0, and never 0 times an
// infinity or NaN. Integers have none of these; floats times a finite
// positive literal give −0 only for −0.
func mulZeroExact(s site) ir.Value {
	return either(s, func(x, y ir.Value) ir.Value {
		a, known := splat(y)
		finite := known && a.F != nil && a.F[0] > 0 && !math.IsInf(a.F[0], 0)
		if isExact(x) || finite && hasNoNegativeZero(x) {
			return ops.Mul(s.b, x, y)
		}
		return ir.Value{}
	})
}

// secondOne: x / 1 = x, and x¹ = x.
func secondOne(s site) ir.Value {
	if is(s.in[1], 1) {
		return s.in[0]
	}
	return ir.Value{}
}

// divMinusOne: x / −1 = −x, for floats: the negation of the smallest integer overflows.
func divMinusOne(s site) ir.Value {
	if is(s.in[1], -1) && s.in[0].DType().IsFloat() {
		return ops.Neg(s.b, s.in[0])
	}
	return ir.Value{}
}

// divNegs: −x / −y = x / y, for floats.
func divNegs(s site) ir.Value {
	x, okX := operandOf(s.in[0], ops.OpNeg)
	y, okY := operandOf(s.in[1], ops.OpNeg)
	if okX && okY && x.DType().IsFloat() {
		return ops.Div(s.b, x, y)
	}
	return ir.Value{}
}

// divPowerOfTwo: x / c = x · (1/c) exactly if 1/c is exact (strength reduction).
func divPowerOfTwo(s site) ir.Value {
	d := s.in[0].DType()
	a, ok := splat(s.in[1])
	if !ok || a.F == nil {
		return ir.Value{}
	}
	fraction, _ := math.Frexp(a.F[0])
	r := 1 / a.F[0]
	if math.Abs(fraction) != 0.5 || math.Abs(r) < d.SmallestNormal() || math.Abs(r) > d.MaxFloat() {
		return ir.Value{}
	}
	return ops.Mul(s.b, s.in[0], ops.ConstLike(s.b, s.in[1], r))
}

// remOne: n rem 1 = 0.
func remOne(s site) ir.Value {
	if isExact(s.in[0]) && is(s.in[1], 1) {
		return constant(s, 0)
	}
	return ir.Value{}
}

// powZero: x⁰ = 1, also for NaN.
func powZero(s site) ir.Value {
	if y := s.in[1]; is(y, 0) || is(y, math.Copysign(0, -1)) {
		return constant(s, 1)
	}
	return ir.Value{}
}

func powTwo(s site) ir.Value {
	if is(s.in[1], 2) {
		return ops.Mul(s.b, s.in[0], s.in[0])
	}
	return ir.Value{}
}

func powMinusOne(s site) ir.Value {
	if is(s.in[1], -1) {
		return ops.Div(s.b, constant(s, 1), s.in[0])
	}
	return ir.Value{}
}

func negNeg(s site) ir.Value {
	x, _ := operandOf(s.in[0], ops.OpNeg)
	return x
}

// negDifference: −(x − y) = y − x. Not for floats: for equal operands one is −0, the
// other 0.
func negDifference(s site) ir.Value {
	x, ok := operandOf(s.in[0], ops.OpSub)
	if ok && isExact(x) {
		return ops.Sub(s.b, s.in[0].Node().Input(1), x)
	}
	return ir.Value{}
}

func absUnsigned(s site) ir.Value {
	if s.in[0].DType().IsUnsigned() {
		return s.in[0]
	}
	return ir.Value{}
}

func absNeg(s site) ir.Value {
	if x, ok := operandOf(s.in[0], ops.OpNeg); ok {
		return ops.Abs(s.b, x)
	}
	return ir.Value{}
}

func absAbs(s site) ir.Value {
	if s.in[0].Node().Op() == ops.OpAbs {
		return s.in[0]
	}
	return ir.Value{}
}

func equalOperands(s site) ir.Value {
	if s.in[0] == s.in[1] {
		return s.in[0]
	}
	return ir.Value{}
}

// neutral drops an operand that is x, the neutral element.
func neutral(x float64) identity {
	return func(s site) ir.Value {
		return either(s, func(v, y ir.Value) ir.Value {
			if v.DType().IsFloat() && is(y, x) {
				return v
			}
			return ir.Value{}
		})
	}
}
