package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// functions are expansions that use steps package scalar has no operations for: minimum and
// maximum as processors compute them, and scaling by powers of two. They keep the error bounds
// of package scalar with fewer steps, as no compiler reassociates them.
var functions = map[scalar.Op]func(b *builder, x argument) argument{
	scalar.OpExp: exp, scalar.OpExpm1: expm1, scalar.OpSigmoid: sigmoid, scalar.OpTanh: tanh, scalar.OpErf: erf,
	scalar.OpSin: sin, scalar.OpCos: cos, scalar.OpTan: tan,
}

// builder builds the template of a function of f32 or f64.
type builder struct {
	typ   dtype.DType
	steps []step
}

func (b *builder) add(s step) argument {
	s.dst = Value(len(b.steps))
	b.steps = append(b.steps, s)
	return argument{value: s.dst}
}

func (b *builder) number(x float64) argument {
	return argument{bits: wordOf(scalar.ConstF(b.typ, x)), constant: true}
}

func (b *builder) real(op scalar.Op, args ...argument) argument {
	return b.add(step{op: op, typ: b.typ, from: b.typ, args: args})
}

func (b *builder) bits(op scalar.Op, x, y argument) argument {
	t := b.words()
	return b.add(step{op: op, typ: t, from: t, args: []argument{x, y}})
}

// words returns the integers as wide as the numbers.
func (b *builder) words() dtype.DType {
	if b.typ == dtype.F64 {
		return dtype.U64
	}
	return dtype.U32
}

// bitsWhere returns c ? x : y of integers.
func (b *builder) bitsWhere(c, x, y argument) argument {
	t := b.words()
	return b.add(step{op: scalar.OpSelect, typ: t, from: t, args: []argument{c, x, y}})
}

// min returns x < y ? x : y, max x > y ? x : y; both are y where either operand is NaN.
func (b *builder) min(x, y argument) argument {
	return b.add(step{kind: minimum, typ: b.typ, from: b.typ, args: []argument{x, y}})
}

func (b *builder) max(x, y argument) argument {
	return b.add(step{kind: maximum, typ: b.typ, from: b.typ, args: []argument{x, y}})
}

// extremes are the minimum and the maximum of two floats, which are NaN where an operand is. Processors return the
// second operand then.
var extremes = map[scalar.Op]func(b *builder, x argument) argument{
	scalar.OpMin: func(b *builder, x argument) argument { return b.orNaN(x, b.min(x, secondOperand)) },
	scalar.OpMax: func(b *builder, x argument) argument { return b.orNaN(x, b.max(x, secondOperand)) },
}

// secondOperand is the second operand of an operation.
var secondOperand = argument{value: -2}

// orNaN returns x where that is NaN, else y.
func (b *builder) orNaN(x, y argument) argument {
	isNaN := b.add(step{op: scalar.OpNe, typ: dtype.Bool, from: b.typ, args: []argument{x, x}})
	return b.real(scalar.OpSelect, isNaN, x, y)
}

// less returns whether x < y.
func (b *builder) less(x, y argument) argument {
	return b.add(step{op: scalar.OpLt, typ: dtype.Bool, from: b.typ, args: []argument{x, y}})
}

// choose returns x < y ? a : c.
func (b *builder) choose(x, y, a, c argument) argument {
	return b.real(scalar.OpSelect, b.less(x, y), a, c)
}

// word is a constant of bits.
func word(bits uint64) argument { return argument{bits: bits, constant: true} }

// whenAny begins steps that only some lanes need, those with a condition that nothing else reads, and that are skipped
// where none does. It returns the condition. The results of the steps pass through carry, and then count in these
// lanes only.
func (b *builder) whenAny(condition argument) argument {
	return b.add(step{kind: whenAny, typ: dtype.Bool, from: dtype.Bool, args: []argument{condition}})
}

// carry ends the steps that whenAny begins with their results.
func (b *builder) carry(results ...argument) []argument {
	out := make([]argument, len(results))
	for i, x := range results {
		out[i] = b.add(step{kind: carry, typ: b.typ, from: b.typ, args: []argument{x}})
	}
	return out
}

