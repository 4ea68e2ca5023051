package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// AMSGrad is [Adam] whose second moment does not decrease, after Reddi, Kale and Kumar, On the
// Convergence of Adam and Beyond (2018), as in torch.optim.Adam and AdamW with amsgrad: the update
// divides by the largest v so far. A zero field means its default.
type AMSGrad struct {
	Adam
	Decoupled bool // weight decay as in AdamW, 0.01 by default
}

// Adamax is the variant of [Adam] by the infinity norm, of the same paper (section 7.1), as in
// torch.optim.Adamax:
//
//	g ← g + WeightDecay·p
//	m ← Beta1·m + (1−Beta1)·g
//	u ← max(Beta2·u, |g| + Eps)
//	p ← p − lr/(1−Beta1ᵗ)·m/u
//
// A zero field means its default.
type Adamax struct{ Adam }

// AdaBelief is [Adam] by the spread of the gradient around its mean, after Zhuang et al., AdaBelief
// Optimizer (2020), as in optax.adabelief:
//
//	v ← Beta2·v + (1−Beta2)·(g − m)² + Eps
//
// with the new m. A zero field means its default, which is 1e-16 for Eps. Weight decay is
// decoupled, 0 by default.
type AdaBelief struct{ Adam }

// QHAdamW is the quasi-hyperbolic variant of [AdamW] of Ma and Yarats, Quasi-hyperbolic Momentum and
// Adam for Deep Learning (2019):
//
//	p ← p − lr·WeightDecay·p
//	p ← p − lr·((1−Nu1)·g + Nu1·m̂)/(√((1−Nu2)·g² + Nu2·v̂) + Eps)
//
// with the moments m̂ and v̂ of Adam, corrected for their bias. A zero field means its default.
type QHAdamW struct {
	Adam
	Nu1 float64 // in (0, 1]; 0.7 by default
	Nu2 float64 // in (0, 1]; 1 by default
}

// Adan is the optimizer of Xie et al., Adan: Adaptive Nesterov Momentum Algorithm for Faster
// Optimizing Deep Models (2022), with the authors' convention that the betas are decay rates:
//
//	d ← g − g'                                   of the gradient of the step before, 0 at the first
//	m ← Beta1·m + (1−Beta1)·g
//	v ← Beta2·v + (1−Beta2)·d
//	n ← Beta3·n + (1−Beta3)·(g + Beta2·d)²
//	p ← (p − lr·(m̂ + Beta2·v̂)/(√n̂ + Eps))/(1 + lr·WeightDecay)
//
// with averages corrected for their bias. A zero field means its default.
type Adan struct {
	Beta1       float64 // in (0, 1); 0.98 by default
	Beta2       float64 // in (0, 1); 0.92 by default
	Beta3       float64 // in (0, 1); 0.99 by default
	Eps         float64 // positive; 1e-8 by default
	WeightDecay float64 // not negative; 0 for none
}

// AdEMAMix is [AdamW] with a second, slow average of the gradient, after Pagliardini, Ablin and
// Grangier, The AdEMAMix Optimizer (2024):
//
//	s ← β·s + (1−β)·g
//	p ← p − lr·((m̂ + α·s)/(√v̂ + Eps) + WeightDecay·p)
//
// where α and β are Alpha and Beta3, after the Warm steps in which the first grows linearly from 0
// and the half-life of the second from that of Beta1. A zero field means its default, which is 0 for
// WeightDecay.
type AdEMAMix struct {
	Adam
	Beta3 float64 // in (0, 1); 0.9999 by default
	Alpha float64 // not negative; 5 by default
	Warm  int     // in steps, not negative; 0 for none
}

// Slots returns "m", "v" and "top", the largest v.
func (AMSGrad) Slots() []string { return []string{"m", "v", "top"} }

// Slots returns "m" and "u".
func (Adamax) Slots() []string { return []string{"m", "u"} }

// Slots returns "m", "v", "n" and "g".
func (Adan) Slots() []string { return []string{"m", "v", "n", "g"} }

