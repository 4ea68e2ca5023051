package jit

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Coefficients of functions of angles of f64, with their errors relative to the function: sineTerms is p in sin r = r
// + r³·p(r²), cosineTerms in cos r = 1 - r²/2 + r⁴·p(r²) and tangentTerms in tan r = r + r³·p(r²), |r| ≤ π/4; 3e-18,
// 5e-20 and 1e-18.
var (
	sineTerms = []float64{
		-0.16666666666666632, 0.008333333333322316, -0.00019841269829725457, 2.7557313662105895e-06,
		-2.5050753269246493e-08, 1.58965051439009e-10,
	}
	cosineTerms = []float64{
		0.0416666666666666, -0.001388888888887399, 2.480158728939479e-05, -2.755731432597877e-07,
		2.0875719550389397e-09, -1.1359448202831286e-11,
	}
	tangentTerms = []float64{
		0.33333333333333387, 0.13333333333324757, 0.05396825397319754, 0.021869488391831688, 0.00886323803508568,
		0.00359209978399696, 0.0014560528297336717, 0.0005888305159734574, 0.0002438654006835102, 8.328270185006212e-05,
		6.76980251093581e-05, -2.620482454893869e-05, 4.9088610304829286e-05, -2.4487110451146433e-05, 9.844199558248157e-06,
	}
)

// π/2 as the sum of three numbers.
const (
	piHalf      = math.Pi / 2
	piHalfTail  = 0x1.1a62633145c07p-54
	piHalfThird = -0x1.f1976b7ed8fbcp-110
)

// angles are the constants of angles of a type: where the quadrant is too large for [builder.reduceNear], a number whose
// sums with smaller ones have an ulp of 1, and π/2 as the sum of three numbers.
var angles = map[dtype.DType]struct {
	large, shift float64
	parts        [3]float64
}{
	dtype.F32: {1 << 17, 3 << 22, [3]float64{0x1.921fb6p0, -0x1.777a5cp-25, -0x1.ee59dap-50}},
	dtype.F64: {1 << 27, 3 << 51, [3]float64{piHalf, piHalfTail, piHalfThird}},
}

// reduceNear splits x into quadrant·π/2 + r with |r| ≤ π/4. The quadrant is in the lower bits of a number. The product
// of the quadrant and the first part of π/2 cancels without an error, and r is within one ULP.
func (b *builder) reduceNear(x argument) (quadrant, r argument) {
	a := angles[b.typ]
	quadrant = b.real(scalar.OpFma, x, b.number(2/math.Pi), b.number(a.shift))
	k, r := b.real(scalar.OpSub, b.number(a.shift), quadrant), x
	for _, part := range a.parts {
		r = b.real(scalar.OpFma, k, b.number(part), r)
	}
	return quadrant, r
}

// isFar begins steps for the lanes that need more than [builder.reduceNear].
func (b *builder) isFar(x argument) argument {
	return b.whenAny(b.less(b.number(angles[b.typ].large), b.real(scalar.OpAbs, x)))
}

// reduceAngle is reduceNear for any x.
func (b *builder) reduceAngle(x argument) (quadrant, r argument) {
	quadrant, r = b.reduceNear(x)
	far := b.isFar(x)
	q, rest := b.reduceFar(x)
	results := b.carry(q, rest)
	return b.bitsWhere(far, results[0], quadrant), b.real(scalar.OpSelect, far, results[1], r)
}

// reduceFar is reduceAngle of any |x| ≥ 2, by the method of Payne and Hanek: the significand times the bits of 2/π that
// determine the quadrant and 126 bits of its fraction.
func (b *builder) reduceFar(x argument) (quadrant, r argument) {
	a := b.real(scalar.OpAbs, x)
	significand := b.bits(scalar.OpOr, b.bits(scalar.OpAnd, a, word(mantissa)), word(1<<mantissaBits))
	// The first bit of 2/π that counts, as a number of a bit of the table.
	first := b.bits(scalar.OpSub, b.bits(scalar.OpShr, a, word(mantissaBits)), word(bias+mantissaBits-62))
	window := b.window(first)
	high, _ := b.product(significand, window[2])
	middle, low := b.product(significand, window[1])
	low = b.bits(scalar.OpAdd, low, high)
	middle = b.bits(scalar.OpAdd, middle, b.carryOf(low, high))
	top := b.bits(scalar.OpAdd, b.bits(scalar.OpMul, significand, window[0]), middle)

	// Round to the nearest quadrant; the rest is signed.
	rounded := b.bits(scalar.OpAdd, top, word(1<<61))
	quadrant = b.bits(scalar.OpShr, rounded, word(62))
	rest := b.bits(scalar.OpSub, b.bits(scalar.OpAnd, rounded, word(1<<62-1)), word(1<<61))
	turn := b.fraction(rest, low)
	r = b.real(scalar.OpMul, turn.high, b.number(piHalf))
	lost := b.real(scalar.OpFma, turn.high, b.number(piHalf), b.real(scalar.OpNeg, r))
	lost = b.real(scalar.OpFma, turn.high, b.number(piHalfTail), b.real(scalar.OpFma, turn.low, b.number(piHalf), lost))
	r = b.real(scalar.OpAdd, b.real(scalar.OpAdd, r, lost), b.real(scalar.OpSub, x, x)) // not a number where x is infinite

	sign := b.bits(scalar.OpAnd, x, b.sign())
	minus := b.bits(scalar.OpSub, word(0), quadrant)
	return b.bitsWhere(b.less(x, b.number(0)), minus, quadrant), b.bits(scalar.OpXor, r, sign)
}

