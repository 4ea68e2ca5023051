//go:build !js

package optim

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// begin returns the rule of a group of parameters, which s.update applies to each in their order.
func (s *step) begin(b *ir.Builder, of *Group, rate, count ir.Value) Rule {
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
