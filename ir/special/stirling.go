package special

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// halfLogTwoPi is ½·log 2π, the constant of Stirling's formula.
const halfLogTwoPi = 0.91893853320467274178032973640561764

// StirlingRemainder returns the remainder of Stirling's formula, log Γ(a) − (a−½)·log a + a − ½·log 2π, for a > 0:
// about 1/(12·a) (DLMF 5.11.1). With it the terms of densities that grow with their parameters cancel before
// they are computed; see Loader, Fast and Accurate Computation of Binomial Probabilities (2000).
func StirlingRemainder(b *ir.Builder, a ir.Value) ir.Value {
	return wide(b, a, func(b *ir.Builder, a ir.Value) ir.Value {
		return withSlope(b, a, remainder, remainderSlope)
	})
}

// StirlingRemainderSlope returns the derivative of [StirlingRemainder], ψ(a) − log a + 1/(2·a).
func StirlingRemainderSlope(b *ir.Builder, a ir.Value) ir.Value { return wide(b, a, remainderSlope) }

// fromTwo returns a condition, whether a is 2 or greater, and a where it holds and where it does not.
func fromTwo(b *ir.Builder, a ir.Value) (isLarge, large, small ir.Value) {
	isLarge = ops.Ge(b, a, number(b, a, 2))
	return isLarge, where(b, isLarge, a, 2), ops.Select(b, isLarge, number(b, a, 1), a)
}

// lifted adds to f(a), or to f(a+2) for a below 2, the differences f(x) − f(x+1) at a and a+1.
func lifted(b *ir.Builder, a ir.Value, f, difference func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
	isLarge, _, small := fromTwo(b, a)
	y := f(b, ops.Select(b, isLarge, a, plus(b, small, 2)))
	below := ops.Add(b, difference(b, small), difference(b, plus(b, small, 1)))
	y = ops.Add(b, y, ops.Select(b, isLarge, number(b, a, 0), below))
	return where(b, ops.Gt(b, a, number(b, a, 0)), y, math.NaN())
}

// remainder has differences (x+½)·log(1 + 1/x) − 1.
func remainder(b *ir.Builder, a ir.Value) ir.Value {
	return lifted(b, a, largeRemainder, func(b *ir.Builder, x ir.Value) ir.Value {
		return plus(b, ops.Mul(b, plus(b, x, 0.5), ops.Log1p(b, ops.Reciprocal(b, x))), -1)
	})
}

func remainderSlope(b *ir.Builder, a ir.Value) ir.Value {
	return lifted(b, a, largeSlope, func(b *ir.Builder, x ir.Value) ir.Value {
		over := ops.Reciprocal(b, x)
		return ops.Sub(b, ops.Log1p(b, over), ops.Mul(b, over, ops.Div(b, plus(b, x, 0.5), plus(b, x, 1))))
	})
}

// largeRemainder is StirlingRemainder for a from 2.
func largeRemainder(b *ir.Builder, a ir.Value) ir.Value {
	return ops.Div(b, chebyshev(b, besideTwo(b, a), stirlingSeries), a)
}

// largeSlope is StirlingRemainderSlope for a from 2.
func largeSlope(b *ir.Builder, a ir.Value) ir.Value {
	over := ops.Div(b, number(b, a, 1), a)
	return ops.Neg(b, ops.Mul(b, ops.Mul(b, over, over), chebyshev(b, besideTwo(b, a), stirlingSlopes)))
}

// besideTwo maps a from 2 to the interval of a Chebyshev series.
func besideTwo(b *ir.Builder, a ir.Value) ir.Value {
	return plus(b, ops.Neg(b, ops.Div(b, number(b, a, 4), a)), 1)
}

// GammaEntropy returns the entropy of the gamma distribution of shape a > 0 and rate 1, a + log Γ(a) +
// (1−a)·ψ(a). Entropies of Student's, beta and Dirichlet distributions are sums of it, whose terms do not
// cancel for large parameters.
func GammaEntropy(b *ir.Builder, a ir.Value) ir.Value {
	return wide(b, a, func(b *ir.Builder, a ir.Value) ir.Value {
		isLarge, large, small := fromTwo(b, a)
		direct := ops.Add(b, ops.Add(b, small, ops.Lgamma(b, small)), ops.Mul(b, plus(b, ops.Neg(b, small), 1), ops.Digamma(b, small)))
		over := ops.Div(b, number(b, a, 1), large)
		y := plus(b, scale(b, ops.Sub(b, ops.Log(b, large), over), 0.5), 0.5+halfLogTwoPi)
		slope := ops.Mul(b, plus(b, ops.Neg(b, large), 1), largeSlope(b, large))
		return ops.Select(b, isLarge, ops.Add(b, y, ops.Add(b, slope, largeRemainder(b, large))), direct)
	})
}

// LogBeta returns the logarithm of the beta function B(x, y) = Γ(x)·Γ(y)/Γ(x+y), for x and y positive.
func LogBeta(b *ir.Builder, x, y ir.Value) ir.Value {
	return wideOfTwo(b, x, y, func(b *ir.Builder, x, y ir.Value) ir.Value {
		swapped := ops.Gt(b, x, y)
		return logBeta(b, ops.Select(b, swapped, y, x), ops.Select(b, swapped, x, y))
	})
}

// logBeta is LogBeta of x up to y. From 8 on the large terms of Stirling's series cancel before they are
// computed (DiDonato and Morris, Significant Digit Computation of the Incomplete Beta Function Ratios, 1992).
func logBeta(b *ir.Builder, x, y ir.Value) ir.Value {
	eight := number(b, x, 8)
	isLarge, areLarge := ops.Ge(b, y, eight), ops.Ge(b, x, eight)
	small, large := where(b, areLarge, x, 8), where(b, isLarge, y, 8)
	low := ops.Select(b, isLarge, number(b, y, 1), y)
	none := ops.Sub(b, ops.Add(b, ops.Lgamma(b, x), ops.Lgamma(b, low)), ops.Lgamma(b, ops.Add(b, x, low)))

	part := func(x ir.Value) ir.Value { return ops.Div(b, x, ops.Add(b, x, large)) }
	rest := ops.Sub(b, largeRemainder(b, large), largeRemainder(b, ops.Add(b, x, large)))
	one := ops.Add(b, ops.Sub(b, x, ops.Mul(b, x, ops.Log(b, ops.Add(b, x, large)))), rest)
	one = ops.Add(b, one, ops.Mul(b, plus(b, large, -0.5), ops.Log1p(b, ops.Neg(b, part(x)))))
	one = ops.Add(b, one, ops.Lgamma(b, where(b, ops.Not(b, areLarge), x, 1)))

	rest = ops.Sub(b, ops.Add(b, largeRemainder(b, small), largeRemainder(b, large)), largeRemainder(b, ops.Add(b, small, large)))
	both := ops.Add(b, ops.Mul(b, plus(b, small, -0.5), ops.Log(b, part(small))), ops.Mul(b, large, ops.Log1p(b, ops.Neg(b, part(small)))))
	both = ops.Add(b, ops.Sub(b, both, scale(b, ops.Log(b, large), 0.5)), plus(b, rest, halfLogTwoPi))
	return ops.Select(b, areLarge, both, ops.Select(b, isLarge, one, none))
}