// window returns the 192 bits of 2/π from bit number first on.
func (b *builder) window(first argument) [3]argument {
	const words = 17
	table := elementary.TwoOverPi()
	var at [4]argument // the word of bit first, and those after it
	for k := range at {
		at[k] = word(table[k+words-1])
	}
	for i := words - 2; i >= 0; i-- {
		before := b.add(step{op: scalar.OpLt, typ: dtype.Bool, from: dtype.U64, args: []argument{first, word(uint64(64*i + 64))}})
		for k := range at {
			at[k] = b.bitsWhere(before, word(table[i+k]), at[k])
		}
	}
	shift := b.bits(scalar.OpAnd, first, word(63))
	back := b.bits(scalar.OpSub, word(63), shift)
	var out [3]argument
	for k := range out {
		next := b.bits(scalar.OpShr, b.bits(scalar.OpShr, at[k+1], word(1)), back)
		out[k] = b.bits(scalar.OpOr, b.bits(scalar.OpShl, at[k], shift), next)
	}
	return out
}

// product returns the 128 bits of a product of 64-bit integers, from those of their halves.
func (b *builder) product(x, y argument) (high, low argument) {
	half := func(x argument) (upper, lower argument) {
		return b.bits(scalar.OpShr, x, word(32)), b.bits(scalar.OpAnd, x, word(math.MaxUint32))
	}
	xh, xl := half(x)
	yh, yl := half(y)
	up, down := half(b.bits(scalar.OpMul, xl, yl))
	crossUp, crossDown := half(b.bits(scalar.OpMul, xh, yl))
	otherUp, otherDown := half(b.bits(scalar.OpMul, xl, yh))
	middleUp, middle := half(b.bits(scalar.OpAdd, up, b.bits(scalar.OpAdd, crossDown, otherDown)))
	high = b.bits(scalar.OpAdd, b.bits(scalar.OpMul, xh, yh), b.bits(scalar.OpAdd, crossUp, b.bits(scalar.OpAdd, otherUp, middleUp)))
	return high, b.bits(scalar.OpOr, b.bits(scalar.OpShl, middle, word(32)), down)
}

// carryOf returns 1 where a sum of x and another number wrapped, else 0.
func (b *builder) carryOf(sum, x argument) argument {
	wrapped := b.add(step{op: scalar.OpLt, typ: dtype.Bool, from: dtype.U64, args: []argument{sum, x}})
	return b.bitsWhere(wrapped, word(1), word(0))
}

// fraction returns (high·2⁶⁴ + low)·2⁻¹²⁶ for a signed high, exactly but for the last of 32 bits.
func (b *builder) fraction(high, low argument) pair {
	part := func(x argument, shift uint64, scale float64) argument { // 32 bits
		// The bits are those of a number from 2⁵² on, whose ulp is 1.
		u := b.bits(scalar.OpAnd, b.bits(scalar.OpShr, x, word(shift)), word(math.MaxUint32))
		whole := b.bits(scalar.OpOr, u, word(math.Float64bits(1<<mantissaBits)))
		return b.real(scalar.OpMul, b.real(scalar.OpSub, whole, b.number(1<<mantissaBits)), b.number(scale))
	}
	// With 2⁶³ added, the upper half is not negative.
	biased := b.bits(scalar.OpXor, high, b.sign())
	top := b.real(scalar.OpSub, part(biased, 32, 0x1p-30), b.number(2))
	sum := b.sumPair(top, part(biased, 0, 0x1p-62), b.number(0))
	rest := b.sumPair(part(low, 32, 0x1p-94), part(low, 0, 0x1p-126), b.number(0))
	return b.sumPair(sum.high, b.real(scalar.OpAdd, sum.low, rest.high), rest.low)
}

