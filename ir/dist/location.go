package dist

import (
	"math"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
)

// Normal is the normal distribution with mean Loc and standard deviation Scale.
type Normal struct{ Loc, Scale ir.Value }

// Laplace is the distribution with density e^(−|x−Loc|/Scale)/(2·Scale).
type Laplace struct{ Loc, Scale ir.Value }

// Logistic is the distribution with cumulative probability sigmoid((x−Loc)/Scale).
type Logistic struct{ Loc, Scale ir.Value }

// Gumbel is the distribution of maxima, with cumulative probability exp(−e^(−(x−Loc)/Scale)).
type Gumbel struct{ Loc, Scale ir.Value }

// Uniform is the distribution of equal density from Low to High.
type Uniform struct{ Low, High ir.Value }

// StudentT is Student's distribution with Freedom degrees of freedom, moved by Loc and scaled by Scale.
type StudentT struct{ Freedom, Loc, Scale ir.Value }

// place returns loc + scale·z, of a z of their shape.
func place(b *ir.Builder, key ir.Value, shape []ir.Dim, loc, by ir.Value, z func(key, like ir.Value) ir.Value) ir.Value {
	p := drawn(b, shape, loc, by)
	if b.Err() != nil {
		return ir.Value{}
	}
	return ops.Add(b, p[0], ops.Mul(b, p[1], ops.Convert(b, z(key, p[1]), p[1].DType())))
}

// standard returns (x−loc)/scale and log scale.
func standard(b *ir.Builder, x, loc, by ir.Value) (ir.Value, ir.Value) {
	return ops.Div(b, ops.Sub(b, x, loc), by), ops.Log(b, by)
}

// spread returns factor·by² in the common shape of loc and by.
func spread(b *ir.Builder, loc, by ir.Value, factor float64) ir.Value {
	by = argument.Broadcast(b, loc, by)[1]
	return scale(b, ops.Mul(b, by, by), factor)
}

// logSpread returns log by + c in the common shape.
func logSpread(b *ir.Builder, loc, by ir.Value, c float64) ir.Value {
	return plus(b, ops.Log(b, argument.Broadcast(b, loc, by)[1]), c)
}

// Sample draws numbers.
func (d Normal) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return place(b, key, shape, d.Loc, d.Scale, func(key, like ir.Value) ir.Value { return normal(b, key, like) })
}

// LogProb returns the logarithm of the density.
func (d Normal) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	z, log := standard(b, x, d.Loc, d.Scale)
	return ops.Sub(b, scale(b, plus(b, ops.Mul(b, z, z), logTwoPi), -0.5), log)
}

// Entropy returns ½·log(2πe) + log Scale.
func (d Normal) Entropy(b *ir.Builder) ir.Value {
	return logSpread(b, d.Loc, d.Scale, (1+logTwoPi)/2)
}

// Mean returns Loc.
func (d Normal) Mean(b *ir.Builder) ir.Value { return argument.Broadcast(b, d.Loc, d.Scale)[0] }

// Variance returns Scale².
func (d Normal) Variance(b *ir.Builder) ir.Value { return spread(b, d.Loc, d.Scale, 1) }

// Sample draws numbers.
func (d Laplace) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return place(b, key, shape, d.Loc, d.Scale, func(key, like ir.Value) ir.Value {
		sign, size := keys(b, key)
		u := uniform(b, sign, like)
		heads := ops.Lt(b, u, number(b, u, 0.5))
		z := ops.Neg(b, ops.Log(b, uniform(b, size, like)))
		return ops.Select(b, heads, z, ops.Neg(b, z))
	})
}

// LogProb returns the logarithm of the density.
func (d Laplace) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	z, log := standard(b, x, d.Loc, d.Scale)
	return plus(b, ops.Neg(b, ops.Add(b, ops.Abs(b, z), log)), -math.Ln2)
}

// Entropy returns 1 + log(2·Scale).
func (d Laplace) Entropy(b *ir.Builder) ir.Value { return logSpread(b, d.Loc, d.Scale, 1+math.Ln2) }

// Mean returns Loc.
func (d Laplace) Mean(b *ir.Builder) ir.Value { return Normal(d).Mean(b) }

// Variance returns 2·Scale².
func (d Laplace) Variance(b *ir.Builder) ir.Value { return spread(b, d.Loc, d.Scale, 2) }

// Sample draws numbers.
func (d Logistic) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return place(b, key, shape, d.Loc, d.Scale, func(key, like ir.Value) ir.Value { return ops.Logit(b, uniform(b, key, like)) })
}

// LogProb returns the logarithm of the density.
func (d Logistic) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	z, log := standard(b, x, d.Loc, d.Scale)
	return ops.Sub(b, ops.Add(b, ops.LogSigmoid(b, z), ops.LogSigmoid(b, ops.Neg(b, z))), log)
}

// Entropy returns 2 + log Scale.
func (d Logistic) Entropy(b *ir.Builder) ir.Value { return logSpread(b, d.Loc, d.Scale, 2) }

// Mean returns Loc.
func (d Logistic) Mean(b *ir.Builder) ir.Value { return Normal(d).Mean(b) }

// Variance returns Scale²·π²/3.
func (d Logistic) Variance(b *ir.Builder) ir.Value {
	return spread(b, d.Loc, d.Scale, math.Pi*math.Pi/3)
}

