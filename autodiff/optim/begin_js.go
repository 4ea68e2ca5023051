package optim

import "github.com/rlx-go/rlx/ir"

// begin returns the rule of a group of parameters. The page's compiler has no [GroupOptimizer], for its size.
func (s *step) begin(b *ir.Builder, of *Group, rate, count ir.Value) Rule {
	return of.Optimizer.Begin(b, rate, count)
}
