package forms

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/ir/scalar/plain"
)

// rules rewrite operations that MIL lacks or defines differently. They handle floats and i32 and
// return nil for operands that need no rewrite. Unlike those of package scalar they use no bit
// operations, which MIL lacks. apply handles operations that package scalar would rewrite back.
var rules map[scalar.Op]func(x scalar.Expr) scalar.Expr

func init() {
	rules = map[scalar.Op]func(x scalar.Expr) scalar.Expr{
		scalar.OpTrunc:    func(x scalar.Expr) scalar.Expr { return plain.Trunc(x.Args[0]) },
		scalar.OpExpm1:    func(x scalar.Expr) scalar.Expr { return plain.Expm1(x.Args[0]) },
		scalar.OpLog1p:    func(x scalar.Expr) scalar.Expr { return plain.Log1p(x.Args[0]) },
		scalar.OpErfc:     func(x scalar.Expr) scalar.Expr { return plain.Erfc(x.Args[0]) },
		scalar.OpIsNaN:    func(x scalar.Expr) scalar.Expr { return scalar.Ne(x.Args[0], x.Args[0]) },
		scalar.OpIsFinite: func(x scalar.Expr) scalar.Expr { return plain.IsFinite(x.Args[0]) },
		scalar.OpMulZero:  func(x scalar.Expr) scalar.Expr { return plain.MulZero(x.Args[0], x.Args[1]) },
		scalar.OpDiv:      divide,
		scalar.OpFloorDiv: safely,
		scalar.OpMod:      safely,
		scalar.OpAtan2:    func(x scalar.Expr) scalar.Expr { return plain.Atan2(x.Args[0], x.Args[1]) },
		scalar.OpClamp: func(x scalar.Expr) scalar.Expr {
			return scalar.Min(scalar.Max(x.Args[0], x.Args[1]), x.Args[2])
		},
	}
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
