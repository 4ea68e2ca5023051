package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// pair is a number as the sum of two, the second of which is at most a rounding error of the first.
type pair struct{ high, low argument }

// pairBuilder builds functions of pairs.
type pairBuilder struct{ *builder }

// thirdTail is 1/3 minus its float64, and atanhTerms are 1/(2k+1) from k = 2 on, of log m = 2·(s + s³/3 + s⁵/5 + …)
// for s = (m-1)/(m+1), |s| ≤ 0.172.
const thirdTail = 0x1.5555555555555p-56

var atanhTerms = []float64{1. / 5, 1. / 7, 1. / 9, 1. / 11, 1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21, 1. / 23, 1. / 25, 1. / 27}

// doublePow returns x to the power y as e to the power y·log|x|, the product in pairs, so that errors are below one
// ULP and powers that are floats are exact.
func doublePow(b *builder, x argument) argument {
	y, pairs := secondOperand, pairBuilder{b}
	log := pairs.logPair(b.real(scalar.OpAbs, x))
	// Beyond 2⁶⁴ the result is 0, 1 or infinite for any y.
	most := b.number(0x1p64)
	clamped := b.max(b.real(scalar.OpNeg, most), b.min(most, y))
	product := b.real(scalar.OpMul, clamped, log.high)
	tail := b.real(scalar.OpFma, clamped, log.low, b.real(scalar.OpFma, clamped, log.high, b.real(scalar.OpNeg, product)))
	return pairs.powEnds(x, y, pairs.expPair(pair{b.number(1), b.number(0)}, pair{product, tail}))
}

// sumPair adds two numbers, the first of which is 0 or the larger one, and a small one.
func (b *builder) sumPair(large, small, tail argument) pair {
	high := b.real(scalar.OpAdd, large, small)
	lost := b.real(scalar.OpSub, small, b.real(scalar.OpSub, high, large))
	return pair{high, b.real(scalar.OpAdd, lost, tail)}
}

// logPair returns the logarithm of a positive finite number, with a relative error of about 2⁻⁶⁴.
func (b pairBuilder) logPair(x argument) pair {
	k, m := b.doubleParts(x)

	// s = f/g; the error of g, and of the quotient, in the tail.
	f, g := b.real(scalar.OpSub, m, b.number(1)), b.real(scalar.OpAdd, m, b.number(1))
	lost := b.real(scalar.OpSub, m, b.real(scalar.OpSub, g, b.number(1)))
	inverse := b.real(scalar.OpDiv, b.number(1), g)
	s := b.real(scalar.OpMul, f, inverse)
	minus := b.real(scalar.OpNeg, s)
	rest := b.real(scalar.OpFma, minus, lost, b.real(scalar.OpFma, minus, g, f))
	sTail := b.real(scalar.OpMul, rest, inverse)

	z := b.real(scalar.OpMul, s, s)
	zTail := b.real(scalar.OpFma, b.real(scalar.OpAdd, s, s), sTail, b.real(scalar.OpFma, s, s, b.real(scalar.OpNeg, z)))
	square := b.real(scalar.OpMul, z, z)
	higher := b.real(scalar.OpMul, square, b.evenOdd(z, square, atanhTerms))

	// 1 + z/3 + z²/5 + … and its product with 2·s.
	third := b.real(scalar.OpMul, z, b.number(1./3))
	thirdLow := b.real(scalar.OpFma, z, b.number(1./3), b.real(scalar.OpNeg, third))
	thirdLow = b.real(scalar.OpFma, z, b.number(thirdTail), b.real(scalar.OpFma, zTail, b.number(1./3), thirdLow))
	sum := b.sumPair(third, higher, thirdLow)
	sum = b.sumPair(b.number(1), sum.high, sum.low)
	twice, twiceTail := b.real(scalar.OpAdd, s, s), b.real(scalar.OpAdd, sTail, sTail)
	high := b.real(scalar.OpMul, twice, sum.high)
	low := b.real(scalar.OpFma, twice, sum.high, b.real(scalar.OpNeg, high))
	low = b.real(scalar.OpFma, twice, sum.low, b.real(scalar.OpFma, twiceTail, sum.high, low))

	ln2 := expansions[b.typ]
	log := b.sumPair(b.real(scalar.OpMul, k, b.number(ln2.high)), high, b.real(scalar.OpFma, k, b.number(ln2.low), low))
	return b.sumPair(log.high, log.low, b.number(0))
}

// expPair returns a factor, a pair, times e to the power of a pair, whose second number counts only where the result is
// neither 0 nor infinite.
func (b pairBuilder) expPair(factor, x pair) argument {
	const most = 0x1p-30 // of the second number
	e := expansions[b.typ]
	high := b.max(b.number(e.min), b.min(b.number(e.max), x.high))
	low := b.max(b.number(-most), b.min(b.number(most), x.low))
	k := b.real(scalar.OpRound, b.real(scalar.OpMul, high, b.number(math.Log2E)))
	r := b.sumPair(b.real(scalar.OpFma, k, b.number(-e.high), high), b.real(scalar.OpFma, k, b.number(-e.low), low), b.number(0))
	z := b.real(scalar.OpMul, r.high, r.high)
	y := b.real(scalar.OpAdd, r.high, b.real(scalar.OpFma, z, b.evenOdd(r.high, z, e.coefficients), r.low))
	return b.scale2(b.real(scalar.OpAdd, factor.high, b.real(scalar.OpFma, factor.high, y, factor.low)), k)
}

// powEnds returns x to the power y from |x| to the power y, which is right for x ≠ 0 and finite.
func (b pairBuilder) powEnds(x, y, power argument) argument {
	zero, half, one, infinite := b.number(0), b.number(0.5), b.number(1), b.number(math.Inf(1))
	equal := func(x, y, a, c argument) argument { // x == y ? a : c
		same := b.add(step{op: scalar.OpEq, typ: dtype.Bool, from: b.typ, args: []argument{x, y}})
		return b.real(scalar.OpSelect, same, a, c)
	}
	a := b.real(scalar.OpAbs, x)
	power = b.choose(zero, a, power, b.choose(y, zero, infinite, zero))
	power = b.choose(a, infinite, power, b.choose(zero, y, infinite, zero))

	// The fraction of n/2 is ½ where n is odd, and 0 where it is even, as all numbers from 2⁵³ on are.
	n := b.min(b.number(0x1p53), b.real(scalar.OpAbs, y))
	halved := b.real(scalar.OpMul, n, half)
	fraction := b.real(scalar.OpSub, halved, b.real(scalar.OpFloor, halved))
	sign := equal(fraction, half, b.bits(scalar.OpAnd, x, b.sign()), zero)
	power = b.bits(scalar.OpOr, power, sign)
	undefined := b.choose(b.number(math.Inf(-1)), x, b.number(math.NaN()), power)
	power = b.choose(x, zero, equal(b.real(scalar.OpFloor, n), n, power, undefined), power)

	power = b.orNaN(x, b.orNaN(y, power))
	return equal(y, zero, one, equal(x, one, one, power))
}
