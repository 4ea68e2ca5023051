package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// GroupOptimizer is an [Optimizer] whose update of a parameter depends on all parameters that it
// trains. Its Begin method returns the rule of a parameter that it trains alone.
type GroupOptimizer interface {
	Optimizer
	// BeginGroup is Begin for several parameters.
	BeginGroup(b *ir.Builder, rate, count ir.Value) GroupRule
}

// GroupRule returns parameters with their new values and slots: a [Rule] of several parameters.
type GroupRule func(b *ir.Builder, params []Trained) []Trained

// Trained is a parameter that is updated, its gradient, and its slots.
type Trained struct {
	Value, Grad ir.Value
	Slots       []ir.Value
}

// alone returns the rule of a single parameter.
func (r GroupRule) alone() Rule {
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		updated := r(b, []Trained{{p, g, slots}})[0]
		return updated.Value, updated.Slots
	}
}

// dot returns the inner product of two lists of values, of type d.
func dot(b *ir.Builder, d ir.DType, x, y []ir.Value) ir.Value {
	products := make([]ir.Value, len(x))
	for i := range x {
		products[i] = ops.Convert(b, ops.Mul(b, x[i], y[i]), d)
	}
	return ops.SumAll(b, products...)
}

// split returns the values, gradients and slots of parameters.
func split(params []Trained) (p, g []ir.Value, slots [][]ir.Value) {
	for _, of := range params {
		p, g, slots = append(p, of.Value), append(g, of.Grad), append(slots, of.Slots)
	}
	return p, g, slots
}

// each returns f of every index.
func each(n int, f func(i int) ir.Value) []ir.Value {
	out := make([]ir.Value, n)
	for i := range out {
		out[i] = f(i)
	}
	return out
}

// timesScalar returns x·by, with by of rank 0 and any type.
func timesScalar(b *ir.Builder, x, by ir.Value) ir.Value {
	return ops.Mul(b, x, ops.Convert(b, by, x.DType()))
}

// Prodigy is [AdamW] that estimates the learning rate, after Mishchenko and Defazio, Prodigy: An
// Expeditiously Adaptive Parameter-Free Learner (2024), as in optax.contrib.prodigy: with d, which
// starts as First, and r = d·lr·√(1−Beta2ᵗ)/(1−Beta1ᵗ),
//
//	m ← Beta1·m + (1−Beta1)·d·g
//	v ← Beta2·v + (1−Beta2)·d²·g²
//	s ← √Beta2·s + d/First·r·g
//	n ← √Beta2·n + d/First·r·⟨g, p₀ − p⟩
//	d ← max(d, Growth·n/|s|₁)
//	p ← p − r·m/(√v + d·Eps) − r·WeightDecay·p
//
// where the products and norms are of all parameters together and p₀ are those before the first
// step. The learning rate, a factor of d, is usually 1. A zero field means its default, which is 0
// for WeightDecay.
type Prodigy struct {
	Adam
	First  float64 // positive; 1e-6 by default
	Growth float64 // positive; 1 by default
}

// SlotsFor returns "m", "v", "s" and "start" of the parameter's shape, and "n" and "d" of rank 0,
// which are the same for all parameters.
func (Prodigy) SlotsFor(param ir.Type) []Slot {
	return []Slot{{"m", param.Shape}, {"v", param.Shape}, {"s", param.Shape}, {"start", param.Shape}, {"n", nil}, {"d", nil}}
}

// Slots returns all names of SlotsFor.
func (Prodigy) Slots() []string { return []string{"m", "v", "s", "start", "n", "d"} }

// Begin checks the hyperparameters and returns the rule.
func (o Prodigy) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	return o.BeginGroup(b, rate, count).alone()
}

// BeginGroup checks the hyperparameters and returns the rule.
func (o Prodigy) BeginGroup(b *ir.Builder, rate, count ir.Value) GroupRule {
	o.First, o.Growth = orDefault(o.First, 1e-6), orDefault(o.Growth, 1)
	a := o.Adam.withDefaults(b)
	check(b, "prodigy", hyper{"First", o.First, positive}, hyper{"Growth", o.Growth, positive})
	c, wide := a.corrected(b, count), count.DType()
	size := ops.Mul(b, rate, ops.Div(b, ops.Sqrt(b, c.second), c.first))
	begins := ops.Eq(b, count, ops.OnesLike(b, count))
	return func(b *ir.Builder, params []Trained) []Trained {
		p, g, slots := split(params)
		start := each(len(p), func(i int) ir.Value { return ops.Select(b, begins, p[i], slots[i][3]) })
		moved := each(len(p), func(i int) ir.Value { return ops.Sub(b, start[i], p[i]) })
		first := ops.ConstLike(b, count, o.First)
		d := ops.Select(b, begins, first, ops.Convert(b, slots[0][5], wide))
		step := ops.Mul(b, d, size)
		weight := ops.Mul(b, ops.Div(b, d, first), step)
		keep := math.Sqrt(a.Beta2)
		n := ops.Add(b, scale(b, ops.Convert(b, slots[0][4], wide), keep), ops.Mul(b, weight, dot(b, wide, g, moved)))
		s := each(len(p), func(i int) ir.Value {
			return ops.Add(b, scale(b, slots[i][2], keep), timesScalar(b, g[i], weight))
		})
		long := ops.SumAll(b, each(len(s), func(i int) ir.Value { return ops.Convert(b, ops.Abs(b, s[i]), wide) })...)
		known := ops.Gt(b, long, ops.ZerosLike(b, long))
		found := ops.Div(b, scale(b, n, o.Growth), ops.Select(b, known, long, ops.OnesLike(b, long)))
		next := ops.Max(b, d, ops.Select(b, known, found, d))
		updated := make([]Trained, len(p))
		for i := range p {
			t := p[i].DType()
			m, v := a.moments(b, timesScalar(b, g[i], d), slots[i])
			root := ops.Add(b, ops.Sqrt(b, v), ops.Convert(b, scale(b, next, a.Eps), t))
			value := descend(b, decoupledDecay(b, p[i], step, a.WeightDecay), ops.Div(b, m, root), step)
			updated[i] = Trained{value, g[i], []ir.Value{m, v, s[i], start[i], ops.Convert(b, n, t), ops.Convert(b, next, t)}}
		}
		return updated
	}
}

// begin returns the rule of a group of parameters, which s.update applies to each in their order.
func (s *stepBuilder) begin(b *ir.Builder, of *Group, rate, count ir.Value) Rule {
	together, is := of.Optimizer.(GroupOptimizer)
	if !is {
		return of.Optimizer.Begin(b, rate, count)
	}
	var params []Trained
	for _, p := range s.params {
		if p.group == of {
			params = append(params, Trained{ops.Convert(b, p.value, p.grad.DType()), p.grad, p.slots})
		}
	}
	params = together.BeginGroup(b, rate, count)(b, params)
	return func(*ir.Builder, ir.Value, ir.Value, []ir.Value) (ir.Value, []ir.Value) {
		p := params[0]
		params = params[1:]
		return p.Value, p.Slots
	}
}
