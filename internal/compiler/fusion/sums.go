package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// sums reports whether a combination adds up numbers of f32, each apart from the others:
// one after the other, many lose digits.
func sums(accs []ir.Accumulator, combine func(a, b []scalar.Expr) []scalar.Expr) bool {
	a, b := make([]scalar.Expr, len(accs)), make([]scalar.Expr, len(accs))
	for i, acc := range accs {
		if acc.DType != ir.F32 {
			return false
		}
		a[i], b[i] = scalar.FreeVar("a", ir.F32), scalar.FreeVar("b", ir.F32)
	}
	for i, x := range combine(a, b) {
		if x.Op != scalar.OpAdd || x.Args[0] != a[i] || x.Args[1] != b[i] {
			return false
		}
	}
	return true
}

// Sums reports whether a reduction adds up numbers of f32 alone. The order is free: what
// runs it one after the other cuts it into blocks ([SumBlock]).
func (r *Reduction) Sums() bool { return sums(r.Accumulators, r.Combine) }

// SumBlock is how many terms of f32 are added one after the other: equal ones are then off
// by 5·10⁻⁷ at most. Sums of blocks are added up with what rounding leaves out
// ([scalar.TwoSum]), which costs little beside the terms.
const SumBlock = 32

// compensate makes each running sum two numbers, the sum and what rounding left out of it,
// and returns what these come to. Each waits only for the addition before, as a plain sum does.
func (x *Prefix) compensate(c *coder, element []scalar.Expr) []scalar.Expr {
	x.Terms = element
	var rests, kept, results []scalar.Expr
	for i, running := range x.Running {
		sum, left := scalar.TwoSum(running, element[i])
		rest := c.variable(ir.F32)
		x.Accumulators = append(x.Accumulators, ir.Accumulator{DType: ir.F32, Init: scalar.Const(ir.F32, 0)})
		x.Combined[i] = sum
		rests, kept = append(rests, rest), append(kept, scalar.Add(rest, left))
		results = append(results, scalar.Compensated(running, rest))
	}
	x.Running, x.Combined = append(x.Running, rests...), append(x.Combined, kept...)
	return results
}
