package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Adam is the optimizer of Kingma and Ba, Adam: A Method for Stochastic Optimization (2015), as in
// torch.optim.Adam:
//
//	g ← g + WeightDecay·p
//	m ← Beta1·m + (1−Beta1)·g
//	v ← Beta2·v + (1−Beta2)·g²
//	p ← p − lr/(1−Beta1ᵗ) · m / (√v/√(1−Beta2ᵗ) + Eps)
//
// where t is the number of the step, from 1. A zero field means its default.
type Adam struct {
	Beta1       float64 // in (0, 1); 0.9 by default
	Beta2       float64 // in (0, 1); 0.999 by default
	Eps         float64 // positive; 1e-8 by default
	WeightDecay float64 // not negative; 0 for none
}

// AdamW is [Adam] with decoupled weight decay, after Loshchilov and Hutter, Decoupled Weight Decay
// Regularization (2019), as in torch.optim.AdamW: first p ← p − lr·WeightDecay·p, then the update
// of Adam without decay. A zero field means its default; for no weight decay set [NoDecay].
type AdamW struct {
	Beta1       float64 // in (0, 1); 0.9 by default
	Beta2       float64 // in (0, 1); 0.999 by default
	Eps         float64 // positive; 1e-8 by default
	WeightDecay float64 // not negative; 0.01 by default
}

// Slots returns "m" and "v".
func (Adam) Slots() []string { return []string{"m", "v"} }

// Slots returns "m" and "v".
func (AdamW) Slots() []string { return []string{"m", "v"} }

// Begin checks the hyperparameters, adds the bias corrections and returns the rule.
func (o Adam) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	return beginAdam(b, o, rate, count, func(b *ir.Builder, p, g, _ ir.Value) (ir.Value, ir.Value) {
		return p, l2Decay(b, p, g, o.WeightDecay)
	})
}

// Begin checks the hyperparameters, adds the bias corrections and returns the rule.
func (o AdamW) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	decay := orDefault(o.WeightDecay, 0.01)
	base := Adam{o.Beta1, o.Beta2, o.Eps, decay}
	return beginAdam(b, base, rate, count, func(b *ir.Builder, p, g, rate ir.Value) (ir.Value, ir.Value) {
		return decoupledDecay(b, p, rate, decay), g
	})
}

// beginAdam returns the rule of Adam and AdamW. decay applies weight decay to the parameter or the
// gradient, given the rate in their type.
func beginAdam(b *ir.Builder, o Adam, rate, count ir.Value, decay func(b *ir.Builder, p, g, rate ir.Value) (ir.Value, ir.Value)) Rule {
	o = o.withDefaults(b)
	size := ops.Div(b, rate, biasCorrection(b, o.Beta1, count))
	root := ops.Sqrt(b, biasCorrection(b, o.Beta2, count))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		d := p.DType()
		p, g = decay(b, p, g, ops.Convert(b, rate, d))
		m, v := movingAverage(b, slots[0], g, o.Beta1), movingAverage(b, slots[1], ops.Mul(b, g, g), o.Beta2)
		denom := ops.Add(b, ops.Div(b, ops.Sqrt(b, v), ops.Convert(b, root, d)), ops.Const(b, d, o.Eps))
		move := ops.Div(b, ops.Mul(b, m, ops.Convert(b, size, d)), denom)
		return ops.Sub(b, p, move), []ir.Value{m, v}
	}
}

// biasCorrection returns 1 − betaᵗ as −expm1(t·log beta). The direct formula loses half the digits of
// an f32 for beta near 1 and small t.
func biasCorrection(b *ir.Builder, beta float64, count ir.Value) ir.Value {
	return ops.Neg(b, ops.Expm1(b, scale(b, count, math.Log(beta))))
}

// orDefault returns x, or the default if x is zero.
func orDefault(x, otherwise float64) float64 {
	if x == 0 {
		return otherwise
	}
	return x
}

// MARS is the optimizer of Yuan et al., MARS: Unleashing the Power of Variance Reduction for
// Training Large Models (2024), in the variant MARS-AdamW-approx, which uses the gradient of the
// previous step g' (g itself at the first step):
//
//	c ← g + Gamma·Beta1/(1−Beta1)·(g − g')
//	c ← c/max(1, |c|)
//
// and then [AdamW] with gradient c. A zero field means its default.
type MARS struct {
	Beta1       float64 // in (0, 1); 0.95 by default
	Beta2       float64 // in (0, 1); 0.99 by default
	Gamma       float64 // positive; 0.025 by default
	Eps         float64 // positive; 1e-8 by default
	WeightDecay float64 // not negative; 0.01 by default
}

// Slots returns "m", "v" and "g".
func (MARS) Slots() []string { return []string{"m", "v", "g"} }

// Begin checks the hyperparameters and returns the rule.
func (o MARS) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Beta1, o.Gamma = orDefault(o.Beta1, 0.95), orDefault(o.Gamma, 0.025)
	check(b, "mars", hyper{"Beta1", o.Beta1, unit}, hyper{"Gamma", o.Gamma, positive})
	adam := AdamW{o.Beta1, orDefault(o.Beta2, 0.99), o.Eps, o.WeightDecay}.Begin(b, rate, count)
	first := ops.Eq(b, count, ops.OnesLike(b, count))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		last := ops.Select(b, first, g, slots[2])
		c := ops.Add(b, g, scale(b, ops.Sub(b, g, last), o.Gamma*o.Beta1/(1-o.Beta1)))
		size := ops.Norm(b, c, 2)
		c = ops.Div(b, c, ops.Max(b, size, ops.OnesLike(b, size)))
		p, moments := adam(b, p, c, slots[:2])
		return p, append(moments, g)
	}
}