// Slots returns "m", "v" and "s".
func (AdEMAMix) Slots() []string { return []string{"m", "v", "s"} }

// corrected are Adam's bias corrections of a step.
type corrected struct{ first, second ir.Value }

func (o Adam) corrected(b *ir.Builder, count ir.Value) corrected {
	return corrected{biasCorrection(b, o.Beta1, count), biasCorrection(b, o.Beta2, count)}
}

// mean returns m/(1−Beta1ᵗ).
func (c corrected) mean(b *ir.Builder, m ir.Value) ir.Value { return unbiased(b, m, c.first) }

// root returns √(v/(1−Beta2ᵗ)) + eps.
func (c corrected) root(b *ir.Builder, v ir.Value, eps float64) ir.Value {
	return addConst(b, ops.Sqrt(b, unbiased(b, v, c.second)), eps)
}

func unbiased(b *ir.Builder, average, correction ir.Value) ir.Value {
	return ops.Div(b, average, ops.Convert(b, correction, average.DType()))
}

// moments returns the averages of the gradient and of its square.
func (o Adam) moments(b *ir.Builder, g ir.Value, slots []ir.Value) (m, v ir.Value) {
	return movingAverage(b, slots[0], g, o.Beta1), movingAverage(b, slots[1], ops.Mul(b, g, g), o.Beta2)
}

// Begin checks the hyperparameters and returns the rule.
func (o AMSGrad) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	if o.Decoupled {
		o.WeightDecay = orDefault(o.WeightDecay, 0.01)
	}
	a := o.Adam.withDefaults(b)
	c := a.corrected(b, count)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		p, g = decayed(b, p, g, rate, a.WeightDecay, o.Decoupled)
		m, v := a.moments(b, g, slots)
		top := ops.Max(b, slots[2], v)
		return descend(b, p, ops.Div(b, c.mean(b, m), c.root(b, top, a.Eps)), rate), []ir.Value{m, v, top}
	}
}

// decayed applies weight decay to the parameter where it is decoupled, and otherwise to the gradient.
func decayed(b *ir.Builder, p, g, rate ir.Value, decay float64, decoupled bool) (ir.Value, ir.Value) {
	if decoupled {
		return decoupledDecay(b, p, rate, decay), g
	}
	return p, l2Decay(b, p, g, decay)
}

// Begin checks the hyperparameters and returns the rule.
func (o Adamax) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	a := o.Adam.withDefaults(b)
	size := ops.Div(b, rate, biasCorrection(b, a.Beta1, count))
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		g = l2Decay(b, p, g, a.WeightDecay)
		m := movingAverage(b, slots[0], g, a.Beta1)
		u := ops.Max(b, scale(b, slots[1], a.Beta2), addConst(b, ops.Abs(b, g), a.Eps))
		return descend(b, p, ops.Div(b, m, u), size), []ir.Value{m, u}
	}
}

// Begin checks the hyperparameters and returns the rule.
func (o AdaBelief) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Eps = orDefault(o.Eps, 1e-16)
	a := o.Adam.withDefaults(b)
	c := a.corrected(b, count)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		m := movingAverage(b, slots[0], g, a.Beta1)
		v := addConst(b, movingAverage(b, slots[1], ops.Square(b, ops.Sub(b, g, m)), a.Beta2), a.Eps)
		step := ops.Div(b, c.mean(b, m), c.root(b, v, a.Eps))
		return descend(b, decoupledDecay(b, p, rate, a.WeightDecay), step, rate), []ir.Value{m, v}
	}
}