// polynomial returns the polynomial in x with the given coefficients, the constant first, by
// Horner's rule.
func (b *builder) polynomial(x argument, c []float64) argument {
	sum := b.number(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		sum = b.real(scalar.OpFma, x, sum, b.number(c[i]))
	}
	return sum
}

// longPolynomial is the least number of coefficients for which even and odd powers are summed
// separately.
const longPolynomial = 8

// evenOdd is polynomial with z = x². It sums the even and the odd powers of a long polynomial
// separately: the two dependency chains run in parallel.
func (b *builder) evenOdd(x, z argument, c []float64) argument {
	if len(c) < longPolynomial {
		return b.polynomial(x, c)
	}
	var halves [2][]float64
	for i, a := range c {
		halves[i%2] = append(halves[i%2], a)
	}
	return b.real(scalar.OpFma, x, b.polynomial(z, halves[1]), b.polynomial(z, halves[0]))
}

// copySign returns y with the sign of x. y must be positive or have that sign.
func (b *builder) copySign(y, x argument) argument {
	return b.bits(scalar.OpOr, y, b.bits(scalar.OpAnd, x, b.sign()))
}

// sign returns the sign bit.
func (b *builder) sign() argument {
	return argument{bits: 1 << (b.typ.Bits() - 1), constant: true}
}

// expansion holds the constants of exp in a type: ln 2 in two parts, the first of which has an
// exact product with an integer; the coefficients of q in exp(r) = 1 + r + r²·q(r) for |r| ≤ ½·ln
// 2; and the arguments below and above which exp rounds to 0 and ∞.
type expansion struct {
	high, low    float64
	coefficients []float64
	min, max     float64
}

// expansions are accurate to 2e-9 for f32, and to 2e-17 for f64, both relative to
// exp(r) - 1.
var expansions = map[dtype.DType]expansion{
	dtype.F32: {0x1.62e4p-1, 0x1.7f7d1cf8p-20, []float64{
		0.5000000596046448, 0.1666666865348816, 0.04166517034173012,
		0.0083329351618886, 0.0014001468662172556, 0.0002006127469940111,
	}, -104, 89},
	dtype.F64: {0x1.62e42feep-1, 0x1.a39ef35793c76p-33, []float64{
		0.5000000000000006, 0.16666666666666685, 0.04166666666657326, 0.008333333333314482, 0.001388888893255076,
		0.00019841269903331848, 2.4801504195011247e-05, 2.7557227636330057e-06, 2.76264398424078e-07, 2.5114586657668674e-08,
	}, -746, 710},
}

// reduceExp returns k and exp(r) - 1 for exp(x) = 2^k·exp(r).
func (b *builder) reduceExp(x argument) (k, y argument) {
	e := expansions[b.typ]
	k = b.real(scalar.OpRound, b.real(scalar.OpMul, x, b.number(math.Log2E)))
	r := b.real(scalar.OpFma, k, b.number(-e.low), b.real(scalar.OpFma, k, b.number(-e.high), x))
	z := b.real(scalar.OpMul, r, r)
	return k, b.real(scalar.OpFma, z, b.evenOdd(r, z, e.coefficients), r)
}

// scale2 returns x·2^k for an integer k.
func (b *builder) scale2(x, k argument) argument {
	return b.add(step{kind: scale, typ: b.typ, from: b.typ, args: []argument{x, k}})
}

// expWithin returns exp(x) where it does not overflow by far, or x is NaN.
func expWithin(b *builder, x argument) argument {
	k, y := b.reduceExp(x)
	return b.scale2(b.real(scalar.OpAdd, y, b.number(1)), k)
}

// exp clamps its argument: beyond the bound it rounds to ∞.
func exp(b *builder, x argument) argument {
	return expOrZero(b, b.min(b.number(expansions[b.typ].max), x))
}

// expOrZero is expWithin whose result is 0 where exp(x) rounds to 0, as for masked scores of attention. There it scales 1
// instead: where a scaled number underflows, x86 takes as long as for a hundred instructions.
func expOrZero(b *builder, x argument) argument {
	zero, isZero := b.number(0), b.less(x, b.number(expansions[b.typ].min))
	return b.real(scalar.OpSelect, isZero, zero, expWithin(b, b.real(scalar.OpSelect, isZero, zero, x)))
}

