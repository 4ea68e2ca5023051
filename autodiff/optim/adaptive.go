package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Adagrad is the optimizer of Duchi, Hazan and Singer, Adaptive Subgradient Methods (2011), as in
// torch.optim.Adagrad:
//
//	g ← g + WeightDecay·p
//	s ← s + g²
//	p ← p − lr/(1+(t−1)·RateDecay) · g/(√s + Eps)
//
// where t is the number of the step, from 1. A zero field means its default.
type Adagrad struct {
	RateDecay   float64 // not negative; 0 for none
	Eps         float64 // positive; 1e-10 by default
	WeightDecay float64 // not negative; 0 for none
}

// RMSProp is the optimizer of Hinton (Coursera lecture 6e, 2012), as in torch.optim.RMSprop:
//
//	g ← g + WeightDecay·p
//	s ← Alpha·s + (1−Alpha)·g²
//	a ← Alpha·a + (1−Alpha)·g                  if Centered, else a = 0
//	m ← Momentum·m + g/(√max(s − a², 0) + Eps)
//	p ← p − lr·m
//
// A zero field means its default.
type RMSProp struct {
	Alpha       float64 // in (0, 1); 0.99 by default
	Eps         float64 // positive; 1e-8 by default
	Momentum    float64 // in [0, 1); 0 by default
	Centered    bool
	WeightDecay float64 // not negative; 0 for none
}

// Adadelta is the optimizer of Zeiler, ADADELTA: An Adaptive Learning Rate Method (2012), as in
// torch.optim.Adadelta:
//
//	g ← g + WeightDecay·p
//	s ← Rho·s + (1−Rho)·g²
//	d ← g·√(a + Eps)/√(s + Eps)
//	a ← Rho·a + (1−Rho)·d²
//	p ← p − lr·d
//
// The paper uses a learning rate of 1. A zero field means its default.
type Adadelta struct {
	Rho         float64 // in (0, 1); 0.9 by default
	Eps         float64 // positive; 1e-6 by default
	WeightDecay float64 // not negative; 0 for none
}

// Slots returns "s".
func (Adagrad) Slots() []string { return []string{"s"} }

// Slots returns "s", with Centered "a", and with a momentum "m".
func (o RMSProp) Slots() []string {
	slots := []string{"s"}
	if o.Centered {
		slots = append(slots, "a")
	}
	if o.Momentum != 0 {
		slots = append(slots, "m")
	}
	return slots
}

// Slots returns "s" and "a".
func (Adadelta) Slots() []string { return []string{"s", "a"} }

// Begin checks the hyperparameters and returns the rule.
func (o Adagrad) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Eps = orDefault(o.Eps, 1e-10)
	check(b, "adagrad", hyper{"RateDecay", o.RateDecay, notNegative}, hyper{"Eps", o.Eps, positive}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	past := scale(b, ops.Sub(b, count, ops.OnesLike(b, count)), o.RateDecay)
	rate = ops.Div(b, rate, ops.Add(b, past, ops.OnesLike(b, past)))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		g = l2Decay(b, p, g, o.WeightDecay)
		s := ops.Add(b, slots[0], ops.Mul(b, g, g))
		return descend(b, p, ops.Div(b, g, addConst(b, ops.Sqrt(b, s), o.Eps)), rate), []ir.Value{s}
	}
}