// Begin checks the hyperparameters and returns the rule.
func (o QHAdamW) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.WeightDecay, o.Nu1, o.Nu2 = orDefault(o.WeightDecay, 0.01), orDefault(o.Nu1, 0.7), orDefault(o.Nu2, 1)
	a := o.Adam.withDefaults(b)
	check(b, "qhadamw", hyper{"Nu1", o.Nu1, atMostOne}, hyper{"Nu2", o.Nu2, atMostOne})
	c := a.corrected(b, count)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		m, v := a.moments(b, g, slots)
		along := movingAverage(b, c.mean(b, m), g, o.Nu1)
		square := movingAverage(b, unbiased(b, v, c.second), ops.Mul(b, g, g), o.Nu2)
		step := ops.Div(b, along, addConst(b, ops.Sqrt(b, square), a.Eps))
		return descend(b, decoupledDecay(b, p, rate, a.WeightDecay), step, rate), []ir.Value{m, v}
	}
}

// Begin checks the hyperparameters and returns the rule.
func (o Adan) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Beta3 = orDefault(o.Beta3, 0.99)
	a := Adam{orDefault(o.Beta1, 0.98), orDefault(o.Beta2, 0.92), o.Eps, o.WeightDecay}.withDefaults(b)
	check(b, "adan", hyper{"Beta3", o.Beta3, unit})
	c, third := a.corrected(b, count), biasCorrection(b, o.Beta3, count)
	first := ops.Eq(b, count, ops.OnesLike(b, count))
	shrink := addConst(b, scale(b, rate, a.WeightDecay), 1)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		change := ops.Sub(b, g, ops.Select(b, first, g, slots[3]))
		m, v := movingAverage(b, slots[0], g, a.Beta1), movingAverage(b, slots[1], change, a.Beta2)
		n := movingAverage(b, slots[2], ops.Square(b, ops.Add(b, g, scale(b, change, a.Beta2))), o.Beta3)
		ahead := ops.Add(b, c.mean(b, m), scale(b, unbiased(b, v, c.second), a.Beta2))
		p = descend(b, p, ops.Div(b, ahead, addConst(b, ops.Sqrt(b, unbiased(b, n, third)), a.Eps)), rate)
		if hasDecay(a.WeightDecay) {
			p = unbiased(b, p, shrink)
		}
		return p, []ir.Value{m, v, n, g}
	}
}

// Begin checks the hyperparameters and returns the rule.
func (o AdEMAMix) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	o.Beta3, o.Alpha = orDefault(o.Beta3, 0.9999), orDefault(o.Alpha, 5)
	a := o.Adam.withDefaults(b)
	check(b, "ademamix", hyper{"Beta3", o.Beta3, unit}, hyper{"Alpha", o.Alpha, notNegative}, hyper{"Warm", float64(o.Warm), notNegative})
	c := a.corrected(b, count)
	alpha, beta := o.slow(b, count, a.Beta1)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		d := p.DType()
		m, v := a.moments(b, g, slots)
		s := ops.Add(b, g, ops.Mul(b, ops.Convert(b, beta, d), ops.Sub(b, slots[2], g)))
		along := ops.Add(b, c.mean(b, m), ops.Mul(b, ops.Convert(b, alpha, d), s))
		step := l2Decay(b, p, ops.Div(b, along, c.root(b, v, a.Eps)), a.WeightDecay)
		return descend(b, p, step, rate), []ir.Value{m, v, s}
	}
}

// slow returns the weight of the slow average and its beta at a step: with x = min(1, t/Warm), the
// logarithm of beta is log Beta1·log Beta3/((1−x)·log Beta3 + x·log Beta1).
func (o AdEMAMix) slow(b *ir.Builder, count ir.Value, beta1 float64) (alpha, beta ir.Value) {
	if o.Warm <= 0 {
		return ops.ConstLike(b, count, o.Alpha), ops.ConstLike(b, count, o.Beta3)
	}
	fast, slow := math.Log(beta1), math.Log(o.Beta3)
	x := ops.Min(b, scale(b, count, 1/float64(o.Warm)), ops.OnesLike(b, count))
	below := addConst(b, scale(b, x, fast-slow), slow)
	return scale(b, x, o.Alpha), ops.Exp(b, ops.Div(b, ops.ConstLike(b, count, fast*slow), below))
}
