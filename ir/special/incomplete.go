package special

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Gammainc returns the regularized lower incomplete gamma function P(a, x), the integral of
// tᵃ⁻¹·e⁻ᵗ/Γ(a) from 0 to x, for a > 0 and x ≥ 0. It has derivatives by both operands. For a above
// 40,000 in f64 and 100,000 in f32 results near x = a are inexact.
func Gammainc(b *ir.Builder, a, x ir.Value) ir.Value { return incompleteGamma(b, a, x, false) }

// Gammaincc returns 1 − [Gammainc], the integral from x to ∞, accurate in its tail. Where x and a are
// below 1 it has the absolute error of the precision.
func Gammaincc(b *ir.Builder, a, x ir.Value) ir.Value { return incompleteGamma(b, a, x, true) }

func incompleteGamma(b *ir.Builder, a, x ir.Value, upper bool) ir.Value {
	sign := 1.
	if upper {
		sign = -1
	}
	return wideOf(b, []ir.Value{a, x}, func(b *ir.Builder, in []ir.Value) ir.Value {
		return withSlopes(b, in,
			func(b *ir.Builder, in []ir.Value) ir.Value { return gammaOf(b, in[0], in[1], upper, 0).v },
			func(b *ir.Builder, in []ir.Value) []ir.Value {
				a, x := in[0], in[1]
				density := ops.Exp(b, ops.Sub(b, ops.Sub(b, ops.XLogY(b, plus(b, a, -1), x), x), ops.Lgamma(b, a)))
				return []ir.Value{gammaOf(b, a, x, upper, 1).d[0], scale(b, density, sign)}
			})
	})
}

// gammaOf returns P, or Q with upper, and with parameters 1 its derivative by a: by the series of
// P below x = a + 1, by the continued fraction of Q above (DLMF 8.11.4 and 8.9.2).
func gammaOf(b *ir.Builder, a, x ir.Value, upper bool, parameters int) dual {
	zero, one := number(b, a, 0), number(b, a, 1)
	valid := ops.And(b, ops.Gt(b, a, zero), ops.Ge(b, x, zero))
	inside := ops.And(b, ops.And(b, valid, ops.Gt(b, x, zero)), ops.And(b, ops.IsFinite(b, x), ops.IsFinite(b, a)))
	safe, at := where(b, inside, a, 1), where(b, inside, x, 1)
	low := ops.Lt(b, at, ops.Add(b, safe, one))
	front := gammaFront(b, safe, at, parameters)

	p := front.times(b, gammaSeries(b, safe, where(b, low, at, 0), parameters))
	high := ops.Not(b, low)
	h := gammaFraction(b, where(b, high, safe, 1), where(b, high, at, 2), parameters)
	q := front.times(b, parameter(b, safe, 0, parameters)).times(b, h)
	if upper {
		p = complement(b, p)
	} else {
		q = complement(b, q)
	}
	edge := ops.Select(b, ops.Or(b, ops.Eq(b, x, zero), ops.IsInf(b, a)), zero, one) // P at 0 and ∞
	if upper {
		edge = ops.Sub(b, one, edge)
	}
	edge = where(b, valid, edge, math.NaN())
	edge = ops.Select(b, ops.And(b, ops.IsInf(b, a), ops.IsInf(b, x)), number(b, a, math.NaN()), edge)
	return choose(b, inside, choose(b, low, p, q), constant(b, edge, parameters))
}

// complement returns 1 − x.
func complement(b *ir.Builder, x dual) dual {
	return x.scaled(b, number(b, x.v, -1)).shifted(b, number(b, x.v, 1))
}

func choose(b *ir.Builder, condition ir.Value, x, y dual) dual {
	return dual{ops.Select(b, condition, x.v, y.v), zip(x, y, func(dx, dy ir.Value) ir.Value { return ops.Select(b, condition, dx, dy) })}
}

