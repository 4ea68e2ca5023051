// Package plain writes scalar operations that a graph format lacks by those that all have: arithmetic,
// comparisons, selection, exp, log, floor, ceil and erf. It looks at no bits, where package scalar does.
// The input and output of each function are expressions of a float type.
package plain

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Rewrite returns an expression equal to x without x's own operation, or nil where this package has no
// rewriting of it. It has one of trunc, expm1, log1p, erfc, is_finite, mul_zero, atan2 and clamp.
func Rewrite(x scalar.Expr) scalar.Expr {
	switch x.Op {
	case scalar.OpTrunc:
		return Trunc(x.Args[0])
	case scalar.OpExpm1:
		return Expm1(x.Args[0])
	case scalar.OpLog1p:
		return Log1p(x.Args[0])
	case scalar.OpErfc:
		return Erfc(x.Args[0])
	case scalar.OpIsFinite:
		return IsFinite(x.Args[0])
	case scalar.OpMulZero:
		return MulZero(x.Args[0], x.Args[1])
	case scalar.OpAtan2:
		return Atan2(x.Args[0], x.Args[1])
	case scalar.OpClamp:
		return scalar.Min(scalar.Max(x.Args[0], x.Args[1]), x.Args[2])
	}
	return nil
}

// like returns a constant of the element type of an expression.
func like(x scalar.Expr, v float64) scalar.Expr { return scalar.Const(x.Type, v) }

// Trunc returns a rounded toward zero.
func Trunc(a scalar.Expr) scalar.Expr {
	return scalar.Select(scalar.Lt(a, like(a, 0)), scalar.Ceil(a), scalar.Floor(a))
}

// Expm1 returns exp(x) − 1 as tanh(x/2)·(exp(x) + 1), which does not cancel near 0.
func Expm1(x scalar.Expr) scalar.Expr {
	return scalar.Mul(scalar.Tanh(scalar.Mul(x, like(x, 0.5))), scalar.Add(scalar.Exp(x), like(x, 1)))
}

// Log1p returns log(1 + x) as log(u)·x/(u − 1) for the rounded u = 1 + x, which corrects the
// rounding error (Kahan; in Goldberg, What Every Computer Scientist Should Know About
// Floating-Point Arithmetic, theorem 4).
func Log1p(x scalar.Expr) scalar.Expr {
	one := like(x, 1)
	u := scalar.Add(x, one)
	logU := scalar.Log(u)
	plain := scalar.Or(scalar.Eq(u, one), scalar.Not(scalar.IsFinite(u)))
	corrected := scalar.Mul(logU, scalar.Div(x, scalar.Select(plain, one, scalar.Sub(u, one))))
	return scalar.Select(scalar.Eq(u, one), x, scalar.Select(plain, u, corrected))
}

// IsFinite compares |a| with the largest number, which NaN and infinities do not pass.
func IsFinite(a scalar.Expr) scalar.Expr {
	largest := float64(math.MaxFloat32)
	switch a.Type {
	case dtype.F16:
		largest = 65504
	case dtype.F64:
		largest = math.MaxFloat64
	}
	return scalar.Le(scalar.Abs(a), like(a, largest))
}

// MulZero returns a·b, 0 where either is 0.
func MulZero(a, b scalar.Expr) scalar.Expr {
	zero := like(a, 0)
	return scalar.Select(scalar.Or(scalar.Eq(a, zero), scalar.Eq(b, zero)), zero, scalar.Mul(a, b))
}

// Divisor returns an integer divisor with 0 replaced by 1.
func Divisor(b scalar.Expr) scalar.Expr {
	if v, ok := b.IntConst(); ok && v != 0 {
		return b
	}
	return scalar.Select(scalar.Eq(b, like(b, 0)), like(b, 1), b)
}

// Atan2 turns the arc tangent of y/x by π where x is negative.
func Atan2(y, x scalar.Expr) scalar.Expr {
	zero, one, pi := like(y, 0), like(y, 1), like(y, math.Pi)
	sign := func(v scalar.Expr) scalar.Expr { return scalar.Select(Negative(v), like(y, -1), one) }
	bothInfinite := scalar.And(infinite(x), infinite(y))
	bothZero := scalar.And(scalar.Eq(x, zero), scalar.Eq(y, zero))
	ratio := scalar.Div(scalar.Select(bothInfinite, sign(y), y), scalar.Select(bothInfinite, sign(x), scalar.Select(bothZero, sign(x), x)))
	shifted := scalar.Add(scalar.Atan(ratio), scalar.Mul(pi, sign(y)))
	return scalar.Select(Negative(x), shifted, scalar.Atan(ratio))
}

// Negative returns the sign bit of a number, including −0, by its reciprocal.
func Negative(x scalar.Expr) scalar.Expr {
	zero := like(x, 0)
	return scalar.Or(scalar.Lt(x, zero), scalar.And(scalar.Eq(x, zero), scalar.Lt(scalar.Div(like(x, 1), x), zero)))
}

// infinite reports infinities, but not NaN.
func infinite(x scalar.Expr) scalar.Expr { return scalar.Eq(scalar.Abs(x), like(x, math.Inf(1))) }

// Erfc returns 1 − erf(x): by that near 0, and beyond it as exp(−x²) times a polynomial of
// 2/(|x| + 2). The square is taken of a head with few bits, exactly, and of the rest. It is as exact as f32.
func Erfc(x scalar.Expr) scalar.Expr {
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
