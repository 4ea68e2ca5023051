package dist

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
)

// KL returns the Kullback–Leibler divergence E log p(x)/q(x) over x of p, in nats, for two distributions of
// one kind: Normal, Laplace, Uniform, Exponential, Gamma, Beta, Dirichlet, Bernoulli, Categorical, Poisson,
// or Binomial of the same Count. For others the builder gets an error of kind [ir.ErrUnsupported].
func KL(b *ir.Builder, p, q Distribution) ir.Value {
	switch p := p.(type) {
	case Normal:
		if q, same := q.(Normal); same {
			return klNormal(b, p, q)
		}
	case Laplace:
		if q, same := q.(Laplace); same {
			return klLaplace(b, p, q)
		}
	case Uniform:
		if q, same := q.(Uniform); same {
			inside := ops.And(b, ops.Ge(b, p.Low, q.Low), ops.Le(b, p.High, q.High))
			return ops.Neg(b, within(b, inside, ops.Sub(b, p.Entropy(b), q.Entropy(b))))
		}
	case Exponential:
		if q, same := q.(Exponential); same {
			return ops.Div(b, special.KLDiv(b, p.Rate, q.Rate), p.Rate)
		}
	case Gamma:
		if q, same := q.(Gamma); same {
			return klGamma(b, p, q)
		}
	case Beta:
		if q, same := q.(Beta); same {
			join := func(d Beta) Dirichlet { return Dirichlet{ops.Stack(b, -1, argument.Broadcast(b, d.A, d.B)...)} }
			return klDirichlet(b, join(p), join(q))
		}
	case Dirichlet:
		if q, same := q.(Dirichlet); same {
			return klDirichlet(b, p, q)
		}
	}
	return klDiscrete(b, p, q)
}

func klDiscrete(b *ir.Builder, p, q Distribution) ir.Value {
	switch p := p.(type) {
	case Bernoulli:
		if q, same := q.(Bernoulli); same {
			away := func(d Bernoulli) Bernoulli { return Bernoulli{ops.Neg(b, d.Logit)} }
			return ops.Add(b, klOfOne(b, p, q), klOfOne(b, away(p), away(q)))
		}
	case Categorical:
		if q, same := q.(Categorical); same {
			log := ops.LogSoftmax(b, p.Logits, -1)
			return sumLast(b, ops.MulZero(b, ops.Exp(b, log), ops.Sub(b, log, ops.LogSoftmax(b, q.Logits, -1))))
		}
	case Poisson:
		if q, same := q.(Poisson); same {
			return special.KLDiv(b, p.Rate, q.Rate)
		}
	case Binomial:
		if q, same := q.(Binomial); same && p.Count == q.Count {
			one := ops.Add(b, special.KLDiv(b, p.P, q.P), special.KLDiv(b, oneMinus(b, p.P), oneMinus(b, q.P)))
			return scale(b, one, float64(p.Count))
		}
	}
	return unsupported(b, fmt.Sprintf("%T", p), fmt.Sprintf("KL with %T", q))
}

// klOfOne returns P·log(P/Q), of the probabilities of 1. It is 0 where P is, also for infinite logits.
func klOfOne(b *ir.Builder, p, q Bernoulli) ir.Value {
	return ops.MulZero(b, p.Mean(b), ops.Sub(b, ops.LogSigmoid(b, p.Logit), ops.LogSigmoid(b, q.Logit)))
}

func klNormal(b *ir.Builder, p, q Normal) ir.Value {
	ratio, distance := ops.Div(b, p.Scale, q.Scale), ops.Div(b, ops.Sub(b, p.Loc, q.Loc), q.Scale)
	square := ops.Mul(b, ratio, ratio)
	y := ops.Sub(b, plus(b, ops.Add(b, square, ops.Mul(b, distance, distance)), -1), scale(b, ops.Log(b, ratio), 2))
	return scale(b, y, 0.5)
}

func klLaplace(b *ir.Builder, p, q Laplace) ir.Value {
	distance := ops.Sub(b, p.Loc, q.Loc)
	distance = ops.Select(b, ops.Lt(b, distance, number(b, distance, 0)), ops.Neg(b, distance), distance) // not abs, whose derivative at 0 is 0
	y := ops.Mul(b, p.Scale, ops.Exp(b, ops.Neg(b, ops.Div(b, distance, p.Scale))))
	y = ops.Div(b, ops.Add(b, y, distance), q.Scale)
	return plus(b, ops.Sub(b, y, ops.Log(b, ops.Div(b, p.Scale, q.Scale))), -1)
}

// klRest returns log Γ(y) − log Γ(x) + (x−y)·ψ(x) without its largest term, [special.KLDiv] of y and x, for positive x
// and y. By Stirling's formula the large parts of log Γ cancel before they are computed.
func klRest(b *ir.Builder, x, y ir.Value) ir.Value {
	half := ops.Div(b, special.KLDiv(b, x, y), ops.Add(b, x, x))
	rest := ops.Sub(b, special.StirlingRemainder(b, y), special.StirlingRemainder(b, x))
	return ops.Add(b, half, ops.Add(b, rest, ops.Mul(b, ops.Sub(b, x, y), special.StirlingRemainderSlope(b, x))))
}

func klGamma(b *ir.Builder, p, q Gamma) ir.Value {
	mean := ops.Mul(b, p.Shape, ops.Div(b, q.Rate, p.Rate)) // of q.Rate·x
	return ops.Add(b, special.KLDiv(b, q.Shape, mean), klRest(b, p.Shape, q.Shape))
}

func klDirichlet(b *ir.Builder, p, q Dirichlet) ir.Value {
	ratio := ops.Div(b, total(b, q.Concentration), total(b, p.Concentration))
	y := special.KLDiv(b, q.Concentration, ops.Mul(b, p.Concentration, ratio))
	y = sumLast(b, ops.Add(b, y, klRest(b, p.Concentration, q.Concentration)))
	return ops.Sub(b, y, klRest(b, sumLast(b, p.Concentration), sumLast(b, q.Concentration)))
}
