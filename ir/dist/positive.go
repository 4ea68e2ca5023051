package dist

import (
	"math"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
)

// Exponential is the distribution with density Rate·e^(−Rate·x).
type Exponential struct{ Rate ir.Value }

// Gamma is the gamma distribution, with density proportional to x^(Shape−1)·e^(−Rate·x).
type Gamma struct{ Shape, Rate ir.Value }

// Beta is the beta distribution, with density proportional to x^(A−1)·(1−x)^(B−1).
type Beta struct{ A, B ir.Value }

// Dirichlet is the distribution of vectors of positive numbers with sum 1, along the last axis, with density
// proportional to the product of xᵢ^(Concentrationᵢ−1).
type Dirichlet struct{ Concentration ir.Value }

// orders is how many times numbers of the gamma distribution can be differentiated.
const orders = 2

// standardGamma returns numbers of the gamma distribution with the given shapes and rate 1, which have
// implicit derivatives.
func standardGamma(b *ir.Builder, key, shape ir.Value) ir.Value {
	return implicit(b, key, shape, orders,
		func(b *ir.Builder, key, shape ir.Value) ir.Value { return ops.Gamma(b, key, shape) }, special.GammaQuantileSlope)
}

// implicit returns numbers drawn with a shape, whose derivative by it is slope of the shape and the number. Of
// the numbers in slope it takes one derivative less; those of the last order have none, and refuse it.
func implicit(b *ir.Builder, key, shape ir.Value, orders int, draw, slope func(b *ir.Builder, x, y ir.Value) ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	if orders == 0 {
		return draw(b, key, shape)
	}
	return autodiff.CustomJVP(b, []ir.Value{shape, key},
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{draw(b, in[1], in[0])} },
		func(b *ir.Builder, in, t []ir.Value) []ir.Value {
			x := implicit(b, in[1], in[0], orders-1, draw, slope)
			return []ir.Value{ops.Mul(b, t[0], slope(b, in[0], x))}
		})[0]
}

// logGamma returns logarithms of standardGamma's numbers, since those of small shapes underflow, for
// shapes of f32 or f64.
func logGamma(b *ir.Builder, key, shape ir.Value) ir.Value {
	return implicit(b, key, shape, orders, drawLogGamma, logSlope)
}

// drawLogGamma draws a number of shape below 1 as one of the shape plus 1, multiplied by u^(1/shape).
func drawLogGamma(b *ir.Builder, key, shape ir.Value) ir.Value {
	small := ops.Lt(b, shape, number(b, shape, 1))
	first, second := keys(b, key)
	x := ops.Log(b, ops.Gamma(b, first, ops.Select(b, small, plus(b, shape, 1), shape)))
	rest := ops.Div(b, ops.Log(b, uniform(b, second, shape)), where(b, small, shape, 1))
	return ops.Select(b, small, ops.Add(b, x, rest), x)
}

// logSlope returns the derivative by the shape of the y with Gammainc(shape, eʸ) fixed. For small eʸ that
// probability is e^(shape·y)/Γ(shape+1).
func logSlope(b *ir.Builder, shape, y ir.Value) ir.Value {
	known := ops.Gt(b, y, number(b, y, math.Log(y.DType().Epsilon())))
	x := ops.Exp(b, where(b, known, y, 0))
	near := ops.Div(b, special.GammaQuantileSlope(b, shape, x), x)
	far := ops.Div(b, ops.Sub(b, ops.Digamma(b, plus(b, shape, 1)), where(b, ops.Not(b, known), y, 0)), shape)
	return ops.Select(b, known, near, far)
}

// Sample draws numbers.
func (d Exponential) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	rate := drawn(b, shape, d.Rate)[0]
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Div(b, ops.Exponential(b, key, rate.DType(), rate.Shape()...), rate)
}

// LogProb returns the logarithm of the density.
func (d Exponential) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	return except(b, ops.Lt(b, x, number(b, x, 0)), ops.Sub(b, ops.Log(b, d.Rate), ops.Mul(b, d.Rate, x)))
}

// Entropy returns 1 − log Rate.
func (d Exponential) Entropy(b *ir.Builder) ir.Value { return oneMinus(b, ops.Log(b, d.Rate)) }

// Mean returns 1/Rate.
func (d Exponential) Mean(b *ir.Builder) ir.Value { return ops.Reciprocal(b, d.Rate) }

// Variance returns 1/Rate².
func (d Exponential) Variance(b *ir.Builder) ir.Value {
	return ops.Square(b, ops.Reciprocal(b, d.Rate))
}

// Sample draws numbers.
func (d Gamma) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	p := drawn(b, shape, d.Shape, d.Rate)
	return ops.Div(b, standardGamma(b, key, p[0]), p[1])
}

// LogProb returns the logarithm of the density.
func (d Gamma) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	p := argument.Broadcast(b, d.Shape, d.Rate, x)
	if b.Err() != nil {
		return ir.Value{}
	}
	a, rate, x := p[0], p[1], p[2]
	y := ops.Add(b, ops.Mul(b, a, ops.Log(b, rate)), ops.XLogY(b, plus(b, a, -1), x))
	y = ops.Sub(b, ops.Sub(b, y, ops.Mul(b, rate, x)), ops.Lgamma(b, a))

	// From shape 2 on it is the density of Poisson at Shape − 1, whose terms do not cancel, times Rate.
	k, mean := plus(b, a, -1), ops.Mul(b, rate, x)
	isLarge := ops.And(b, ops.Ge(b, k, number(b, k, 1)), ops.Gt(b, mean, number(b, mean, 0)))
	k, mean = where(b, isLarge, k, 1), where(b, isLarge, mean, 1)
	large := ops.Sub(b, ops.Log(b, rate), ops.Add(b, special.KLDiv(b, k, mean), positiveRest(b, k)))
	return except(b, ops.Lt(b, x, number(b, x, 0)), ops.Select(b, isLarge, large, y))
}

