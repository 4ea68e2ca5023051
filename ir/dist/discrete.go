package dist

import (
	"math"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
)

// Bernoulli is the distribution of 1 with probability sigmoid(Logit), and otherwise 0. Numbers have the
// type of Logit.
type Bernoulli struct{ Logit ir.Value }

// Categorical is the distribution of classes, i32, with probabilities softmax(Logits) along the last
// axis.
type Categorical struct{ Logits ir.Value }

// Poisson is the distribution of i32 counts with mean Rate. It has no Entropy.
type Poisson struct{ Rate ir.Value }

// Binomial is the distribution of the number of successes, i32, of Count trials with probability P each.
type Binomial struct {
	Count int
	P     ir.Value
}

// Multinomial is the distribution of how often each class, along the last axis, is drawn, i32, of Count
// draws with probabilities softmax(Logits). It has no Entropy.
type Multinomial struct {
	Count  int
	Logits ir.Value
}

// Sample draws numbers.
func (d Bernoulli) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return inWide(b, drawn(b, shape, ops.StopGradient(b, d.Logit)), func(p []ir.Value) ir.Value {
		return ops.Convert(b, ops.Lt(b, uniform(b, key, p[0]), ops.Sigmoid(b, p[0])), p[0].DType())
	})
}

// LogProb returns the logarithm of the probability of x, 0 or 1.
func (d Bernoulli) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	zero, one := number(b, x, 0), number(b, x, 1)
	y := ops.Select(b, ops.Eq(b, x, one), ops.LogSigmoid(b, d.Logit), ops.LogSigmoid(b, ops.Neg(b, d.Logit)))
	return within(b, ops.Or(b, ops.Eq(b, x, zero), ops.Eq(b, x, one)), y)
}

// Entropy returns −p·log p − (1−p)·log(1−p).
func (d Bernoulli) Entropy(b *ir.Builder) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	// Of |Logit|, since the terms then do not cancel; not by abs, whose derivative at 0 is 0.
	l := ops.Select(b, ops.Lt(b, d.Logit, number(b, d.Logit, 0)), ops.Neg(b, d.Logit), d.Logit)
	away := ops.Neg(b, l)
	return ops.Add(b, ops.Softplus(b, away), ops.MulZero(b, l, ops.Sigmoid(b, away)))
}

// Mean returns the probability of 1.
func (d Bernoulli) Mean(b *ir.Builder) ir.Value { return ops.Sigmoid(b, d.Logit) }

// Variance returns p·(1−p).
func (d Bernoulli) Variance(b *ir.Builder) ir.Value {
	return ops.Mul(b, d.Mean(b), ops.Sigmoid(b, ops.Neg(b, d.Logit)))
}

// Sample draws classes.
func (d Categorical) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return ops.Categorical(b, key, drawn(b, shape, d.Logits)[0], -1)
}

// LogProb returns the logarithm of the probability of classes, of an integer type and the batch's shape,
// −∞ for no class.
func (d Categorical) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	if b.Err() != nil {
		return ir.Value{}
	}
	if d.Logits.Rank() == 0 {
		b.Fail(ir.Shapef("dist: Logits is %s; it must have an axis of classes", d.Logits.Type()))
		return ir.Value{}
	}
	if x.DType().IsInteger() && x.DType().Size() < 4 { // 8 and 16 bits may not have all classes
		x = ops.Convert(b, x, ir.I32)
	}
	classes := d.Logits.Dim(d.Logits.Rank() - 1)
	here := ops.Eq(b, ops.ExpandDims(b, x, -1), ops.Iota(b, x.DType(), 0, classes))
	log := ops.LogSoftmax(b, d.Logits, -1)
	return ops.ReduceMax(b, within(b, here, log), -1)
}

// Entropy returns −Σ p·log p.
func (d Categorical) Entropy(b *ir.Builder) ir.Value {
	log := ops.LogSoftmax(b, d.Logits, -1)
	return ops.Neg(b, sumLast(b, ops.MulZero(b, ops.Exp(b, log), log)))
}

// Mean is not defined for classes.
func (d Categorical) Mean(b *ir.Builder) ir.Value { return unsupported(b, "Categorical", "Mean") }

