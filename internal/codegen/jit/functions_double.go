package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/scalar"
)

// doubleFunctions are those of f64, with errors below 2.3 ULPs. The coefficients were computed
// by Remez exchange in 60-digit arithmetic, minimising the relative error of the function, and
// rounded to f64. The polynomials have about twice the degree of those of f32: exp 11 against
// 7, erf 25 and 15 against 11 and 6.
var doubleFunctions = map[scalar.Op]func(b *builder, x argument) argument{
	scalar.OpExp: exp, scalar.OpExpm1: expm1, scalar.OpSigmoid: sigmoid, scalar.OpTanh: doubleTanh,
	scalar.OpLog: doubleLog, scalar.OpLog1p: doubleLog1p, scalar.OpErf: doubleErf,
	scalar.OpSin: doubleSin, scalar.OpCos: doubleCos, scalar.OpTan: doubleTan,
	scalar.OpAsin: doubleAsin, scalar.OpAcos: doubleAcos, scalar.OpAtan: doubleAtan,
	scalar.OpSinh: doubleSinh, scalar.OpCosh: doubleCosh, scalar.OpErfc: doubleErfc,
}

// doubleTanh computes e/(e + 2) for e = exp(2a) - 1 = 2^k·(exp(r) - 1) + (2^k - 1), which does
// not cancel; from a = 19.1 on it rounds to 1.
func doubleTanh(b *builder, x argument) argument {
	a := b.min(b.number(20), b.real(scalar.OpAbs, x))
	k, y := b.reduceExp(b.real(scalar.OpAdd, a, a))
	p := b.scale2(b.number(1), k)
	e := b.real(scalar.OpFma, p, y, b.real(scalar.OpSub, p, b.number(1)))
	return b.copySign(b.real(scalar.OpDiv, e, b.real(scalar.OpAdd, e, b.number(2))), x)
}

// logCoefficients are p in log(1 + f) = 2s + s³·p(s²) for s = f/(2 + f), √½ ≤ 1 + f ≤ √2;
// 4e-18.
var logCoefficients = []float64{
	0.6666666666666715, 0.3999999999952087, 0.28571428721936626, 0.22222200451089266,
	0.1818347514583393, 0.15316165863874245, 0.14776118539996755,
}

// The bits of f64.
const (
	mantissaBits = 52
	mantissa     = 1<<mantissaBits - 1
	bias         = 1023
)

var sqrtHalf = math.Float64bits(math.Sqrt2 / 2)

// parts splits a positive normal x into 2^k·m with √½ ≤ m < √2.
func (b *builder) parts(x argument) (k, m argument) {
	w := b.bits(scalar.OpAdd, x, word(bias<<mantissaBits-sqrtHalf))
	// The exponent becomes the low bits of a number whose ulp is 1.
	whole := b.bits(scalar.OpOr, b.bits(scalar.OpShr, w, word(mantissaBits)), word(math.Float64bits(1<<mantissaBits)))
	k = b.real(scalar.OpSub, whole, b.number(1<<mantissaBits+bias))
	return k, b.bits(scalar.OpAdd, b.bits(scalar.OpAnd, w, word(mantissa)), word(sqrtHalf))
}

// logSum returns log(1 + f) + k·ln 2, adding the larger parts last: log(1 + f) = f - (h - s·(h
// + s²·p(s²))) for h = f²/2.
func (b *builder) logSum(f, k argument) argument {
	ln2 := expansions[b.typ]
	s := b.real(scalar.OpDiv, f, b.real(scalar.OpAdd, f, b.number(2)))
	z := b.real(scalar.OpMul, s, s)
	h := b.real(scalar.OpMul, b.real(scalar.OpMul, f, b.number(0.5)), f)
	t := b.real(scalar.OpFma, z, b.polynomial(z, logCoefficients), h)
	rest := b.real(scalar.OpSub, h, b.real(scalar.OpFma, s, t, b.real(scalar.OpMul, k, b.number(ln2.low))))
	return b.real(scalar.OpFma, k, b.number(ln2.high), b.real(scalar.OpSub, f, rest))
}

// logEnds returns y, the logarithm of x - from, and handles x that is not positive and finite.
func (b *builder) logEnds(y, x argument, from float64) argument {
	y = b.choose(b.number(from), x, y, b.choose(x, b.number(from), b.number(math.NaN()), b.number(math.Inf(-1))))
	return b.choose(x, b.number(math.Inf(1)), y, x)
}

// doubleParts is parts for subnormal numbers, too, which it scales up first.
func (b *builder) doubleParts(x argument) (k, m argument) {
	const minNormal, shift = 0x1p-1022, 54
	k, m = b.parts(b.choose(x, b.number(minNormal), b.real(scalar.OpMul, x, b.number(1<<shift)), x))
	return b.real(scalar.OpSub, k, b.choose(x, b.number(minNormal), b.number(shift), b.number(0))), m
}

func doubleLog(b *builder, x argument) argument {
	k, m := b.doubleParts(x)
	return b.logEnds(b.logSum(b.real(scalar.OpSub, m, b.number(1)), k), x, 0)
}

// doubleLog1p uses f = x for small x, and rounds 1 + x elsewhere, where the error of the sum
// is small relative to its logarithm.
func doubleLog1p(b *builder, x argument) argument {
	k, m := b.parts(b.real(scalar.OpAdd, x, b.number(1)))
	f := b.real(scalar.OpSub, m, b.number(1))
	from := func(inside, outside argument) argument {
		return b.choose(b.number(-0.2928), x, b.choose(x, b.number(0.4142), inside, outside), outside)
	}
	y := b.logSum(from(x, f), from(b.number(0), k))
	return b.logEnds(b.copySign(y, x), x, -1)
}