// Begin checks the hyperparameters and returns the rule.
func (o RMSProp) Begin(b *ir.Builder, rate, _ ir.Value) Rule {
	o.Alpha, o.Eps = orDefault(o.Alpha, 0.99), orDefault(o.Eps, 1e-8)
	check(b, "rmsprop", hyper{"Alpha", o.Alpha, unit}, hyper{"Eps", o.Eps, positive}, hyper{"Momentum", o.Momentum, belowOne}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		g = l2Decay(b, p, g, o.WeightDecay)
		spread := movingAverage(b, slots[0], ops.Mul(b, g, g), o.Alpha)
		out := []ir.Value{spread}
		if o.Centered {
			a := movingAverage(b, slots[1], g, o.Alpha)
			spread = ops.Sub(b, spread, ops.Mul(b, a, a))
			spread = ops.Max(b, spread, ops.ZerosLike(b, spread)) // which rounding makes negative for equal gradients
			out = append(out, a)
		}
		step := ops.Div(b, g, addConst(b, ops.Sqrt(b, spread), o.Eps))
		if o.Momentum != 0 {
			step = ops.Add(b, scale(b, slots[len(out)], o.Momentum), step)
			out = append(out, step)
		}
		return descend(b, p, step, rate), out
	}
}

// Begin checks the hyperparameters and returns the rule.
func (o Adadelta) Begin(b *ir.Builder, rate, _ ir.Value) Rule {
	o.Rho, o.Eps = orDefault(o.Rho, 0.9), orDefault(o.Eps, 1e-6)
	check(b, "adadelta", hyper{"Rho", o.Rho, unit}, hyper{"Eps", o.Eps, positive}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		g = l2Decay(b, p, g, o.WeightDecay)
		s := movingAverage(b, slots[0], ops.Mul(b, g, g), o.Rho)
		d := ops.Mul(b, ops.Div(b, ops.Sqrt(b, addConst(b, slots[1], o.Eps)), ops.Sqrt(b, addConst(b, s, o.Eps))), g)
		return descend(b, p, d, rate), []ir.Value{s, movingAverage(b, slots[1], ops.Mul(b, d, d), o.Rho)}
	}
}

// NAdam is [Adam] with Nesterov momentum, after Dozat, Incorporating Nesterov Momentum into Adam
// (2016), as in torch.optim.NAdam: with μₜ = Beta1·(1 − 0.96^(t·Decay)/2),
//
//	p ← p − lr·((1−μₜ)/(1−Πμ)·g + μₜ₊₁/(1−Πμ·μₜ₊₁)·m) / (√(v/(1−Beta2ᵗ)) + Eps)
//
// where Πμ is the product of μ₁ to μₜ. A zero field means its default.
type NAdam struct {
	Adam
	Decay     float64 // of the momentum, not negative; 0.004 by default
	Decoupled bool    // weight decay as in AdamW
}

// SlotsFor returns "m" and "v" of the parameter's shape, and "q" of rank 0, which is 1 − Πμ.
func (NAdam) SlotsFor(param ir.Type) []Slot {
	return []Slot{{"m", param.Shape}, {"v", param.Shape}, {"q", nil}}
}

// Slots returns all names of SlotsFor.
func (NAdam) Slots() []string { return []string{"m", "v", "q"} }

// Begin checks the hyperparameters and returns the rule.
func (o NAdam) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	a := o.Adam.withDefaults(b)
	decay := orDefault(o.Decay, 0.004)
	check(b, "nadam", hyper{"Decay", decay, notNegative})
	momentum := func(ahead float64) ir.Value {
		wave := ops.Exp(b, scale(b, addConst(b, count, ahead), decay*math.Log(0.96)))
		return scale(b, addConst(b, scale(b, wave, -0.5), 1), a.Beta1)
	}
	mu, next, spread := momentum(0), momentum(1), biasCorrection(b, a.Beta2, count)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		d := p.DType()
		mu, next := ops.Convert(b, mu, d), ops.Convert(b, next, d)
		rest := func(x ir.Value) ir.Value { return ops.Sub(b, ops.OnesLike(b, x), x) }
		p, g = decayed(b, p, g, rate, a.WeightDecay, o.Decoupled)
		m, v := movingAverage(b, slots[0], g, a.Beta1), movingAverage(b, slots[1], ops.Mul(b, g, g), a.Beta2)
		q := ops.Add(b, rest(mu), ops.Mul(b, mu, slots[2]))
		denom := addConst(b, ops.Sqrt(b, ops.Div(b, v, ops.Convert(b, spread, d))), a.Eps)
		now := ops.Mul(b, g, ops.Div(b, rest(mu), q))
		then := ops.Mul(b, m, ops.Div(b, next, ops.Add(b, rest(next), ops.Mul(b, next, q))))
		return descend(b, p, ops.Div(b, ops.Add(b, now, then), denom), rate), []ir.Value{m, v, q}
	}
}

