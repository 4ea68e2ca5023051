package ops

import (
	"math"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Trigonometric functions; angles are in radians.
const (
	OpSin   ir.Op = "sin"
	OpCos   ir.Op = "cos"
	OpTan   ir.Op = "tan"
	OpAsin  ir.Op = "asin"
	OpAcos  ir.Op = "acos"
	OpAtan  ir.Op = "atan"
	OpAtan2 ir.Op = "atan2"
)

func init() {
	defineAngles()
	defineArcs()
}

func defineAngles() {
	defineFunction(OpSin, "The sine of x.", scalar.Sin, elementary.Sin,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Cos(b, x) })
	defineFunction(OpCos, "The cosine of x.", scalar.Cos, elementary.Cos,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Neg(b, Sin(b, x)) })
	defineFunction(OpTan, "The tangent of x.", scalar.Tan, elementary.Tan,
		func(b *ir.Builder, _, y ir.Value) ir.Value { return Add(b, OnesLike(b, y), Mul(b, y, y)) })
}

func defineArcs() {
	defineFunction(OpAsin, "The arc sine of x, in [−π/2, π/2]; NaN outside [−1, 1]. The derivative at ±1 is infinite.", scalar.Asin, elementary.Asin,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Rsqrt(b, oneMinusSquare(b, x)) })
	defineFunction(OpAcos, "The arc cosine of x, in [0, π]; NaN outside [−1, 1]. The derivative at ±1 is infinite.", scalar.Acos, elementary.Acos,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Neg(b, Rsqrt(b, oneMinusSquare(b, x))) })
	defineFunction(OpAtan, "The arc tangent of x, in (−π/2, π/2).", scalar.Atan, math.Atan,
		func(b *ir.Builder, x, _ ir.Value) ir.Value {
			one := OnesLike(b, x)
			return Div(b, one, Add(b, one, Mul(b, x, x)))
		})
	defineBinary(binary{
		op: OpAtan2, doc: "The angle of the point (x, y) of the plane, in [−π, π]. The derivatives at the origin are 0.",
		operands: []string{"y", "x"},
		types:    floats, scalar: scalar.Atan2, reference: scalarReference{float: float2(elementary.Atan2)},
		slopes: [2]slope2{
			func(b *ir.Builder, y, x, _ ir.Value) ir.Value { return overSquare(b, x, x, y) },
			func(b *ir.Builder, y, x, _ ir.Value) ir.Value { return Neg(b, overSquare(b, y, x, y)) },
		},
	})
}

// oneMinusSquare returns 1 − x² as (1 − x)(1 + x), accurate near ±1.
func oneMinusSquare(b *ir.Builder, x ir.Value) ir.Value {
	one := OnesLike(b, x)
	return Mul(b, Sub(b, one, x), Add(b, one, x))
}

// overSquare returns v / (x² + y²), and 0 at the origin.
func overSquare(b *ir.Builder, v, x, y ir.Value) ir.Value {
	zero := ZerosLike(b, x)
	square := Add(b, Mul(b, x, x), Mul(b, y, y))
	return Select(b, Eq(b, square, zero), zero, Div(b, v, square))
}

// Sin returns the sine of x.
func Sin(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSin, nil, x) }

// Cos returns the cosine of x.
func Cos(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpCos, nil, x) }

// Tan returns the tangent of x.
func Tan(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpTan, nil, x) }

// Asin returns the arc sine of x.
func Asin(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpAsin, nil, x) }

// Acos returns the arc cosine of x.
func Acos(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpAcos, nil, x) }

// Atan returns the arc tangent of x.
func Atan(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpAtan, nil, x) }

// Atan2 returns the angle of the point (x, y), in [−π, π], for y first, broadcast.
func Atan2(b *ir.Builder, y, x ir.Value) ir.Value { return broadcasting(b, OpAtan2, y, x) }

// Hyperbolic and sigmoid functions.
const (
	OpSinh    ir.Op = "sinh"
	OpCosh    ir.Op = "cosh"
	OpTanh    ir.Op = "tanh"
	OpSigmoid ir.Op = "sigmoid"
	OpErf     ir.Op = "erf"
)

func init() {
	defineFunction(OpSinh, "The hyperbolic sine of x.", scalar.Sinh, elementary.Sinh,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Cosh(b, x) })
	defineFunction(OpCosh, "The hyperbolic cosine of x.", scalar.Cosh, elementary.Cosh,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Sinh(b, x) })
	defineFunction(OpTanh, "The hyperbolic tangent of x.", scalar.Tanh, math.Tanh,
		func(b *ir.Builder, _, y ir.Value) ir.Value { return oneMinusSquare(b, y) })
	defineFunction(OpSigmoid, "1 / (1 + e^−x), the logistic function.", scalar.Sigmoid, elementary.Sigmoid,
		func(b *ir.Builder, _, y ir.Value) ir.Value { return Mul(b, y, Sub(b, OnesLike(b, y), y)) })
	defineFunction(OpErf, "The error function 2/√π ∫₀ˣ e^(−s²) ds.", scalar.Erf, math.Erf,
		func(b *ir.Builder, x, _ ir.Value) ir.Value {
			return Mul(b, ConstLike(b, x, 2/math.SqrtPi), Exp(b, Neg(b, Mul(b, x, x))))
		})
}

// Sinh returns the hyperbolic sine of x.
func Sinh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSinh, nil, x) }

// Cosh returns the hyperbolic cosine of x.
func Cosh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpCosh, nil, x) }

// Tanh returns the hyperbolic tangent of x.
func Tanh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpTanh, nil, x) }

// Sigmoid returns 1 / (1 + e^−x).
func Sigmoid(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSigmoid, nil, x) }

// Erf returns the error function of x.
func Erf(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpErf, nil, x) }

// The inverses of the hyperbolic functions.
const (
	OpAsinh ir.Op = "asinh"
	OpAcosh ir.Op = "acosh"
	OpAtanh ir.Op = "atanh"
)

func init() {
	defineFunction(OpAsinh, "The inverse hyperbolic sine of x.", widened(asinhOf), math.Asinh,
		func(b *ir.Builder, x, _ ir.Value) ir.Value {
			return Rsqrt(b, Add(b, Mul(b, x, x), OnesLike(b, x)))
		})
	defineFunction(OpAcosh, "The inverse hyperbolic cosine of x, NaN below 1. The derivative at 1 is infinite.", widened(acoshOf), math.Acosh,
		func(b *ir.Builder, x, _ ir.Value) ir.Value {
			one := OnesLike(b, x)
			return Rsqrt(b, Mul(b, Sub(b, x, one), Add(b, x, one)))
		})
	defineFunction(OpAtanh, "The inverse hyperbolic tangent of x: infinite at ±1, NaN beyond.", widened(atanhOf), math.Atanh,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Div(b, OnesLike(b, x), oneMinusSquare(b, x)) })
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