// gammaFront returns xᵃ·e⁻ˣ/Γ(a+1). From a = 8 on the large terms of the exponent cancel before they are
// computed: with u = x/a − 1 it is a·(log(1 + u) − u) without those of Stirling's series.
func gammaFront(b *ir.Builder, a, x ir.Value, parameters int) dual {
	eight := number(b, a, 8)
	few := ops.Lt(b, a, eight)
	low, many := where(b, few, a, 8), ops.Select(b, few, eight, a) // a maximum's derivative at 8 is 1/2
	direct := ops.Mul(b, ops.Mul(b, ops.Pow(b, x, low), ops.Exp(b, ops.Neg(b, x))), ops.Exp(b, ops.Neg(b, ops.Lgamma(b, plus(b, low, 1)))))
	u := ops.Div(b, ops.Sub(b, x, many), many)
	near := ops.Lt(b, ops.Abs(b, u), number(b, a, 0.5))
	log := ops.Select(b, near, ops.Log1p(b, where(b, near, u, 0)), ops.Log(b, ops.Div(b, x, many)))
	y := ops.Exp(b, ops.Sub(b, ops.Mul(b, many, ops.Sub(b, log, u)), largeRemainder(b, many)))
	y = ops.Mul(b, y, ops.Rsqrt(b, scale(b, many, 2*math.Pi)))
	front := constant(b, ops.Select(b, few, direct, y), parameters)
	if parameters > 0 {
		front.d[0] = ops.Mul(b, front.v, ops.Sub(b, ops.Log(b, x), ops.Digamma(b, plus(b, a, 1))))
	}
	return front
}

// gammaSeries returns Σ xᵏ/((a+1)…(a+k)).
func gammaSeries(b *ir.Builder, a, x ir.Value, parameters int) dual {
	one := constant(b, number(b, a, 1), parameters)
	consts := []dual{parameter(b, a, 0, parameters), constant(b, x, parameters)}
	return converge(b, consts, []dual{one, one}, func(b *ir.Builder, consts, state []dual, k ir.Value) []dual {
		term := state[1].times(b, consts[1].over(b, consts[0].shifted(b, k)))
		return []dual{state[0].plus(b, term), term}
	})
}

// gammaFraction returns 1/(x+1−a − 1·(1−a)/(x+3−a − 2·(2−a)/(x+5−a − …))).
func gammaFraction(b *ir.Builder, a, x ir.Value, parameters int) dual {
	minusA := parameter(b, a, 0, parameters).scaled(b, number(b, a, -1))
	d := constant(b, number(b, a, 1), parameters).over(b, minusA.shifted(b, plus(b, x, 1)))
	start := fraction{d, constant(b, number(b, a, 1/a.DType().Epsilon()/a.DType().Epsilon()), parameters), d}
	return converge(b, []dual{minusA, constant(b, x, parameters)}, start.state(), func(b *ir.Builder, consts, state []dual, k ir.Value) []dual {
		minusA, x := consts[0], consts[1]
		over := minusA.shifted(b, k).scaled(b, ops.Neg(b, k))
		under := minusA.shifted(b, ops.Add(b, x.v, plus(b, ops.Add(b, k, k), 1)))
		return fraction{state[0], state[1], state[2]}.step(b, over, under).state()
	})
}

// Betainc returns the regularized incomplete beta function, the integral of t^(a−1)·(1−t)^(c−1)/B(a, c)
// from 0 to x, for a > 0, c > 0 and x in [0, 1]. It has derivatives by all operands.
func Betainc(b *ir.Builder, a, c, x ir.Value) ir.Value {
	return wideOf(b, []ir.Value{a, c, x}, func(b *ir.Builder, in []ir.Value) ir.Value {
		return withSlopes(b, in,
			func(b *ir.Builder, in []ir.Value) ir.Value { return betaOf(b, in[0], in[1], in[2], 0).v },
			func(b *ir.Builder, in []ir.Value) []ir.Value {
				a, c, x := in[0], in[1], in[2]
				exponent := ops.Add(b, ops.XLogY(b, plus(b, a, -1), x), ops.XLog1pY(b, plus(b, c, -1), ops.Neg(b, x)))
				by := betaOf(b, a, c, x, 2)
				return []ir.Value{by.d[0], by.d[1], ops.Exp(b, ops.Sub(b, exponent, LogBeta(b, a, c)))}
			})
	})
}

