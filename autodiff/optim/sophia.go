package optim

import (
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Sophia is the optimizer of Liu et al., Sophia: A Scalable Stochastic Second-order Optimizer for
// Language Model Pre-training (2023):
//
//	m ← Beta1·m + (1−Beta1)·g
//	p ← p − lr·WeightDecay·p
//	p ← p − lr·clip(m/max(Gamma·h, Eps), −1, 1)
//
// where h estimates the diagonal of the Hessian. [Sophia.Curvature] returns the graph that updates
// h; run it before the first step and then about every 10 steps. A zero field means its default.
type Sophia struct {
	Beta1       float64 // in (0, 1); 0.96 by default
	Beta2       float64 // of h, in (0, 1); 0.99 by default
	Gamma       float64 // positive; 0.05 by default
	Eps         float64 // positive; 1e-12 by default
	WeightDecay float64 // not negative; 0.01 by default
}

// Slots returns "m" and "h".
func (Sophia) Slots() []string { return []string{"m", "h"} }

// withDefaults checks the hyperparameters and returns them with defaults.
func (o Sophia) withDefaults(b *ir.Builder) Sophia {
	o = Sophia{orDefault(o.Beta1, 0.96), orDefault(o.Beta2, 0.99), orDefault(o.Gamma, 0.05), orDefault(o.Eps, 1e-12), orDefault(o.WeightDecay, 0.01)}
	check(b, "sophia", hyper{"Beta1", o.Beta1, unit}, hyper{"Beta2", o.Beta2, unit}, hyper{"Gamma", o.Gamma, positive}, hyper{"Eps", o.Eps, positive}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	return o
}

// Begin checks the hyperparameters and returns the rule, which does not change h.
func (o Sophia) Begin(b *ir.Builder, rate, _ ir.Value) Rule {
	o = o.withDefaults(b)
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		d := p.DType()
		m := movingAverage(b, slots[0], g, o.Beta1)
		size := ops.Max(b, scale(b, slots[1], o.Gamma), ops.Const(b, d, o.Eps))
		u := ops.Clamp(b, ops.Div(b, m, size), ops.ConstLike(b, p, -1), ops.ConstLike(b, p, 1))
		return descend(b, decoupledDecay(b, p, rate, o.WeightDecay), u, rate), []ir.Value{m, slots[1]}
	}
}

// Curvature returns the graph of an entry that updates the curvature estimates of a [Step] with
// Sophia. It has the inputs of the loss. For each trained parameter it computes h ← Beta2·h +
// (1−Beta2)·u·(H·u), where H is the Hessian of the loss. The elements of u are randomly 1 or −1,
// drawn from seed and the step count (Hutchinson's estimator, whose mean is the diagonal of H).
// options are those of Step; Frozen and Name are used. The errors are those of Step.
func (o Sophia) Curvature(loss *ir.Graph, lossName string, seed uint64, options Options) (*ir.Graph, error) {
	params, err := trained(loss, options.Frozen)
	if err != nil {
		return nil, err
	}
	second, err := autodiff.HVPWith(loss, lossName, autodiff.Options{Wrt: params, Missing: autodiff.MissingIsZero})
	if err != nil {
		return nil, err
	}
	return ir.Build(loss.Name()+"/curvature", func(b *ir.Builder) { o.withDefaults(b).curvature(b, second, params, seed, options) })
}

// curvature updates h. The last ports of second are the tangents of the parameters, its last
// outputs the Hessian-vector products.
func (o Sophia) curvature(b *ir.Builder, second *ir.Graph, params []string, seed uint64, options Options) {
	step := ops.Convert(b, b.Param(options.StepState(), ir.I32), ir.U32)
	key := ops.FoldIn(b, ops.Key(b, seed), step)
	first := len(second.Ports()) - len(params)
	var in, u []ir.Value
	for i, p := range second.Ports() {
		t := p.Value.Type()
		if i < first {
			in = append(in, b.Port(readOnly(p.Kind), p.Name, t))
			continue
		}
		own := ops.FoldIn(b, key, ops.Const(b, ir.U32, float64(i-first)))
		heads := ops.Bernoulli(b, own, ops.Const(b, ir.F32, 0.5), t.Shape...)
		u = append(u, ops.Select(b, heads, ops.Ones(b, t.DType, t.Shape...), ops.Const(b, t.DType, -1, t.Shape...)))
		in = append(in, u[i-first])
	}
	out := b.Splice(second, in)
	products := out[len(out)-len(params):]
	for i, name := range params {
		d := updateType(u[i].DType())
		h := b.State(options.SlotState("h", name), d, u[i].Shape()...)
		estimate := ops.Convert(b, ops.Mul(b, u[i], products[i]), d)
		b.SetState(options.SlotState("h", name), movingAverage(b, h, estimate, o.Beta2))
	}
}

// readOnly returns the kind of a port in a graph that does not update the states of the loss.
func readOnly(kind ir.PortKind) ir.PortKind {
	if kind == ir.StatePort {
		return ir.ParamPort
	}
	return kind
}