// sineCosine returns the sine and the cosine of |r| ≤ π/4.
func (b *builder) sineCosine(r argument) (sine, cosine argument) {
	terms, others := sineTerms, cosineTerms
	if b.typ == dtype.F32 {
		terms, others = scalar.Coefficients(scalar.OpSin)
	}
	z := b.real(scalar.OpMul, r, r)
	square := b.real(scalar.OpMul, z, z)
	sine = b.real(scalar.OpFma, b.real(scalar.OpMul, r, z), b.evenOdd(z, square, terms), r)
	one := b.number(1)
	half := b.real(scalar.OpMul, z, b.number(0.5))
	most := b.real(scalar.OpSub, one, half)
	lost := b.real(scalar.OpSub, b.real(scalar.OpSub, one, most), half)
	cosine = b.real(scalar.OpAdd, most, b.real(scalar.OpFma, square, b.evenOdd(z, square, others), lost))
	return sine, cosine
}

// quadrantOf returns the sine in even quadrants and the cosine in odd ones, negative in the upper two of four.
func (b *builder) quadrantOf(quadrant, sine, cosine argument) argument {
	y := b.real(scalar.OpSelect, b.isOdd(quadrant), cosine, sine)
	high := b.bits(scalar.OpShl, quadrant, word(uint64(b.typ.Bits()-2)))
	return b.bits(scalar.OpXor, y, b.bits(scalar.OpAnd, high, b.sign()))
}

func (b *builder) isOdd(x argument) argument {
	bit := b.bits(scalar.OpAnd, x, word(1))
	return b.add(step{op: scalar.OpNe, typ: dtype.Bool, from: b.words(), args: []argument{bit, word(0)}})
}

// orTiny returns x where it is so small that an odd function with derivative 1 rounds to it, else y.
func (b *builder) orTiny(x, y argument) argument {
	tiny := 0x1p-27
	if b.typ == dtype.F32 {
		tiny = 0x1p-12
	}
	return b.choose(b.real(scalar.OpAbs, x), b.number(tiny), x, y)
}

func doubleSin(b *builder, x argument) argument {
	quadrant, r := b.reduceAngle(x)
	s, c := b.sineCosine(r)
	return b.orTiny(x, b.quadrantOf(quadrant, s, c))
}

func doubleCos(b *builder, x argument) argument {
	quadrant, r := b.reduceAngle(x)
	s, c := b.sineCosine(r)
	return b.quadrantOf(b.bits(scalar.OpAdd, quadrant, word(1)), s, c)
}

// doubleTan returns tan r in even quadrants and -1/tan r in odd ones.
func doubleTan(b *builder, x argument) argument {
	quadrant, r := b.reduceAngle(x)
	t := b.oddSeries(r, b.real(scalar.OpMul, r, r), tangentTerms)
	odd := b.isOdd(quadrant)
	over := b.real(scalar.OpSelect, odd, b.number(-1), t)
	return b.orTiny(x, b.real(scalar.OpDiv, over, b.real(scalar.OpSelect, odd, t, b.number(1))))
}

// orExpanded returns y, and where [builder.reduceNear] does not do, the expansion of a function of f32.
func (b *builder) orExpanded(op scalar.Op, x, y argument) argument {
	far := b.isFar(x)
	t := newTemplate(scalar.Simplify(Operation{op, b.typ, b.typ}.Expr()))
	first := Value(len(b.steps))
	for _, s := range t.steps {
		s.args = slices.Clone(s.args)
		for i, a := range s.args {
			switch {
			case a.constant:
			case a.value < 0:
				s.args[i] = x
			default:
				s.args[i].value += first
			}
		}
		b.add(s)
	}
	rest := b.carry(argument{value: first + t.root})
	return b.real(scalar.OpSelect, far, rest[0], y)
}

func sin(b *builder, x argument) argument {
	quadrant, r := b.reduceNear(x)
	s, c := b.sineCosine(r)
	return b.orExpanded(scalar.OpSin, x, b.orTiny(x, b.quadrantOf(quadrant, s, c)))
}

func cos(b *builder, x argument) argument {
	quadrant, r := b.reduceNear(x)
	s, c := b.sineCosine(r)
	return b.orExpanded(scalar.OpCos, x, b.quadrantOf(b.bits(scalar.OpAdd, quadrant, word(1)), s, c))
}

// tan returns sin r/cos r in even quadrants and -cos r/sin r in odd ones.
func tan(b *builder, x argument) argument {
	quadrant, r := b.reduceNear(x)
	s, c := b.sineCosine(r)
	odd := b.isOdd(quadrant)
	over := b.real(scalar.OpSelect, odd, b.real(scalar.OpNeg, c), s)
	y := b.real(scalar.OpDiv, over, b.real(scalar.OpSelect, odd, s, c))
	return b.orExpanded(scalar.OpTan, x, b.orTiny(x, y))
}
