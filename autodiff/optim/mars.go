package optim

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

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
	inDomain(b, "mars", o.Beta1 > 0 && o.Beta1 < 1 && o.Gamma > 0)
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
