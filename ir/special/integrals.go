package special

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// gamma is Euler's constant.
const gamma = 0.57721566490153286060651209008240243

// E1 returns the exponential integral ∫ e⁻ᵗ/t dt from x to ∞, for x > 0: ∞ at 0.
func E1(b *ir.Builder, x ir.Value) ir.Value {
	return wide(b, x, func(b *ir.Builder, x ir.Value) ir.Value {
		return withSlope(b, x, e1, func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Neg(b, ops.Div(b, ops.Exp(b, ops.Neg(b, x)), x))
		})
	})
}

func e1(b *ir.Builder, x ir.Value) ir.Value {
	one := number(b, x, 1)
	isNear := ops.Le(b, x, one)
	low := ops.Min(b, x, one)
	near := ops.Mul(b, low, chebyshev(b, plus(b, scale(b, low, 2), -1), einSeries))
	near = ops.Sub(b, plus(b, near, -gamma), ops.Log(b, low))
	high := plus(b, ops.Max(b, x, one), 1)
	far := chebyshev(b, plus(b, ops.Neg(b, ops.Div(b, number(b, x, 4), high)), 1), e1Series)
	far = ops.Div(b, ops.Mul(b, far, ops.Exp(b, ops.Neg(b, ops.Max(b, x, one)))), high)
	return ops.Select(b, isNear, near, far)
}

// Ei returns the exponential integral −∫ e⁻ᵗ/t dt from −x to ∞, as its principal value for x > 0: −∞
// at 0.
func Ei(b *ir.Builder, x ir.Value) ir.Value {
	return wide(b, x, func(b *ir.Builder, x ir.Value) ir.Value {
		return withSlope(b, x, ei, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Div(b, ops.Exp(b, x), x) })
	})
}

func ei(b *ir.Builder, x ir.Value) ir.Value {
	positive := ops.Gt(b, x, number(b, x, 0))
	y := where(b, positive, x, 1)
	low := ops.Min(b, y, number(b, x, 8))
	near := ops.Mul(b, ops.Mul(b, low, ops.Exp(b, low)), chebyshev(b, plus(b, scale(b, low, 0.25), -1), eiSeries))
	near = ops.Add(b, near, plus(b, ops.Log(b, low), gamma))
	part := func(from, to, by, minus float64, c []float64) ir.Value {
		at := ops.Clamp(b, y, number(b, x, from), number(b, x, to))
		return chebyshev(b, plus(b, ops.Div(b, number(b, x, by), at), -minus), c)
	}
	below := func(bound float64) ir.Value { return ops.Lt(b, y, number(b, x, bound)) }
	far := ops.Select(b, below(16), part(8, 16, 32, 3, eiMiddle), ops.Select(b, below(32), part(16, 32, 64, 3, eiFar), part(32, math.Inf(1), 64, 1, eiFarthest)))
	far = ops.Mul(b, ops.Exp(b, y), ops.Div(b, far, y))
	far = ops.Select(b, ops.IsInf(b, y), y, far) // where it is ∞
	right := ops.Select(b, below(8), near, far)
	return ops.Select(b, positive, right, ops.Neg(b, e1(b, ops.Neg(b, ops.Select(b, positive, number(b, x, -1), x)))))
}

// J0 returns the Bessel function of the first kind and order 0.
func J0(b *ir.Builder, x ir.Value) ir.Value {
	return wide(b, x, func(b *ir.Builder, x ir.Value) ir.Value {
		return withSlope(b, x, j0, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Neg(b, j1(b, x)) })
	})
}

// J1 returns the Bessel function of the first kind and order 1.
func J1(b *ir.Builder, x ir.Value) ir.Value {
	return wide(b, x, func(b *ir.Builder, x ir.Value) ir.Value {
		return withSlope(b, x, j1, func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sub(b, j0(b, x), j1Over(b, x)) })
	})
}

func j0(b *ir.Builder, x ir.Value) ir.Value {
	a := ops.Abs(b, x)
	far := func(away ir.Value) ir.Value {
		p, q := hankel(b, away, p0Far, q0Far)
		sin, cos := ops.Sin(b, away), ops.Cos(b, away) // of w + π/4
		return ops.Sub(b, ops.Mul(b, p, ops.Add(b, cos, sin)), ops.Mul(b, q, ops.Sub(b, sin, cos)))
	}
	return bessel(b, a, chebyshev(b, fromSquare(b, x), j0Near), far)
}