// Variance is not defined for classes.
func (d Categorical) Variance(b *ir.Builder) ir.Value {
	return unsupported(b, "Categorical", "Variance")
}

// Sample draws counts.
func (d Poisson) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	return ops.Poisson(b, key, ops.StopGradient(b, drawn(b, shape, d.Rate)[0]))
}

// counted converts counts to the type of a parameter, and reports whether they are from 0 to limit.
func counted(b *ir.Builder, x, like ir.Value, limit float64) (k, inside ir.Value) {
	if b.Err() != nil {
		return ir.Value{}, ir.Value{}
	}
	k = ops.Convert(b, x, like.DType())
	inside = ops.And(b, ops.Ge(b, k, number(b, k, 0)), ops.Le(b, k, number(b, k, limit)))
	return where(b, inside, k, 0), inside
}

// positiveRest returns log k! − k·log k + k, by Stirling's formula, for k > 0.
func positiveRest(b *ir.Builder, k ir.Value) ir.Value {
	return ops.Add(b, scale(b, plus(b, ops.Log(b, k), logTwoPi), 0.5), special.StirlingRemainder(b, k))
}

// factorialRest returns log k! − k·log k + k for k ≥ 0. The logarithms of probabilities of counts are sums of it
// and of [special.KLDiv] of counts and their means, in which no two large terms cancel (Loader, Fast and Accurate
// Computation of Binomial Probabilities, 2000).
func factorialRest(b *ir.Builder, k ir.Value) ir.Value {
	positive := ops.Gt(b, k, number(b, k, 0))
	return where(b, positive, positiveRest(b, where(b, positive, k, 1)), 0)
}

// LogProb returns the logarithm of the probability of counts.
func (d Poisson) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	k, inside := counted(b, x, d.Rate, math.Inf(1))
	return within(b, inside, ops.Neg(b, ops.Add(b, special.KLDiv(b, k, d.Rate), factorialRest(b, k))))
}

// Entropy has no formula.
func (d Poisson) Entropy(b *ir.Builder) ir.Value { return unsupported(b, "Poisson", "Entropy") }

// Mean returns Rate.
func (d Poisson) Mean(*ir.Builder) ir.Value { return d.Rate }

// Variance returns Rate.
func (d Poisson) Variance(*ir.Builder) ir.Value { return d.Rate }

// checkCount records an error of kind [ir.ErrAttr] for a negative count.
func checkCount(b *ir.Builder, count int) bool {
	if count < 0 {
		b.Fail(ir.Attrf("dist: Count is %d; it must be 0 or greater", count))
	}
	return b.Err() == nil
}

// repeat adds up count values of draw, i32, each with its own key.
func repeat(b *ir.Builder, count int, key, first ir.Value, draw func(b *ir.Builder, key, parameter ir.Value) ir.Value) ir.Value {
	shape := draw(b, key, first)
	carries, _ := ops.Scan(b, ops.Loop{
		Consts: []ir.Value{key, first}, Carries: []ir.Value{ops.Const(b, ir.U32, 0), ops.ZerosLike(b, shape)}, Length: ir.N(count),
		Body: func(b *ir.Builder, consts, c, _ []ir.Value) (next, ys []ir.Value) {
			x := draw(b, ops.FoldIn(b, consts[0], c[0]), consts[1])
			return []ir.Value{ops.Add(b, c[0], ops.OnesLike(b, c[0])), ops.Add(b, c[1], x)}, nil
		},
	})
	return carries[1]
}

// Sample draws counts by their trials, which take time proportional to Count.
func (d Binomial) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	p := drawn(b, shape, ops.StopGradient(b, d.P))[0]
	if !checkCount(b, d.Count) {
		return ir.Value{}
	}
	p = ops.Convert(b, p, argument.Wide(p.DType()))
	return repeat(b, d.Count, key, p, func(b *ir.Builder, key, p ir.Value) ir.Value {
		return ops.Convert(b, ops.Lt(b, uniform(b, key, p), p), ir.I32)
	})
}

