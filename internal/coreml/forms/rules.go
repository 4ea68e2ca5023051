package forms

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/ir/scalar/plain"
)

// rules rewrite operations that MIL lacks or defines differently, besides those of [plain.Rewrite]. They
// return nil for operands that need no rewrite. apply handles operations that package scalar would
// rewrite back.
var rules = map[scalar.Op]func(x scalar.Expr) scalar.Expr{
	scalar.OpIsNaN:    func(x scalar.Expr) scalar.Expr { return scalar.Ne(x.Args[0], x.Args[0]) },
	scalar.OpDiv:      divide,
	scalar.OpFloorDiv: safely,
	scalar.OpMod:      safely,
}

// like returns a constant of the element type of an expression.
func like(x scalar.Expr, v float64) scalar.Expr { return scalar.Const(x.Type, v) }

// divide rewrites truncated integer division by MIL's floor division.
func divide(x scalar.Expr) scalar.Expr {
	if x.Type != ir.I32 {
		return nil
	}
	a, b := x.Args[0], plain.Divisor(x.Args[1])
	q := scalar.FloorDiv(a, b)
	inexact := scalar.Ne(scalar.Mul(q, b), a)
	opposite := scalar.Ne(scalar.Lt(a, like(a, 0)), scalar.Lt(b, like(b, 0)))
	return scalar.Add(q, scalar.Convert(scalar.And(inexact, opposite), ir.I32))
}

// safely guards integers against division by 0.
func safely(x scalar.Expr) scalar.Expr {
	b := plain.Divisor(x.Args[1])
	if b == x.Args[1] || x.Type != ir.I32 || x.Args[1].Op == scalar.OpSelect {
		return nil
	}
	return scalar.New(x.Op, x.Args[0], b)
}