func j1(b *ir.Builder, x ir.Value) ir.Value {
	a := ops.Abs(b, x)
	far := func(away ir.Value) ir.Value {
		p, q := hankel(b, away, p1Far, q1Far)
		sin, cos := ops.Sin(b, away), ops.Cos(b, away) // of w + 3π/4
		return ops.Add(b, ops.Mul(b, p, ops.Sub(b, sin, cos)), ops.Mul(b, q, ops.Add(b, sin, cos)))
	}
	near := ops.Mul(b, upTo8(b, x), chebyshev(b, fromSquare(b, x), j1Near))
	return bessel(b, a, near, func(away ir.Value) ir.Value { return ops.Mul(b, ops.Sign(b, x), far(away)) })
}

// j1Over returns J₁(x)/x, 1/2 at 0.
func j1Over(b *ir.Builder, x ir.Value) ir.Value {
	far := ops.Gt(b, ops.Abs(b, x), number(b, x, 8))
	away := where(b, far, x, 8)
	return ops.Select(b, far, ops.Div(b, j1(b, away), away), chebyshev(b, fromSquare(b, x), j1Near))
}

// upTo8 returns x for |x| up to 8, else 8. Its derivative at 8 is 1, where a minimum's is 1/2.
func upTo8(b *ir.Builder, x ir.Value) ir.Value {
	return where(b, ops.Le(b, ops.Abs(b, x), number(b, x, 8)), x, 8)
}

// fromSquare returns x²/32 − 1 for |x| up to 8, of x itself, as |x| has a kink at 0.
func fromSquare(b *ir.Builder, x ir.Value) ir.Value {
	low := upTo8(b, x)
	return plus(b, scale(b, ops.Mul(b, low, low), 1./32), -1)
}

// hankel returns P and Q of Hankel's form J = √(2/(πx))·(P·cos w − Q·sin w) for x from 8.
func hankel(b *ir.Builder, x ir.Value, p, q []float64) (ir.Value, ir.Value) {
	over := ops.Div(b, number(b, x, 8), x)
	t := plus(b, scale(b, ops.Mul(b, over, over), 2), -1)
	return chebyshev(b, t, p), ops.Div(b, chebyshev(b, t, q), x)
}

// bessel returns near up to 8, and then far/√(πx), which is 0 at ∞.
func bessel(b *ir.Builder, a, near ir.Value, far func(away ir.Value) ir.Value) ir.Value {
	isNear := ops.Le(b, a, number(b, a, 8))
	infinite := ops.IsInf(b, a)
	away := where(b, ops.Not(b, ops.Or(b, isNear, infinite)), a, 8)
	y := ops.Mul(b, far(away), ops.Rsqrt(b, scale(b, away, math.Pi)))
	return ops.Select(b, isNear, near, ops.Select(b, infinite, number(b, a, 0), y))
}

// evenBernoulli are B₂ₖ/(2k)! for k from 1.
var evenBernoulli = []float64{
	1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160, -691. / 1307674368000, 1. / 74724249600,
}

// Zeta returns Hurwitz's zeta function Σ (q + k)⁻ˢ over k from 0, for finite s > 1 and q > 0; with q = 1 it is
// Riemann's. It is ∞ where s is 1. It has derivatives by both operands.
func Zeta(b *ir.Builder, s, q ir.Value) ir.Value {
	return wideOfTwo(b, s, q, zeta)
}

// zeta sums twelve terms and the rest by the Euler–Maclaurin formula.
func zeta(b *ir.Builder, s, q ir.Value) ir.Value {
	const terms = 12
	one, zero := number(b, s, 1), number(b, s, 0)
	valid := ops.And(b, ops.And(b, ops.Gt(b, s, one), ops.IsFinite(b, s)), ops.Gt(b, q, zero))
	pole := ops.And(b, ops.Eq(b, s, one), ops.Gt(b, q, zero))
	s, q = where(b, valid, s, 2), where(b, valid, q, 1)
	power := func(x ir.Value) ir.Value { return ops.Pow(b, x, ops.Neg(b, s)) }
	z := plus(b, q, terms)
	base, above := power(z), ops.Sub(b, s, one)
	sum := ops.Add(b, ops.Div(b, ops.Pow(b, z, ops.Neg(b, above)), above), scale(b, base, 0.5))
	last := ops.Div(b, ops.Mul(b, s, base), z)
	for j, bernoulli := range evenBernoulli {
		sum = ops.Add(b, sum, scale(b, last, bernoulli))
		next := ops.Mul(b, plus(b, s, float64(2*j+1)), plus(b, s, float64(2*j+2)))
		last = ops.Div(b, ops.Mul(b, last, next), ops.Mul(b, z, z))
	}
	for k := terms - 1; k >= 0; k-- {
		sum = ops.Add(b, sum, power(plus(b, q, float64(k))))
	}
	return ops.Select(b, valid, sum, where(b, ops.Not(b, pole), number(b, s, math.NaN()), math.Inf(1)))
}
