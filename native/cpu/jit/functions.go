package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// functions are written out with what package scalar has no operations for:
// lesser and greater numbers as processors choose them, and products with powers
// of two. They keep the error bounds of package scalar with fewer steps, as they
// need not stand compilers that reassociate.
var functions = map[scalar.Op]func(b *builder, x argument) argument{
	scalar.OpExp: exp, scalar.OpSigmoid: sigmoid, scalar.OpTanh: tanh, scalar.OpErf: erf,
}

// builder makes the template of a function of f32.
type builder struct{ steps []step }

func (b *builder) add(s step) argument {
	s.dst = Value(len(b.steps))
	b.steps = append(b.steps, s)
	return argument{value: s.dst}
}

func number(x float64) argument {
	return argument{bits: math.Float32bits(float32(x)), constant: true}
}

func (b *builder) f32(op scalar.Op, args ...argument) argument {
	return b.add(step{op: op, typ: dtype.F32, from: dtype.F32, args: args})
}

func (b *builder) bits(op scalar.Op, x, y argument) argument {
	return b.add(step{op: op, typ: dtype.U32, from: dtype.U32, args: []argument{x, y}})
}

// least returns x < y ? x : y, most x > y ? x : y; so y where either is NaN.
func (b *builder) least(x, y argument) argument {
	return b.add(step{kind: least, typ: dtype.F32, from: dtype.F32, args: []argument{x, y}})
}

func (b *builder) most(x, y argument) argument {
	return b.add(step{kind: most, typ: dtype.F32, from: dtype.F32, args: []argument{x, y}})
}

// choose returns x < y ? a : c.
func (b *builder) choose(x, y, a, c argument) argument {
	less := b.add(step{op: scalar.OpLt, typ: dtype.Bool, from: dtype.F32, args: []argument{x, y}})
	return b.f32(scalar.OpSelect, less, a, c)
}

// polynomial returns the polynomial in x with the given coefficients, the
// constant first.
func (b *builder) polynomial(x argument, c []float64) argument {
	sum := number(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		sum = b.f32(scalar.OpFma, x, sum, number(c[i]))
	}
	return sum
}

// signed returns y ≥ 0 with the sign of x.
func (b *builder) signed(y, x argument) argument {
	return b.bits(scalar.OpOr, y, b.bits(scalar.OpAnd, x, argument{bits: 1 << 31, constant: true}))
}

// expCoefficients are those of q in exp(r) = 1 + r + r²·q(r), |r| ≤ ½·ln 2; 2e-9.
var expCoefficients = []float64{
	0.5000000596046448, 0.1666666865348816, 0.04166517034173012,
	0.0083329351618886, 0.0014001468662172556, 0.0002006127469940111,
}

// expWithin returns exp(x) = 2^k·exp(r) for -104 ≤ x ≤ 89, or NaN.
func expWithin(b *builder, x argument) argument {
	const ln2High, ln2Low = 0x1.62e4p-1, 0x1.7f7d1cf8p-20 // the first times k is exact
	k := b.f32(scalar.OpRound, b.f32(scalar.OpMul, x, number(math.Log2E)))
	r := b.f32(scalar.OpFma, k, number(-ln2Low), b.f32(scalar.OpFma, k, number(-ln2High), x))
	q := b.polynomial(r, expCoefficients)
	y := b.f32(scalar.OpAdd, b.f32(scalar.OpFma, b.f32(scalar.OpMul, r, r), q, r), number(1))
	return b.add(step{kind: scale, typ: dtype.F32, from: dtype.F32, args: []argument{y, k}})
}

// exp needs no more than its bounds: beyond them it rounds to 0 and ∞.
func exp(b *builder, x argument) argument {
	return expWithin(b, b.most(number(-104), b.least(number(89), x)))
}

// sigmoid takes e = exp(-|x|), which does not overflow: 1/(1+e), or e/(1+e) for
// x < 0.
func sigmoid(b *builder, x argument) argument {
	minus := b.bits(scalar.OpOr, x, argument{bits: 1 << 31, constant: true})
	e := expWithin(b, b.most(number(-104), minus))
	return b.f32(scalar.OpDiv, b.choose(x, number(0), e, number(1)), b.f32(scalar.OpAdd, e, number(1)))
}

// tanh takes 1 - 2/(exp(2a) + 1) where it does not cancel; from a = 9.02 on that
// rounds to 1.
func tanh(b *builder, x argument) argument {
	near, _ := scalar.Coefficients(scalar.OpTanh)
	a := b.f32(scalar.OpAbs, x)
	most := b.least(number(10), a)
	e := expWithin(b, b.f32(scalar.OpAdd, most, most))
	large := b.f32(scalar.OpSub, number(1), b.f32(scalar.OpDiv, number(2), b.f32(scalar.OpAdd, e, number(1))))
	z := b.f32(scalar.OpMul, a, a)
	small := b.f32(scalar.OpFma, b.f32(scalar.OpMul, a, z), b.polynomial(z, near), a)
	return b.signed(b.choose(a, number(0.6), small, large), x)
}

func erf(b *builder, x argument) argument {
	near, far := scalar.Coefficients(scalar.OpErf)
	a := b.f32(scalar.OpAbs, x)
	e := expWithin(b, b.polynomial(b.least(number(3.95), a), far))
	large := b.f32(scalar.OpSub, number(1), e)
	small := b.f32(scalar.OpFma, a, b.polynomial(b.f32(scalar.OpMul, a, a), near), a)
	return b.signed(b.choose(a, number(0.92), small, large), x)
}

// narrow rounds to the nearest number of f16 or bf16, of two the even one.
func (b *builder) narrow(x argument, t dtype.DType) argument {
	if t == dtype.F16 {
		return b.add(step{kind: roundHalf, typ: dtype.F32, from: dtype.F32, args: []argument{x}})
	}
	word := func(bits uint32) argument { return argument{bits: bits, constant: true} }
	odd := b.bits(scalar.OpAnd, b.bits(scalar.OpShr, x, word(16)), word(1))
	up := b.bits(scalar.OpAdd, b.bits(scalar.OpAdd, x, word(0x7fff)), odd)
	rounded := b.bits(scalar.OpAnd, up, word(0xffff0000))
	nan := b.add(step{op: scalar.OpNe, typ: dtype.Bool, from: dtype.F32, args: []argument{x, x}})
	return b.f32(scalar.OpSelect, nan, b.bits(scalar.OpOr, x, word(1<<22)), rounded)
}