// euler is Euler's constant.
const euler = 0.57721566490153286060651209008240243

// Sample draws numbers.
func (d Gumbel) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return place(b, key, shape, d.Loc, d.Scale, func(key, like ir.Value) ir.Value {
		return ops.Gumbel(b, key, like.DType(), like.Shape()...)
	})
}

// LogProb returns the logarithm of the density.
func (d Gumbel) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	z, log := standard(b, x, d.Loc, d.Scale)
	z = ops.Neg(b, z)
	return ops.Sub(b, ops.Sub(b, z, ops.Exp(b, z)), log)
}

// Entropy returns 1 + γ + log Scale.
func (d Gumbel) Entropy(b *ir.Builder) ir.Value { return logSpread(b, d.Loc, d.Scale, 1+euler) }

// Mean returns Loc + γ·Scale.
func (d Gumbel) Mean(b *ir.Builder) ir.Value { return ops.Add(b, d.Loc, scale(b, d.Scale, euler)) }

// Variance returns Scale²·π²/6.
func (d Gumbel) Variance(b *ir.Builder) ir.Value {
	return spread(b, d.Loc, d.Scale, math.Pi*math.Pi/6)
}

// Sample draws numbers.
func (d Uniform) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return place(b, key, shape, d.Low, ops.Sub(b, d.High, d.Low), func(key, like ir.Value) ir.Value {
		return ops.Uniform(b, key, like.DType(), like.Shape()...)
	})
}

// LogProb returns the logarithm of the density, of numbers up to High.
func (d Uniform) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	outside := ops.Or(b, ops.Lt(b, x, d.Low), ops.Gt(b, x, d.High))
	y := ops.Neg(b, ops.Add(b, d.Entropy(b), ops.ZerosLike(b, x)))
	return except(b, outside, where(b, ops.Not(b, ops.IsNaN(b, x)), y, math.NaN()))
}

// Entropy returns log(High − Low).
func (d Uniform) Entropy(b *ir.Builder) ir.Value { return ops.Log(b, ops.Sub(b, d.High, d.Low)) }

// Mean returns the middle.
func (d Uniform) Mean(b *ir.Builder) ir.Value { return scale(b, ops.Add(b, d.Low, d.High), 0.5) }

// Variance returns (High − Low)²/12.
func (d Uniform) Variance(b *ir.Builder) ir.Value {
	return scale(b, ops.Square(b, ops.Sub(b, d.High, d.Low)), 1./12)
}

// Sample draws numbers, normal ones divided by roots of gamma ones.
func (d StudentT) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	p := drawn(b, shape, d.Freedom, d.Loc, d.Scale)
	first, second := keys(b, key)
	half := scale(b, p[0], 0.5)
	z := ops.Div(b, normal(b, first, half), ops.Sqrt(b, ops.Div(b, standardGamma(b, second, half), half)))
	return ops.Add(b, p[1], ops.Mul(b, p[2], z))
}

// LogProb returns the logarithm of the density.
func (d StudentT) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	z, log := standard(b, x, d.Loc, d.Scale)
	half := scale(b, d.Freedom, 0.5)
	normalizer := ops.Neg(b, ops.Add(b, special.LogBeta(b, half, number(b, half, 0.5)), scale(b, ops.Log(b, d.Freedom), 0.5)))
	tail := ops.Mul(b, plus(b, half, 0.5), ops.Log1p(b, ops.Div(b, ops.Mul(b, z, z), d.Freedom)))
	return ops.Sub(b, ops.Sub(b, normalizer, tail), log)
}

// Entropy returns the entropy, by digamma and those of gamma distributions.
func (d StudentT) Entropy(b *ir.Builder) ir.Value {
	half := scale(b, d.Freedom, 0.5)
	upper := plus(b, half, 0.5)
	y := ops.Sub(b, special.GammaEntropy(b, half), special.GammaEntropy(b, upper))
	y = ops.Add(b, y, ops.Sub(b, ops.Digamma(b, upper), scale(b, ops.Digamma(b, half), 1.5)))
	y = ops.Add(b, y, scale(b, ops.Log(b, d.Freedom), 0.5))
	return ops.Add(b, y, logSpread(b, d.Loc, d.Scale, (1+math.Log(math.Pi))/2))
}

// Mean returns Loc for more than one degree of freedom, and otherwise NaN.
func (d StudentT) Mean(b *ir.Builder) ir.Value {
	p := argument.Broadcast(b, d.Freedom, d.Loc, d.Scale)
	return where(b, ops.Gt(b, p[0], number(b, p[0], 1)), p[1], math.NaN())
}

// Variance returns Scale²·Freedom/(Freedom−2) for more than two degrees of freedom, ∞ for more than
// one, and otherwise NaN.
func (d StudentT) Variance(b *ir.Builder) ir.Value {
	p := argument.Broadcast(b, d.Freedom, d.Loc, d.Scale)
	finite := ops.Gt(b, p[0], number(b, p[0], 2))
	y := ops.Mul(b, ops.Mul(b, p[2], p[2]), ops.Div(b, p[0], where(b, finite, plus(b, p[0], -2), 1)))
	return where(b, ops.Gt(b, p[0], number(b, p[0], 1)), where(b, finite, y, math.Inf(1)), math.NaN())
}