// LogProb returns the logarithm of the probability of counts.
func (d Binomial) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	if !checkCount(b, d.Count) {
		return ir.Value{}
	}
	n := float64(d.Count)
	k, inside := counted(b, x, d.P, n)
	rest := plus(b, ops.Neg(b, k), n)
	away := ops.Add(b, special.KLDiv(b, k, scale(b, d.P, n)), special.KLDiv(b, rest, scale(b, oneMinus(b, d.P), n)))
	ways := ops.Sub(b, factorialRest(b, number(b, k, n)), ops.Add(b, factorialRest(b, k), factorialRest(b, rest)))
	return within(b, inside, ops.Sub(b, ways, away))
}

// Entropy returns the sum of −p·log p over all counts.
func (d Binomial) Entropy(b *ir.Builder) ir.Value {
	if !checkCount(b, d.Count) {
		return ir.Value{}
	}
	all := ops.Iota(b, ir.I32, 0, ir.N(d.Count+1))
	log := Binomial{d.Count, ops.ExpandDims(b, d.P, -1)}.LogProb(b, all)
	return ops.Neg(b, sumLast(b, ops.MulZero(b, ops.Exp(b, log), log)))
}

// Mean returns Count·P.
func (d Binomial) Mean(b *ir.Builder) ir.Value { return scale(b, d.P, float64(d.Count)) }

// Variance returns Count·P·(1−P).
func (d Binomial) Variance(b *ir.Builder) ir.Value {
	return ops.Mul(b, d.Mean(b), oneMinus(b, d.P))
}

// Sample draws counts by their draws, which take time proportional to Count.
func (d Multinomial) Sample(b *ir.Builder, key ir.Value, shape ...ir.Dim) ir.Value {
	logits := drawn(b, shape, ops.StopGradient(b, d.Logits))[0]
	if !checkCount(b, d.Count) {
		return ir.Value{}
	}
	classes := logits.Dim(logits.Rank() - 1)
	return repeat(b, d.Count, key, logits, func(b *ir.Builder, key, logits ir.Value) ir.Value {
		return ops.OneHot(b, ops.Categorical(b, key, logits, -1), classes, ir.I32)
	})
}

// LogProb returns the logarithm of the probability of counts, −∞ if their sum is not Count.
func (d Multinomial) LogProb(b *ir.Builder, x ir.Value) ir.Value {
	if !checkCount(b, d.Count) {
		return ir.Value{}
	}
	n := float64(d.Count)
	k, inside := counted(b, x, d.Logits, n)
	y := ops.Add(b, d.deviance(b, k), factorialRest(b, k))
	sum := sumLast(b, k)
	valid := ops.And(b, ops.All(b, inside, -1), ops.Eq(b, sum, number(b, sum, n)))
	return within(b, valid, ops.Sub(b, factorialRest(b, number(b, sum, n)), sumLast(b, y)))
}

// deviance returns [special.KLDiv] of counts and their means, by logarithms for probabilities that might
// be rounded to 0.
func (d Multinomial) deviance(b *ir.Builder, k ir.Value) ir.Value {
	n := float64(d.Count)
	p := ops.Softmax(b, d.Logits, -1)
	isLikely := ops.Gt(b, p, number(b, p, 1e-6))
	near := special.KLDiv(b, k, scale(b, where(b, isLikely, p, 1), n))
	far := ops.Sub(b, ops.XLogY(b, k, scale(b, k, 1/max(n, 1))), ops.MulZero(b, k, ops.LogSoftmax(b, d.Logits, -1)))
	return ops.Select(b, isLikely, near, ops.Add(b, far, ops.Sub(b, scale(b, p, n), k)))
}

// Entropy has no formula.
func (d Multinomial) Entropy(b *ir.Builder) ir.Value {
	return unsupported(b, "Multinomial", "Entropy")
}

// Mean returns Count·softmax(Logits).
func (d Multinomial) Mean(b *ir.Builder) ir.Value {
	return scale(b, ops.Softmax(b, d.Logits, -1), float64(d.Count))
}

// Variance returns Count·p·(1−p) of each class.
func (d Multinomial) Variance(b *ir.Builder) ir.Value {
	return ops.Mul(b, d.Mean(b), oneMinus(b, ops.Softmax(b, d.Logits, -1)))
}
