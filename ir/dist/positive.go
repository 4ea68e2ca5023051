package dist

import (
	"github.com/rlx-go/rlx/autodiff"
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

// standardGamma returns numbers of the gamma distribution with the given shapes and rate 1, which have
// implicit derivatives.
func standardGamma(b *ir.Builder, key, shape ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	return autodiff.CustomJVP(b, []ir.Value{shape, key},
		func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{ops.Gamma(b, in[1], in[0])} },
		func(b *ir.Builder, in, t []ir.Value) []ir.Value {
			x := ops.Gamma(b, in[1], ops.StopGradient(b, in[0]))
			return []ir.Value{ops.Mul(b, t[0], special.GammaQuantileSlope(b, in[0], x))}
		})[0]
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
	return within(b, ops.Ge(b, x, number(b, x, 0)), ops.Sub(b, ops.Log(b, d.Rate), ops.Mul(b, d.Rate, x)))
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
	y := ops.Add(b, ops.Mul(b, d.Shape, ops.Log(b, d.Rate)), ops.XLogY(b, plus(b, d.Shape, -1), x))
	y = ops.Sub(b, ops.Sub(b, y, ops.Mul(b, d.Rate, x)), ops.Lgamma(b, d.Shape))
	return within(b, ops.Ge(b, x, number(b, x, 0)), y)
}

// Entropy returns Shape − log Rate + log Γ(Shape) + (1−Shape)·ψ(Shape).
func (d Gamma) Entropy(b *ir.Builder) ir.Value {
	y := ops.Add(b, ops.Sub(b, d.Shape, ops.Log(b, d.Rate)), ops.Lgamma(b, d.Shape))
	return ops.Add(b, y, ops.Mul(b, oneMinus(b, d.Shape), ops.Digamma(b, d.Shape)))
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
	x, y := standardGamma(b, first, p[0]), standardGamma(b, second, p[1])
	return ops.Div(b, x, ops.Add(b, x, y))
}

// LogProb returns the logarithm of the density.
func (d Beta) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	y := ops.Add(b, ops.XLogY(b, plus(b, d.A, -1), x), ops.XLog1pY(b, plus(b, d.B, -1), ops.Neg(b, x)))
	inside := ops.And(b, ops.Ge(b, x, number(b, x, 0)), ops.Le(b, x, number(b, x, 1)))
	return within(b, inside, ops.Sub(b, y, special.LogBeta(b, d.A, d.B)))
}

// Entropy returns the entropy, by digamma and the beta function.
func (d Beta) Entropy(b *ir.Builder) ir.Value {
	sum := ops.Add(b, d.A, d.B)
	y := special.LogBeta(b, d.A, d.B)
	y = ops.Sub(b, y, ops.Mul(b, plus(b, d.A, -1), ops.Digamma(b, d.A)))
	y = ops.Sub(b, y, ops.Mul(b, plus(b, d.B, -1), ops.Digamma(b, d.B)))
	return ops.Add(b, y, ops.Mul(b, plus(b, sum, -2), ops.Digamma(b, sum)))
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
	x := standardGamma(b, key, drawn(b, shape, d.Concentration)[0])
	return ops.Div(b, x, total(b, x))
}

// logNormalizer returns the logarithm of the density's constant, Γ of the sum divided by the product of Γ.
func (d Dirichlet) logNormalizer(b *ir.Builder) ir.Value {
	return ops.Sub(b, ops.Lgamma(b, sumLast(b, d.Concentration)), sumLast(b, ops.Lgamma(b, d.Concentration)))
}

// LogProb returns the logarithm of the density at vectors of sum 1.
func (d Dirichlet) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Add(b, sumLast(b, ops.XLogY(b, plus(b, d.Concentration, -1), x)), d.logNormalizer(b))
}

// Entropy returns the entropy, by digamma.
func (d Dirichlet) Entropy(b *ir.Builder) ir.Value {
	a := d.Concentration
	sum := total(b, a)
	y := ops.Mul(b, plus(b, a, -1), ops.Sub(b, ops.Digamma(b, sum), ops.Digamma(b, a)))
	return ops.Sub(b, sumLast(b, y), d.logNormalizer(b))
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
