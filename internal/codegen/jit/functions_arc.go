package jit

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// arcTangentTerms is p in atan t = t + t³·p(t²), |t| ≤ tan(π/8), and arcSineTerms in asin x = x + x³·p(x²), |x| ≤ ½;
// both 1e-18, relative to the function.
var (
	arcTangentTerms = []float64{
		-0.333333333333332, 0.19999999999953658, -0.1428571428020356, 0.11111110783793729, -0.09090897766521654,
		0.07692060352207027, -0.06663105348239888, 0.05847896611316246, -0.05039327292410493, 0.03806486436337393,
		-0.017907243800357717,
	}
	arcSineTerms = []float64{
		0.16666666666666763, 0.0749999999997009, 0.044642857175293156, 0.030381942674987842, 0.02237221591305711,
		0.0173515953873117, 0.013981019730161082, 0.01139728435222379, 0.010789364870070988, 0.003672035651133979,
		0.021790979105916132, -0.021117151936202803, 0.03270241323730646,
	}
)

// oddSeries returns x + x³·p(x²) for the coefficients of p.
func (b *builder) oddSeries(x, square argument, terms []float64) argument {
	p := b.evenOdd(square, b.real(scalar.OpMul, square, square), terms)
	return b.real(scalar.OpFma, b.real(scalar.OpMul, x, square), p, x)
}

// arcBuilder builds the inverse functions of angles.
type arcBuilder struct{ *builder }

// arcTangent returns atan(t) + eighths·π/4 for |t| ≤ tan(π/8).
func (b arcBuilder) arcTangent(t, eighths argument) argument {
	y := b.oddSeries(t, b.real(scalar.OpMul, t, t), arcTangentTerms)
	y = b.real(scalar.OpFma, eighths, b.number(piHalfTail/2), y)
	return b.real(scalar.OpFma, eighths, b.number(piHalf/2), y)
}

// ratio returns the numbers for [arcBuilder.arcTangent] of the angle whose tangent is low/high, 0 ≤ low ≤ high: those of
// low/high, or of (low - high)/(low + high), an eighth of a turn less.
func (b arcBuilder) ratio(low, high argument) (t, eighths argument) {
	middle := b.less(b.real(scalar.OpMul, high, b.number(math.Sqrt2-1)), low)
	over := b.real(scalar.OpSelect, middle, b.real(scalar.OpSub, low, high), low)
	under := b.real(scalar.OpSelect, middle, b.real(scalar.OpAdd, low, high), high)
	return b.real(scalar.OpDiv, over, under), b.real(scalar.OpSelect, middle, b.number(1), b.number(0))
}

// doubleAtan returns π/2 - atan(1/|x|) of large |x|.
func doubleAtan(b *builder, x argument) argument {
	one := b.number(1)
	a := b.orNaN(x, b.min(b.number(0x1p64), b.real(scalar.OpAbs, x)))
	large := b.less(one, a)
	t, eighths := arcBuilder{b}.ratio(b.real(scalar.OpSelect, large, one, a), b.real(scalar.OpSelect, large, a, one))
	t = b.real(scalar.OpSelect, large, b.real(scalar.OpNeg, t), t)
	eighths = b.real(scalar.OpSelect, large, b.real(scalar.OpSub, b.number(2), eighths), eighths)
	return b.copySign(arcBuilder{b}.arcTangent(t, eighths), x)
}

// doubleAtan2 returns the angle of the point (x, y) from that in the first half of a quadrant. Signs of zeros and
// infinities count.
func doubleAtan2(b *builder, y argument) argument {
	x, zero := secondOperand, b.number(0)
	ax, ay := b.real(scalar.OpAbs, x), b.real(scalar.OpAbs, y)
	steep := b.less(ax, ay)
	low, high := b.real(scalar.OpSelect, steep, ax, ay), b.real(scalar.OpSelect, steep, ay, ax)
	t, eighths := arcBuilder{b}.ratio(arcBuilder{b}.finiteRatio(low, high))
	left := b.less(b.copySign(b.number(1), x), zero)
	flip := b.add(step{op: scalar.OpNe, typ: dtype.Bool, from: dtype.Bool, args: []argument{steep, left}})
	t = b.real(scalar.OpSelect, flip, b.real(scalar.OpNeg, t), t)
	eighths = b.real(scalar.OpSelect, steep, b.real(scalar.OpSub, b.number(2), eighths), eighths)
	eighths = b.real(scalar.OpSelect, left, b.real(scalar.OpSub, b.number(4), eighths), eighths)
	r := b.copySign(arcBuilder{b}.arcTangent(t, eighths), y)
	return b.orNaN(x, b.orNaN(y, r))
}