// Entropy returns [special.GammaEntropy] of Shape − log Rate.
func (d Gamma) Entropy(b *ir.Builder) ir.Value {
	return ops.Sub(b, special.GammaEntropy(b, d.Shape), ops.Log(b, d.Rate))
}

// Mean returns Shape/Rate.
func (d Gamma) Mean(b *ir.Builder) ir.Value { return ops.Div(b, d.Shape, d.Rate) }

// Variance returns Shape/Rate².
func (d Gamma) Variance(b *ir.Builder) ir.Value {
	return ops.Div(b, d.Shape, ops.Mul(b, d.Rate, d.Rate))
}

// Sample draws numbers.
func (d Beta) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	p := drawn(b, shape, d.A, d.B)
	first, second := keys(b, key)
	return inWide(b, p, func(p []ir.Value) ir.Value {
		return ops.Sigmoid(b, ops.Sub(b, logGamma(b, first, p[0]), logGamma(b, second, p[1])))
	})
}

// LogProb returns the logarithm of the density.
func (d Beta) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	p := argument.Broadcast(b, d.A, d.B, x)
	if b.Err() != nil {
		return ir.Value{}
	}
	x = p[2]
	sum := ops.Add(b, p[0], p[1])
	y := ops.Add(b, Gamma{p[0], sum}.LogProb(b, x), Gamma{p[1], sum}.LogProb(b, oneMinus(b, x)))
	outside := ops.Or(b, ops.Lt(b, x, number(b, x, 0)), ops.Gt(b, x, number(b, x, 1)))
	return except(b, outside, ops.Sub(b, y, Gamma{sum, sum}.LogProb(b, number(b, sum, 1))))
}

// Entropy returns the entropy, by digamma and those of gamma distributions.
func (d Beta) Entropy(b *ir.Builder) ir.Value {
	sum := ops.Add(b, d.A, d.B)
	y := ops.Add(b, special.GammaEntropy(b, d.A), special.GammaEntropy(b, d.B))
	return ops.Sub(b, y, ops.Add(b, special.GammaEntropy(b, sum), ops.Digamma(b, sum)))
}

// Mean returns A/(A+B).
func (d Beta) Mean(b *ir.Builder) ir.Value { return ops.Div(b, d.A, ops.Add(b, d.A, d.B)) }

// Variance returns A·B/((A+B)²·(A+B+1)).
func (d Beta) Variance(b *ir.Builder) ir.Value {
	sum := ops.Add(b, d.A, d.B)
	return ops.Div(b, ops.Mul(b, d.A, d.B), ops.Mul(b, ops.Mul(b, sum, sum), plus(b, sum, 1)))
}

// total returns the sum along the last axis, which stays with size 1.
func total(b *ir.Builder, x ir.Value) ir.Value { return ops.KeepDims(b, ops.ReduceSum, x, -1) }

// sumLast returns the sum along the last axis.
func sumLast(b *ir.Builder, x ir.Value) ir.Value { return ops.ReduceSum(b, x, -1) }

// Sample draws vectors.
func (d Dirichlet) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return inWide(b, drawn(b, shape, d.Concentration), func(p []ir.Value) ir.Value {
		return ops.Softmax(b, logGamma(b, key, p[0]), -1)
	})
}

// LogProb returns the logarithm of the density at vectors of sum 1: that of independent numbers of Gamma given their
// sum. A sum that rounding has changed by ε changes it by about ε times the number of elements, not times the sum of
// Concentration. Derivatives by x are those within sum 1; they differ from (Concentration−1)/x by a constant.
func (d Dirichlet) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	rate, sum := total(b, d.Concentration), sumLast(b, d.Concentration)
	y := sumLast(b, Gamma{d.Concentration, rate}.LogProb(b, x))
	return ops.Sub(b, y, Gamma{sum, sum}.LogProb(b, number(b, sum, 1)))
}

// Entropy returns the entropy, by digamma and those of gamma distributions.
func (d Dirichlet) Entropy(b *ir.Builder) ir.Value {
	a := d.Concentration
	sum := total(b, a)
	parts := ops.Sub(b, special.GammaEntropy(b, a), ops.Digamma(b, sum))
	return ops.Sub(b, sumLast(b, parts), sumLast(b, ops.Sub(b, special.GammaEntropy(b, sum), ops.Digamma(b, sum))))
}

// Mean returns Concentration divided by its sum.
func (d Dirichlet) Mean(b *ir.Builder) ir.Value {
	return ops.Div(b, d.Concentration, total(b, d.Concentration))
}

// Variance returns the variance of each element.
func (d Dirichlet) Variance(b *ir.Builder) ir.Value {
	mean := d.Mean(b)
	return ops.Div(b, ops.Mul(b, mean, oneMinus(b, mean)), plus(b, total(b, d.Concentration), 1))
}
