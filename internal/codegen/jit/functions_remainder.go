package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// exponents are the digits of a significand, the largest exponent of 2 and the largest of a quotient of two numbers.
var exponents = map[dtype.DType]struct{ digits, most, quotient int }{
	dtype.F32: {24, 127, 277}, dtype.F64: {53, 1023, 2098},
}

// remainder returns the remainder of x / y truncated, with the sign of x, as math.Mod does: without an error. It first
// subtracts multiples of y times powers of two where a significand does not hold the quotient.
func remainder(b *builder, x argument) argument {
	e := exponents[b.typ]
	a, d := b.real(scalar.OpAbs, x), b.real(scalar.OpAbs, secondOperand)
	far := b.whenAny(b.less(b.number(math.Ldexp(1, e.digits)), b.real(scalar.OpDiv, a, d)))
	rest := a
	for by := e.quotient / e.digits * e.digits; by > 0; by -= e.digits {
		multiple := d
		for left := by; left > 0; left -= e.most {
			multiple = b.real(scalar.OpMul, multiple, b.number(math.Ldexp(1, min(left, e.most))))
		}
		rest = b.remainderStep(rest, multiple)
	}
	a = b.real(scalar.OpSelect, far, b.carry(rest)[0], a)
	return b.copySign(b.remainderStep(a, d), x)
}

// remainderStep returns the remainder of a / d, neither negative, whose quotient a significand holds. The rounded
// quotient is at most one too large; the rest is a multiple of the ulp of d and not above d, so that it is a number of
// the type.
func (b *builder) remainderStep(a, d argument) argument {
	q := b.real(scalar.OpTrunc, b.real(scalar.OpDiv, a, d))
	r := b.real(scalar.OpFma, b.real(scalar.OpNeg, q), d, a)
	r = b.choose(r, b.number(0), b.real(scalar.OpAdd, r, d), r)
	return b.choose(a, d, a, r) // also where d is infinite
}

// twoToThe returns 2 to the power x, exactly for integers.
func twoToThe(b *builder, x argument) argument {
	beyond := 1.5 * float64(exponents[b.typ].most) // where powers are infinite or 0
	x = b.max(b.number(-beyond), b.min(b.number(beyond), x))
	k := b.real(scalar.OpRound, x)
	r := b.real(scalar.OpMul, b.real(scalar.OpSub, x, k), b.number(math.Ln2))
	z := b.real(scalar.OpMul, r, r)
	y := b.real(scalar.OpFma, z, b.evenOdd(r, z, expansions[b.typ].coefficients), r)
	return b.scale2(b.real(scalar.OpAdd, y, b.number(1)), k)
}

// powersOfTwo are the templates of powers whose base is the constant 2.
var powersOfTwo = map[dtype.DType]func() *template{dtype.F32: once(dtype.F32, twoToThe), dtype.F64: once(dtype.F64, twoToThe)}
