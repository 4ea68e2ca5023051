package forms

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rules write operations that MIL lacks, or means otherwise, by those it has.
// They work on floats and i32 and return nil for operands that need no rule.
// They do not look at bits, as those of package scalar do, since MIL cannot. What
// package scalar would turn back into itself is written by apply.
var rules map[scalar.Op]func(x scalar.Expr) scalar.Expr

func init() {
	rules = map[scalar.Op]func(x scalar.Expr) scalar.Expr{
		scalar.OpTrunc:    trunc,
		scalar.OpExpm1:    func(x scalar.Expr) scalar.Expr { return expm1(x.Args[0]) },
		scalar.OpLog1p:    func(x scalar.Expr) scalar.Expr { return log1p(x.Args[0]) },
		scalar.OpErfc:     func(x scalar.Expr) scalar.Expr { return erfc(x.Args[0]) },
		scalar.OpIsNaN:    func(x scalar.Expr) scalar.Expr { return scalar.Ne(x.Args[0], x.Args[0]) },
		scalar.OpIsFinite: isFinite,
		scalar.OpMulZero:  mulZero,
		scalar.OpDiv:      divide,
		scalar.OpFloorDiv: safely,
		scalar.OpMod:      safely,
		scalar.OpAtan2:    func(x scalar.Expr) scalar.Expr { return atan2(x.Args[0], x.Args[1]) },
		scalar.OpClamp: func(x scalar.Expr) scalar.Expr {
			return scalar.Min(scalar.Max(x.Args[0], x.Args[1]), x.Args[2])
		},
	}
}

// like returns a constant of the element type of an expression.
func like(x scalar.Expr, v float64) scalar.Expr { return scalar.Const(x.Type, v) }

func trunc(x scalar.Expr) scalar.Expr {
	a := x.Args[0]
	return scalar.Select(scalar.Lt(a, like(a, 0)), scalar.Ceil(a), scalar.Floor(a))
}

// expm1 is tanh(x/2)·(exp(x) + 1), which does not cancel near 0.
func expm1(x scalar.Expr) scalar.Expr {
	return scalar.Mul(scalar.Tanh(scalar.Mul(x, like(x, 0.5))), scalar.Add(scalar.Exp(x), like(x, 1)))
}

// log1p is log(u)·x/(u − 1) for u = 1 + x as it is rounded, which corrects what
// the rounding took (Kahan; in Goldberg, What Every Computer Scientist Should Know
// About Floating-Point Arithmetic, theorem 4).
func log1p(x scalar.Expr) scalar.Expr {
	one := like(x, 1)
	u := scalar.Add(x, one)
	logU := scalar.Log(u)
	plain := scalar.Or(scalar.Eq(u, one), scalar.Not(scalar.IsFinite(u)))
	corrected := scalar.Mul(logU, scalar.Div(x, scalar.Select(plain, one, scalar.Sub(u, one))))
	return scalar.Select(scalar.Eq(u, one), x, scalar.Select(plain, u, corrected))
}

// isFinite compares with the largest number, which NaN and infinities do not pass.
func isFinite(x scalar.Expr) scalar.Expr {
	a := x.Args[0]
	largest := float64(math.MaxFloat32)
	if a.Type == ir.F16 {
		largest = 65504
	}
	return scalar.Le(scalar.Abs(a), like(a, largest))
}

func mulZero(x scalar.Expr) scalar.Expr {
	a, b, zero := x.Args[0], x.Args[1], like(x, 0)
	return scalar.Select(scalar.Or(scalar.Eq(a, zero), scalar.Eq(b, zero)), zero, scalar.Mul(a, b))
}

// divisor returns an integer divisor with 0 replaced by 1.
func divisor(b scalar.Expr) scalar.Expr {
	if v, ok := b.IntConst(); ok && v != 0 {
		return b
	}
	return scalar.Select(scalar.Eq(b, like(b, 0)), like(b, 1), b)
}

// divide writes the quotient of integers, which is cut, by the one that is
// rounded down.
func divide(x scalar.Expr) scalar.Expr {
	if x.Type != ir.I32 {
		return nil
	}
	a, b := x.Args[0], divisor(x.Args[1])
	q := scalar.FloorDiv(a, b)
	inexact := scalar.Ne(scalar.Mul(q, b), a)
	opposite := scalar.Ne(scalar.Lt(a, like(a, 0)), scalar.Lt(b, like(b, 0)))
	return scalar.Add(q, scalar.Convert(scalar.And(inexact, opposite), ir.I32))
}

// safely guards integers against division by 0.
func safely(x scalar.Expr) scalar.Expr {
	b := divisor(x.Args[1])
	if b == x.Args[1] || x.Type != ir.I32 || x.Args[1].Op == scalar.OpSelect {
		return nil
	}
	return scalar.New(x.Op, x.Args[0], b)
}

// atan2 turns the arc tangent of y/x by π where x is negative.
func atan2(y, x scalar.Expr) scalar.Expr {
	zero, one, pi := like(y, 0), like(y, 1), like(y, math.Pi)
	sign := func(v scalar.Expr) scalar.Expr { return scalar.Select(negative(v), like(y, -1), one) }
	bothInfinite := scalar.And(infinite(x), infinite(y))
	bothZero := scalar.And(scalar.Eq(x, zero), scalar.Eq(y, zero))
	ratio := scalar.Div(scalar.Select(bothInfinite, sign(y), y), scalar.Select(bothInfinite, sign(x), scalar.Select(bothZero, sign(x), x)))
	turned := scalar.Add(scalar.Atan(ratio), scalar.Mul(pi, sign(y)))
	return scalar.Select(negative(x), turned, scalar.Atan(ratio))
}

// negative returns the sign bit of a number, including −0, by its reciprocal.
func negative(x scalar.Expr) scalar.Expr {
	zero := like(x, 0)
	return scalar.Or(scalar.Lt(x, zero), scalar.And(scalar.Eq(x, zero), scalar.Lt(scalar.Div(like(x, 1), x), zero)))
}

// infinite reports infinities, but not NaN.
func infinite(x scalar.Expr) scalar.Expr { return scalar.Eq(scalar.Abs(x), like(x, math.Inf(1))) }

// erfc is 1 − erf near 0, and beyond it exp(−x²) times a polynomial of 2/(|x| + 2).
// The square is taken of a head with few bits, exactly, and of the rest.
func erfc(x scalar.Expr) scalar.Expr {
	_, far := scalar.Coefficients(scalar.OpErfc)
	a := scalar.Min(scalar.Abs(x), like(x, 10.1))
	head := scalar.Mul(scalar.Floor(scalar.Mul(a, like(x, 16))), like(x, 1.0/16))
	rest := scalar.Mul(scalar.Sub(a, head), scalar.Add(a, head))
	t := scalar.Div(like(x, 2), scalar.Add(a, like(x, 2)))
	poly := like(x, 0)
	for i := len(far) - 1; i >= 0; i-- {
		poly = scalar.Add(scalar.Mul(poly, t), like(x, far[i]))
	}
	square := scalar.Exp(scalar.Neg(scalar.Mul(head, head)))
	tail := scalar.Mul(scalar.Mul(square, scalar.Exp(scalar.Neg(rest))), scalar.Mul(t, poly))
	y := scalar.Select(scalar.Lt(x, like(x, 0)), scalar.Sub(like(x, 2), tail), tail)
	return scalar.Select(scalar.Lt(a, like(x, 0.75)), scalar.Sub(like(x, 1), scalar.Erf(x)), y)
}
