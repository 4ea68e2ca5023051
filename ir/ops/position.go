package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// along returns a coordinate for computing positions along an axis of the given size, as
// I64 if they do not fit in I32.
func along(size int, at scalar.Expr) scalar.Expr {
	if size > loop.MaxElements {
		return loop.Long(at)
	}
	return at
}

// both returns the conjunction of two conditions; nil is a condition that always holds.
func both(p, q scalar.Expr) scalar.Expr {
	switch {
	case p == nil:
		return q
	case q == nil:
		return p
	}
	return scalar.And(p, q)
}

// strided divides a position by a step: it returns x/step and the condition that x is a
// multiple of step with a quotient in [0, size), nil if it always holds. x lies in [lo,
// hi]. The quotient is 0 where the condition fails, so that loads stay in bounds; for size
// 0 the condition is false.
func strided(x scalar.Expr, step, size, lo, hi int) (scalar.Expr, scalar.Expr) {
	if size == 0 {
		return loop.Int(0), scalar.ConstBool(false)
	}
	var valid scalar.Expr
	if lo < 0 {
		valid = scalar.Ge(x, loop.Int(0))
	}
	if hi > (size-1)*step {
		valid = both(valid, scalar.Le(x, loop.Int((size-1)*step)))
	}
	quotient := x
	if step > 1 {
		valid = both(valid, scalar.Eq(scalar.Rem(x, loop.Int(step)), loop.Int(0)))
		quotient = scalar.Div(x, loop.Int(step))
	}
	if valid == nil {
		return quotient, nil
	}
	return scalar.Select(valid, quotient, loop.Int(0)), valid
}

// loadWhere returns the element of an operand at a position, which is always in bounds,
// where valid holds (nil: everywhere), and zero elsewhere.
func loadWhere(n *ir.Node, load ir.Load, operand int, at ir.Index, valid scalar.Expr) scalar.Expr {
	zero := scalar.Const(n.Input(operand).DType(), 0)
	if valid == nil {
		return load(operand, at)
	}
	if v, ok := valid.IntConst(); ok && v == 0 {
		return zero
	}
	return scalar.Select(valid, load(operand, at), zero)
}