// expm1 computes 2·(2^(k-1)·(exp(r) - 1) + (2^(k-1) - ½)), in which nothing overflows before
// the result does. Below -40 it rounds to -1.
func expm1(b *builder, x argument) argument {
	k, y := b.reduceExp(b.max(b.number(-40), b.min(b.number(expansions[b.typ].max), x)))
	p := b.scale2(b.number(0.5), k)
	h := b.real(scalar.OpFma, p, y, b.real(scalar.OpSub, p, b.number(0.5)))
	return b.copySign(b.real(scalar.OpAdd, h, h), x)
}

// sigmoid computes 1/(1+e), or e/(1+e) for x < 0, with e = exp(-|x|), which cannot overflow.
func sigmoid(b *builder, x argument) argument {
	minus := b.bits(scalar.OpOr, x, b.sign())
	e := expOrZero(b, minus)
	return b.real(scalar.OpDiv, b.choose(x, b.number(0), e, b.number(1)), b.real(scalar.OpAdd, e, b.number(1)))
}

// tanh computes 1 - 2/(exp(2a) + 1) where that does not cancel; from a = 9.02 on it rounds to
// 1.
func tanh(b *builder, x argument) argument {
	near, _ := scalar.Coefficients(scalar.OpTanh)
	a := b.real(scalar.OpAbs, x)
	clamped := b.min(b.number(10), a)
	e := expWithin(b, b.real(scalar.OpAdd, clamped, clamped))
	large := b.real(scalar.OpSub, b.number(1), b.real(scalar.OpDiv, b.number(2), b.real(scalar.OpAdd, e, b.number(1))))
	z := b.real(scalar.OpMul, a, a)
	small := b.real(scalar.OpFma, b.real(scalar.OpMul, a, z), b.polynomial(z, near), a)
	return b.copySign(b.choose(a, b.number(0.6), small, large), x)
}

// powerOfTwo returns 2^x of an f32 where it does not overflow by far, or x is NaN.
func powerOfTwo(b *builder, x argument) argument {
	near, _ := scalar.Coefficients(scalar.OpPow)
	k := b.real(scalar.OpRound, x)
	r := b.real(scalar.OpSub, x, k)
	return b.scale2(b.real(scalar.OpFma, r, b.polynomial(r, near), b.number(1)), k)
}

// erf computes 1 - 2^log₂(1 - erf(a)) for larger arguments; from a = 3.92 on it rounds to 1.
func erf(b *builder, x argument) argument {
	near, far := scalar.Coefficients(scalar.OpErf)
	a := b.real(scalar.OpAbs, x)
	e := powerOfTwo(b, b.polynomial(b.min(b.number(3.95), a), far))
	large := b.real(scalar.OpSub, b.number(1), e)
	small := b.real(scalar.OpFma, a, b.polynomial(b.real(scalar.OpMul, a, a), near), a)
	return b.copySign(b.choose(a, b.number(0.92), small, large), x)
}

// roundNarrow rounds to f16 or bf16, to nearest even, and wraps integers to the bits of t.
func (b *builder) roundNarrow(x argument, t dtype.DType) argument {
	switch {
	case t == dtype.F16:
		return b.add(step{kind: roundHalf, typ: dtype.F32, from: dtype.F32, args: []argument{x}})
	case t.IsUnsigned():
		return b.bits(scalar.OpAnd, x, word(1<<t.Bits()-1))
	case t.IsSigned():
		high := word(uint64(32 - t.Bits()))
		cut := func(op scalar.Op, x argument) argument {
			return b.add(step{op: op, typ: dtype.I32, from: dtype.I32, args: []argument{x, high}})
		}
		return cut(scalar.OpShr, cut(scalar.OpShl, x))
	}
	odd := b.bits(scalar.OpAnd, b.bits(scalar.OpShr, x, word(16)), word(1))
	up := b.bits(scalar.OpAdd, b.bits(scalar.OpAdd, x, word(0x7fff)), odd)
	rounded := b.bits(scalar.OpAnd, up, word(0xffff0000))
	nan := b.add(step{op: scalar.OpNe, typ: dtype.Bool, from: dtype.F32, args: []argument{x, x}})
	return b.real(scalar.OpSelect, nan, b.bits(scalar.OpOr, x, word(1<<22)), rounded)
}
