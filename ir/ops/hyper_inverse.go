package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The inverses of the hyperbolic functions.
const (
	OpAsinh ir.Op = "asinh"
	OpAcosh ir.Op = "acosh"
	OpAtanh ir.Op = "atanh"
)

func init() {
	defineUnary(unary{
		op: OpAsinh, doc: "The inverse hyperbolic sine of x.",
		types: floats, scalar: widened(asinhOf), meaning: meaning{float: float1(math.Asinh)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value {
			return Rsqrt(b, Add(b, Mul(b, x, x), OnesLike(b, x)))
		},
	})
	defineUnary(unary{
		op: OpAcosh, doc: "The inverse hyperbolic cosine of x, NaN below 1. The derivative at 1 is infinite.",
		types: floats, scalar: widened(acoshOf), meaning: meaning{float: float1(math.Acosh)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value {
			one := OnesLike(b, x)
			return Rsqrt(b, Mul(b, Sub(b, x, one), Add(b, x, one)))
		},
	})
	defineUnary(unary{
		op: OpAtanh, doc: "The inverse hyperbolic tangent of x: infinite at ±1, NaN beyond.",
		types: floats, scalar: widened(atanhOf), meaning: meaning{float: float1(math.Atanh)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Div(b, OnesLike(b, x), oneMinusSquare(b, x)) },
	})
}

// hugeArc is large enough that x² + 1 rounds to x² in f64, and its square is finite in f32.
const hugeArc = 1e9

// asinhOf is log(|x| + √(x² + 1)) with the sign of x, without cancellation near 0.
func asinhOf(x scalar.Expr) scalar.Expr {
	number := func(v float64) scalar.Expr { return scalar.ConstF(x.Type, v) }
	a := scalar.Abs(x)
	square := scalar.Mul(a, a)
	root := scalar.Sqrt(scalar.Add(square, number(1)))
	y := scalar.Log1p(scalar.Add(a, scalar.Div(square, scalar.Add(root, number(1)))))
	return scalar.Mul(scalar.Sign(x), scalar.Select(scalar.Gt(a, number(hugeArc)), logTwice(a), y))
}

// acoshOf is log(x + √(x² − 1)) in terms of t = x − 1, which is exact near 1. Below 1 it is NaN:
// of t alone, since x² − 1 is positive again below −1.
func acoshOf(x scalar.Expr) scalar.Expr {
	number := func(v float64) scalar.Expr { return scalar.ConstF(x.Type, v) }
	t := scalar.Sub(x, number(1))
	y := scalar.Log1p(scalar.Add(t, scalar.Sqrt(scalar.Select(scalar.Lt(t, number(0)), t, scalar.Mul(t, scalar.Add(x, number(1)))))))
	return scalar.Select(scalar.Gt(x, number(hugeArc)), logTwice(x), y)
}

// logTwice returns log(2·x), also where 2·x overflows.
func logTwice(x scalar.Expr) scalar.Expr {
	return scalar.Add(scalar.Log(x), scalar.ConstF(x.Type, math.Ln2))
}

// atanhOf is half the logarithm of (1 + |x|)/(1 − |x|), with the sign of x.
func atanhOf(x scalar.Expr) scalar.Expr {
	number := func(v float64) scalar.Expr { return scalar.ConstF(x.Type, v) }
	a := scalar.Abs(x)
	ratio := scalar.Div(scalar.Add(a, a), scalar.Sub(number(1), a))
	return scalar.Mul(scalar.Mul(scalar.Sign(x), number(0.5)), scalar.Log1p(ratio))
}

// Asinh returns the inverse hyperbolic sine of x.
func Asinh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpAsinh, nil, x) }

// Acosh returns the inverse hyperbolic cosine of x.
func Acosh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpAcosh, nil, x) }

// Atanh returns the inverse hyperbolic tangent of x.
func Atanh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpAtanh, nil, x) }