// betaOf returns Betainc, and with parameters 2 its derivatives by a and c: by the continued fraction of DLMF
// 8.17.22 on the side of the mean where that converges fast.
func betaOf(b *ir.Builder, a, c, x ir.Value, parameters int) dual {
	zero, one := number(b, a, 0), number(b, a, 1)
	valid := ops.And(b, ops.And(b, ops.Gt(b, a, zero), ops.Gt(b, c, zero)), ops.And(b, ops.Ge(b, x, zero), ops.Le(b, x, one)))
	inside := ops.And(b, valid, ops.And(b, ops.Gt(b, x, zero), ops.Lt(b, x, one)))
	inside = ops.And(b, inside, ops.IsFinite(b, ops.Add(b, a, c)))
	certain := ops.Or(b, ops.Eq(b, x, one), ops.And(b, ops.IsInf(b, c), ops.Gt(b, x, zero)))
	known := ops.And(b, valid, ops.Not(b, ops.And(b, ops.IsInf(b, a), ops.IsInf(b, c))))
	edge := where(b, known, ops.Select(b, certain, one, zero), math.NaN())
	a, c, at := where(b, inside, a, 1), where(b, inside, c, 1), where(b, inside, x, 0.5)
	rest := ops.Sub(b, one, at)
	swapped := ops.Gt(b, ops.Mul(b, at, plus(b, ops.Add(b, a, c), 2)), plus(b, a, 1))
	swap := func(x, y ir.Value) (ir.Value, ir.Value) {
		return ops.Select(b, swapped, y, x), ops.Select(b, swapped, x, y)
	}
	p, q := swap(a, c)
	low, high := swap(at, rest)
	logs := [2]ir.Value{ops.Log(b, low), ops.Log(b, high)}
	logs[1] = ops.Select(b, swapped, logs[1], ops.Log1p(b, ops.Neg(b, low)))
	front := constant(b, ops.Exp(b, ops.Sub(b, ops.Add(b, ops.Mul(b, p, logs[0]), ops.Mul(b, q, logs[1])), LogBeta(b, p, q))), parameters)
	for i := range parameters {
		of := [2]ir.Value{p, q}[i]
		slope := ops.Sub(b, ops.Add(b, logs[i], ops.Digamma(b, ops.Add(b, p, q))), ops.Digamma(b, of))
		front.d[i] = ops.Mul(b, front.v, slope)
	}
	y := front.over(b, parameter(b, p, 0, parameters)).times(b, betaFraction(b, p, q, low, parameters))
	other := complement(b, y)
	if parameters == 2 {
		other.d[0], other.d[1] = other.d[1], other.d[0]
	}
	return choose(b, inside, choose(b, swapped, other, y), constant(b, edge, parameters))
}

// betaFraction returns the continued fraction 1/(1 + d₁/(1 + d₂/(1 + …))).
func betaFraction(b *ir.Builder, p, q, x ir.Value, parameters int) dual {
	one := constant(b, number(b, x, 1), parameters)
	consts := []dual{parameter(b, p, 0, parameters), parameter(b, q, 1, parameters), constant(b, x, parameters)}
	first := consts[0].plus(b, consts[1]).times(b, consts[2]).over(b, consts[0].shifted(b, one.v)).scaled(b, number(b, x, -1))
	d := one.over(b, first.plus(b, one))
	return converge(b, consts, fraction{d, one, d}.state(), func(b *ir.Builder, consts, state []dual, k ir.Value) []dual {
		p, q, x := consts[0], consts[1], consts[2]
		one := constant(b, number(b, x.v, 1), parameters)
		twice := ops.Add(b, k, k)
		middle := p.shifted(b, twice) // p + 2k
		even := q.shifted(b, ops.Neg(b, k)).times(b, x).scaled(b, k).over(b, middle.times(b, middle.shifted(b, number(b, k, -1))))
		odd := p.shifted(b, k).times(b, p.plus(b, q).shifted(b, k)).times(b, x).scaled(b, number(b, k, -1))
		odd = odd.over(b, middle.times(b, middle.shifted(b, number(b, k, 1))))
		return fraction{state[0], state[1], state[2]}.step(b, even, one).step(b, odd, one).state()
	})
}

// GammaQuantileSlope returns the derivative by a of the x at which [Gammainc] has a fixed value. It is
// that of a number of the gamma distribution by its shape, after Figurnov, Mohamed and Mnih, Implicit
// Reparameterization Gradients (2018). It is 0 where x is 0.
func GammaQuantileSlope(b *ir.Builder, a, x ir.Value) ir.Value {
	return wideOf(b, []ir.Value{a, x}, func(b *ir.Builder, in []ir.Value) ir.Value {
		a, x := in[0], in[1]
		positive := ops.Gt(b, x, number(b, x, 0))
		x = where(b, positive, x, 1)
		density := ops.Div(b, ops.Mul(b, gammaFront(b, a, x, 0).v, a), x)
		return where(b, positive, ops.Neg(b, ops.Div(b, gammaOf(b, a, x, false, 1).d[0], density)), 0)
	})
}