// RAdam is [Adam] with a rectified adaptive rate, after Liu et al., On the Variance of the Adaptive
// Learning Rate and Beyond (2020), as in torch.optim.RAdam. It does not divide by the second moment
// until the estimate has low variance: with ρ = 2/(1−Beta2) − 1 and ρₜ = ρ − 2t·Beta2ᵗ/(1−Beta2ᵗ),
//
//	p ← p − lr·m/(1−Beta1ᵗ) · r·√(1−Beta2ᵗ)/(√v + Eps)   if ρₜ > 5
//	p ← p − lr·m/(1−Beta1ᵗ)                              otherwise
//
// with r² = (ρₜ−4)(ρₜ−2)ρ / ((ρ−4)(ρ−2)ρₜ). A zero field means its default.
type RAdam struct {
	Adam
	Decoupled bool // weight decay as in AdamW
}

// Begin checks the hyperparameters and returns the rule.
func (o RAdam) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	a := o.Adam.withDefaults(b)
	left := biasCorrection(b, a.Beta2, count)
	limit := 2/(1-a.Beta2) - 1
	power := ops.Sub(b, ops.OnesLike(b, left), left)
	rho := addConst(b, ops.Neg(b, scale(b, ops.Div(b, ops.Mul(b, count, power), left), 2)), limit)
	enough := ops.Gt(b, rho, ops.ConstLike(b, rho, 5))
	safe := ops.Select(b, enough, rho, ops.ConstLike(b, rho, 5))
	square := ops.Div(b, ops.Mul(b, addConst(b, safe, -4), addConst(b, safe, -2)), safe)
	root := ops.Sqrt(b, ops.Mul(b, scale(b, square, limit/((limit-4)*(limit-2))), left))
	size := ops.Div(b, rate, biasCorrection(b, a.Beta1, count))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		p, g = decayed(b, p, g, rate, a.WeightDecay, o.Decoupled)
		m, v := movingAverage(b, slots[0], g, a.Beta1), movingAverage(b, slots[1], ops.Mul(b, g, g), a.Beta2)
		by := ops.Div(b, ops.Convert(b, root, p.DType()), addConst(b, ops.Sqrt(b, v), a.Eps))
		return descend(b, p, ops.Mul(b, m, ops.Select(b, enough, by, ops.OnesLike(b, by))), size), []ir.Value{m, v}
	}
}

// withDefaults checks the hyperparameters and returns them with defaults.
func (o Adam) withDefaults(b *ir.Builder) Adam {
	o.Beta1, o.Beta2, o.Eps = orDefault(o.Beta1, 0.9), orDefault(o.Beta2, 0.999), orDefault(o.Eps, 1e-8)
	check(b, "adam", hyper{"Beta1", o.Beta1, unit}, hyper{"Beta2", o.Beta2, unit}, hyper{"Eps", o.Eps, positive}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	return o
}

// descend returns p − rate·step.
func descend(b *ir.Builder, p, step, rate ir.Value) ir.Value {
	return ops.Sub(b, p, ops.Mul(b, step, ops.Convert(b, rate, p.DType())))
}

// movingAverage returns beta·old + (1−beta)·x.
func movingAverage(b *ir.Builder, old, x ir.Value, beta float64) ir.Value {
	return ops.Add(b, scale(b, old, beta), scale(b, x, 1-beta))
}

// addConst returns x + by.
func addConst(b *ir.Builder, x ir.Value, by float64) ir.Value {
	return ops.Add(b, x, ops.Const(b, x.DType(), by))
}
