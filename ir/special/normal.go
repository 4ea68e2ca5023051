package special

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Erfcx returns the scaled complementary error function e^(x²)·erfc(x).
func Erfcx(b *ir.Builder, x ir.Value) ir.Value { return wide(b, x, erfcx) }

func erfcx(b *ir.Builder, x ir.Value) ir.Value {
	negative := ops.Lt(b, x, number(b, x, 0))
	a := ops.Select(b, negative, ops.Neg(b, x), x) // not abs, whose derivative at 0 is 0
	over := plus(b, a, 3)
	t := plus(b, ops.Neg(b, ops.Div(b, number(b, x, 6), over)), 1)
	y := ops.Div(b, chebyshev(b, t, erfcxSeries), over)
	safe := where(b, negative, x, 0)
	return ops.Select(b, negative, ops.Sub(b, scale(b, expSquare(b, safe, 1), 2), y), y)
}

// expSquare returns e^(by·x²), with the square as the exact square of x rounded to sixteenths and the
// rest, since an exponent's rounding error is the relative error of the result.
func expSquare(b *ir.Builder, x ir.Value, by float64) ir.Value {
	high := ops.StopGradient(b, scale(b, ops.Round(b, scale(b, ops.Clamp(b, x, number(b, x, -64), number(b, x, 64)), 16)), 1./16))
	rest := ops.Mul(b, ops.Sub(b, x, high), ops.Add(b, x, high))
	return ops.Mul(b, ops.Exp(b, scale(b, ops.Mul(b, high, high), by)), ops.Exp(b, scale(b, rest, by)))
}

// LogNdtr returns the logarithm of the standard normal distribution's cumulative probability of x.
func LogNdtr(b *ir.Builder, x ir.Value) ir.Value { return wide(b, x, logNdtr) }

func logNdtr(b *ir.Builder, x ir.Value) ir.Value {
	return withSlope(b, x, func(b *ir.Builder, x ir.Value) ir.Value {
		below := ops.Lt(b, x, number(b, x, -1))
		low, high := ops.Min(b, x, number(b, x, -1)), ops.Max(b, x, number(b, x, -1))
		tail := ops.Log(b, scale(b, erfcx(b, scale(b, low, -math.Sqrt2/2)), 0.5))
		tail = ops.Sub(b, tail, scale(b, ops.Mul(b, low, low), 0.5))
		tail = ops.Select(b, ops.IsInf(b, low), low, tail) // where it is −∞
		upper := ops.Log1p(b, ops.Neg(b, upperTail(b, high)))
		return ops.Select(b, below, tail, upper)
	}, millsInverse)
}

// upperTail returns the probability of more than x, for x from −1.
func upperTail(b *ir.Builder, x ir.Value) ir.Value {
	finite := ops.Min(b, x, number(b, x, 60)) // where it is 0
	return ops.Mul(b, scale(b, erfcx(b, scale(b, finite, math.Sqrt2/2)), 0.5), expSquare(b, finite, -0.5))
}

// millsInverse returns the density of the standard normal distribution divided by its cumulative
// probability.
func millsInverse(b *ir.Builder, x ir.Value) ir.Value {
	zero := number(b, x, 0)
	below := ops.Lt(b, x, zero)
	low, high := where(b, below, x, 0), ops.Select(b, below, zero, x) // a maximum's derivative at 0 is 1/2
	tail := ops.Div(b, number(b, x, math.Sqrt(2/math.Pi)), erfcx(b, scale(b, low, -math.Sqrt2/2)))
	upper := ops.Div(b, scale(b, expSquare(b, ops.Min(b, high, number(b, x, 60)), -0.5), 1/math.Sqrt(2*math.Pi)), plus(b, ops.Neg(b, upperTail(b, high)), 1))
	return ops.Select(b, below, tail, upper)
}

// Ndtri returns the quantile of the standard normal distribution, the x where [LogNdtr] is log p:
// −∞ at 0, ∞ at 1.
func Ndtri(b *ir.Builder, p ir.Value) ir.Value {
	return wide(b, p, func(b *ir.Builder, p ir.Value) ir.Value {
		return withSlope(b, p, ndtri, func(b *ir.Builder, p ir.Value) ir.Value {
			x := ndtri(b, p) // Ndtri here would be differentiated without end
			edge := ops.IsInf(b, x)
			slope := scale(b, expSquare(b, where(b, ops.Not(b, edge), x, 0), 0.5), math.Sqrt(2*math.Pi))
			return ops.Select(b, edge, ops.Abs(b, x), slope)
		})
	})
}

// ndtri is √2·erfinv(2p − 1) in the centre; in the tails it solves for the logarithm of p by Newton's
// method from the approximation 26.2.23 of Abramowitz and Stegun, Handbook of Mathematical Functions.
func ndtri(b *ir.Builder, p ir.Value) ir.Value {
	one := number(b, p, 1)
	upper := ops.Gt(b, p, number(b, p, 0.5))
	tail := ops.Select(b, upper, ops.Sub(b, one, p), p)
	isTail := ops.And(b, ops.Lt(b, tail, number(b, p, 0.125)), ops.Gt(b, tail, number(b, p, 0)))
	goal := ops.Log(b, where(b, isTail, tail, 0.0625))
	t := ops.Sqrt(b, scale(b, goal, -2))
	x := ops.Sub(b, ops.Div(b, horner(b, t, 2.515517, 0.802853, 0.010328), horner(b, t, 1, 1.432788, 0.189269, 0.001308)), t)
	for range 3 {
		x = ops.Sub(b, x, ops.Div(b, ops.Sub(b, logNdtr(b, x), goal), millsInverse(b, x)))
	}
	centre := scale(b, ops.Erfinv(b, ops.Sub(b, ops.Add(b, p, p), one)), math.Sqrt2)
	centre = where(b, ops.Ge(b, p, number(b, p, 0)), centre, math.NaN()) // 2p − 1 is −1 just below 0
	return ops.Select(b, isTail, ops.Select(b, upper, ops.Neg(b, x), x), centre)
}

// horner returns c[0] + c[1]·x + c[2]·x² + …
func horner(b *ir.Builder, x ir.Value, c ...float64) ir.Value {
	p := number(b, x, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = plus(b, ops.Mul(b, p, x), c[i])
	}
	return p
}