// erfNear is p in erf(x) = x + x·p(x²), |x| ≤ 1.2; erfFar is log₂(1 - erf(a)),
// 1.2 ≤ a ≤ 5.95; both 2e-17, relative to erf. powers is p in 2^r = 1 + r·p(r), |r| ≤ ½;
// 3e-16.
var (
	erfNear = []float64{
		0.12837916709551256, -0.3761263890318342, 0.11283791670942468, -0.026866170643226644, 0.00522397761049557,
		-0.0008548326322914454, 0.00012055311829491992, -1.4925220599254665e-05, 1.645610579073224e-06,
		-1.6307716621152717e-07, 1.4422552340013723e-08, -1.0606631909438698e-09, 4.863666615044142e-11,
	}
	erfFar = []float64{
		-5.50858118421788e-06, -1.6278590692523278, -0.9186432940762574, -0.147776974591124, 0.026732601708126892,
		0.0014177651774855567, -0.003543508996214878, 0.0016831563794879867, -0.0005239577524582526,
		0.0001205560857723305, -2.093158473919478e-05, 2.7033486789508866e-06, -2.493321417490362e-07,
		1.519711574104593e-08, -5.244763852728077e-10, 6.874525978467529e-12,
	}
	powers = []float64{
		0.6931471805599492, 0.24022650695909106, 0.0555041086644822, 0.00961812910798214, 0.001333355822577733,
		0.00015403529995266363, 1.5252659426510256e-05, 1.3215653132511171e-06, 1.0208325284290684e-07, 7.038257271487904e-09,
	}
)

// doubleErf computes 1 - 2^log₂(1 - erf(a)) for larger arguments; from a = 5.93 on it rounds
// to 1.
func doubleErf(b *builder, x argument) argument {
	square := func(x argument) argument { return b.real(scalar.OpMul, x, x) }
	a := b.real(scalar.OpAbs, x)
	far := b.min(b.number(5.95), a)
	q := b.evenOdd(far, square(far), erfFar)
	k := b.real(scalar.OpRound, q)
	r := b.real(scalar.OpSub, q, k)
	e := b.scale2(b.real(scalar.OpFma, r, b.evenOdd(r, square(r), powers), b.number(1)), k)
	z := square(a)
	small := b.real(scalar.OpFma, a, b.evenOdd(z, square(z), erfNear), a)
	return b.copySign(b.choose(a, b.number(1.2), small, b.real(scalar.OpSub, b.number(1), e)), x)
}

// erfcFar is p in erfc(a)·e^(a²)·(1 + 2a) = p(t) for t = (a-2)/(a+2), ½ ≤ a ≤ 28; 1e-18.
var erfcFar = []float64{
	1.2769783815525286, -0.09276382658574604, -0.16603039761528876, 0.16405128003344793, -0.05422000099209646,
	-0.008034015082741541, 0.008722653877980883, 0.0012713389734467823, -0.0014568139926604755, -0.0004543409213793562,
	0.00020636775892777552, 0.00015103973332260783, -1.5140083445501983e-06, -3.642457010480331e-05, -1.347239678079488e-05,
	3.705480304233392e-06, 5.159423468301022e-06, 1.5487956817473651e-06, -5.731850923089686e-07, -9.70037775655265e-07,
	-3.8133874498580224e-07, 3.3834741580071666e-07, 1.8568808279417486e-07, -1.0184325870120364e-07,
}

// doubleErfc takes the square in the exponent, and the factor of the power, in two parts.
func doubleErfc(b *builder, x argument) argument {
	one, two := b.number(1), b.number(2)
	a := b.min(b.number(28), b.real(scalar.OpAbs, x)) // where it rounds to 0
	t := b.real(scalar.OpDiv, b.real(scalar.OpSub, a, two), b.real(scalar.OpAdd, a, two))
	rest := b.evenOdd(t, b.real(scalar.OpMul, t, t), erfcFar[1:])
	p := b.sumPair(b.number(erfcFar[0]), b.real(scalar.OpMul, t, rest), b.number(0))
	q := pairBuilder{b}.quotientPair(p, b.sumPair(b.real(scalar.OpAdd, a, a), one, b.number(0)))
	minus := b.real(scalar.OpNeg, a)
	square := b.real(scalar.OpMul, minus, a)
	far := pairBuilder{b}.expPair(q, pair{square, b.real(scalar.OpFma, minus, a, b.real(scalar.OpNeg, square))})
	far = b.choose(x, b.number(0), b.real(scalar.OpSub, two, far), far)

	z := b.real(scalar.OpMul, x, x)
	near := b.real(scalar.OpFma, x, b.evenOdd(z, b.real(scalar.OpMul, z, z), erfNear), x)
	return b.orNaN(x, b.choose(a, b.number(0.5), b.real(scalar.OpSub, one, near), far))
}

// quotientPair divides pairs.
func (b pairBuilder) quotientPair(x, y pair) pair {
	inverse := b.real(scalar.OpDiv, b.number(1), y.high)
	q := b.real(scalar.OpMul, x.high, inverse)
	minus := b.real(scalar.OpNeg, q)
	lost := b.real(scalar.OpFma, minus, y.low, b.real(scalar.OpAdd, b.real(scalar.OpFma, minus, y.high, x.high), x.low))
	return pair{q, b.real(scalar.OpMul, lost, inverse)}
}