// finiteRatio returns two numbers with the ratio of 0 ≤ low ≤ high whose sum is finite and not 0: 1 for an infinity,
// and 0 and 1 for two zeros.
func (b arcBuilder) finiteRatio(low, high argument) (argument, argument) {
	const large = 0x1p1000
	infinite, one := b.number(math.Inf(1)), b.number(1)
	factor := b.choose(b.number(large), high, b.number(0x1p-60), one)
	low = b.choose(low, infinite, b.real(scalar.OpMul, low, factor), infinite)
	bounded := b.choose(high, infinite, b.real(scalar.OpMul, high, factor), one)
	low = b.choose(high, infinite, low, b.choose(low, infinite, b.number(0), one))
	return low, b.choose(b.number(0), high, bounded, one)
}

// arcSine returns whether |x| < ½, and asin|x| there, elsewhere half of acos|x|, which is not a number beyond 1.
func (b arcBuilder) arcSine(x argument) (near, v argument) {
	half := b.number(0.5)
	a := b.real(scalar.OpAbs, x)
	near = b.less(a, half)
	z := b.real(scalar.OpSelect, near, b.real(scalar.OpMul, a, a), b.real(scalar.OpSub, half, b.real(scalar.OpMul, a, half)))
	s := b.real(scalar.OpSelect, near, a, b.real(scalar.OpSqrt, z))
	return near, b.oddSeries(s, z, arcSineTerms)
}

func doubleAsin(b *builder, x argument) argument {
	near, v := arcBuilder{b}.arcSine(x)
	far := b.real(scalar.OpSub, b.number(piHalf), b.real(scalar.OpFma, v, b.number(2), b.number(-piHalfTail)))
	return b.copySign(b.real(scalar.OpSelect, near, v, far), x)
}

func doubleAcos(b *builder, x argument) argument {
	near, v := arcBuilder{b}.arcSine(x)
	angle := b.bits(scalar.OpOr, v, b.bits(scalar.OpAnd, x, b.sign())) // with the sign of x
	middle := b.real(scalar.OpSub, b.number(piHalf), b.real(scalar.OpSub, angle, b.number(piHalfTail)))
	twice := b.real(scalar.OpAdd, v, v)
	obtuse := b.real(scalar.OpSub, b.number(math.Pi), b.real(scalar.OpSub, twice, b.number(2*piHalfTail)))
	return b.real(scalar.OpSelect, near, middle, b.choose(x, b.number(0), obtuse, twice))
}

// halfExpm1 returns (e^a - 1)/2 and e^a/2 for a = |x|, which are finite where the hyperbolic functions are.
func (b *builder) halfExpm1(x argument) (less, full argument) {
	const beyond = 710.6 // e^710.6/2 overflows, a quarter of 2^k does not
	k, y := b.reduceExp(b.min(b.number(beyond), b.real(scalar.OpAbs, x)))
	p := b.scale2(b.number(0.25), k)
	less = b.real(scalar.OpFma, p, y, b.real(scalar.OpSub, p, b.number(0.25)))
	full = b.real(scalar.OpFma, p, y, p)
	return b.real(scalar.OpAdd, less, less), b.real(scalar.OpAdd, full, full)
}

// doubleSinh returns h + h/(2h + 1) for h = (e^a - 1)/2.
func doubleSinh(b *builder, x argument) argument {
	h, _ := b.halfExpm1(x)
	bounded := b.min(b.number(0x1p1000), h) // the quotient of larger numbers is ½
	d := b.real(scalar.OpFma, bounded, b.number(2), b.number(1))
	return b.orTiny(x, b.copySign(b.real(scalar.OpAdd, h, b.real(scalar.OpDiv, bounded, d)), x))
}

// doubleCosh returns f + 1/(4f) for f = e^a/2.
func doubleCosh(b *builder, x argument) argument {
	_, f := b.halfExpm1(x)
	return b.real(scalar.OpAdd, f, b.real(scalar.OpDiv, b.number(0.25), f))
}
