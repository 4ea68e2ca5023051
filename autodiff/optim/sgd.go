package optim

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// SGD is stochastic gradient descent, as torch.optim.SGD:
//
//	g ← g + WeightDecay·p
//	m ← Momentum·m + (1−Dampening)·g           at the first step g
//	p ← p − lr·m               or, with Nesterov, p − lr·(g + Momentum·m)
//
// Without momentum the update is p − lr·g and there is no slot. The zero value has neither momentum
// nor weight decay.
type SGD struct {
	Momentum    float64 // in [0, 1); 0 for none
	Dampening   float64 // in [0, 1); 0 for none
	Nesterov    bool    // needs a momentum, and no dampening
	WeightDecay float64 // not negative; 0 for none
}

// Slots returns "m" with momentum, nothing otherwise.
func (o SGD) Slots() []string {
	if o.Momentum == 0 {
		return nil
	}
	return []string{"m"}
}

// Begin checks the hyperparameters and returns the rule.
func (o SGD) Begin(b *ir.Builder, rate, count ir.Value) Rule {
	check(b, "sgd", hyper{"Momentum", o.Momentum, belowOne}, hyper{"Dampening", o.Dampening, belowOne}, hyper{"WeightDecay", o.WeightDecay, notNegative})
	if o.Nesterov && o.Momentum == 0 {
		b.Fail(ir.Attrf("sgd: Momentum is 0; with Nesterov it must be positive"))
	}
	if o.Nesterov && o.Dampening != 0 {
		b.Fail(ir.Attrf("sgd: Dampening is %v; with Nesterov it must be 0", o.Dampening))
	}
	return func(b *ir.Builder, p, g ir.Value, slots []ir.Value) (ir.Value, []ir.Value) {
		g = l2Decay(b, p, g, o.WeightDecay)
		if o.Momentum != 0 {
			m := ops.Add(b, scale(b, slots[0], o.Momentum), o.dampened(b, g, count))
			slots = []ir.Value{m}
			if o.Nesterov {
				g = ops.Add(b, g, scale(b, m, o.Momentum))
			} else {
				g = m
			}
		}
		return ops.Sub(b, p, ops.Mul(b, g, ops.Convert(b, rate, p.DType()))), slots
	}
}

// dampened returns the part of a gradient that is added to the momentum.
func (o SGD) dampened(b *ir.Builder, g, count ir.Value) ir.Value {
	if o.Dampening == 0 {
		return g
	}
	return ops.Select(b, ops.Eq(b, count, ops.OnesLike(b, count)), g, scale(b, g, 1-o.Dampening))
}

// NoDecay is a weight decay of zero, for optimizers whose WeightDecay field has another default. It
// is the smallest positive float64, since a zero field means the default. Other hyperparameters take it as 0, too: the
// Beta1 of Adam, for instance, which is 0 in many adversarial networks.
const NoDecay = math.SmallestNonzeroFloat64

// hasDecay reports whether a weight decay has an effect.
func hasDecay(decay float64) bool { return decay != 0 && decay != NoDecay }

// l2Decay adds the gradient of decay·|p|²/2 to a gradient.
func l2Decay(b *ir.Builder, p, g ir.Value, decay float64) ir.Value {
	if !hasDecay(decay) {
		return g
	}
	return ops.Add(b, g, scale(b, p, decay))
}

// decoupledDecay returns p − lr·decay·p.
func decoupledDecay(b *ir.Builder, p, rate ir.Value, decay float64) ir.Value {
	if !hasDecay(decay) {
		return p
	}
	return ops.Sub(b, p, ops.Mul(b, p, ops.Convert(b, scale(b, rate, decay), p.DType())))
}

// scale returns x·by.
func scale(b *ir.Builder, x ir.Value, by float64) ir.Value {
	return ops.Mul(b, x, ops.Const(b, x.DType(), by))
}
