package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// int32Const returns an index constant.
func int32Const(x int) scalar.Expr { return scalar.ConstI(ir.I32, int64(x)) }

// both returns the conjunction of two conditions, where nil is one that always
// holds.
func both(p, q scalar.Expr) scalar.Expr {
	switch {
	case p == nil:
		return q
	case q == nil:
		return p
	}
	return scalar.And(p, q)
}

// strided divides a position by a step: it returns x/step and the condition
// that x is a multiple of step with a quotient in [0, size), nil where that is
// certain. x is known to lie in [lo, hi]. Where the condition fails the
// quotient is 0, so that loads stay inside. With nothing to load from, size 0,
// the condition is false.
func strided(x scalar.Expr, step, size, lo, hi int) (scalar.Expr, scalar.Expr) {
	if size == 0 {
		return int32Const(0), scalar.ConstBool(false)
	}
	var valid scalar.Expr
	if lo < 0 {
		valid = scalar.Ge(x, int32Const(0))
	}
	if hi > (size-1)*step {
		valid = both(valid, scalar.Le(x, int32Const((size-1)*step)))
	}
	quotient := x
	if step > 1 {
		valid = both(valid, scalar.Eq(scalar.Rem(x, int32Const(step)), int32Const(0)))
		quotient = scalar.Div(x, int32Const(step))
	}
	if valid == nil {
		return quotient, nil
	}
	return scalar.Select(valid, quotient, int32Const(0)), valid
}

// loadWhere returns the element of an operand at a position, which lies inside
// in any case, where a condition holds (nil: everywhere), and zero elsewhere.
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
