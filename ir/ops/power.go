package ops

import (
	"math"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Powers, exponentials and logarithms.
const (
	OpPow   ir.Op = "pow"
	OpSqrt  ir.Op = "sqrt"
	OpRsqrt ir.Op = "rsqrt"
	OpExp   ir.Op = "exp"
	OpExpm1 ir.Op = "expm1"
	OpLog   ir.Op = "log"
	OpLog1p ir.Op = "log1p"
)

func init() {
	definePow()
	defineRoots()
	defineExponentials()
}

func definePow() {
	defineBinary(binary{
		op: OpPow, doc: "x to the power y: 1 for y = 0 and any x, NaN for a negative x unless y is an integer. The derivative by y at 0^0 is 0. " +
			"Where x is 0 and y below 1 the derivative by x is infinite, and that of it by y NaN, as in JAX; by y first it is −∞.",
		types: floats, scalar: scalar.Pow, reference: scalarReference{float: float2(elementary.Pow)},
		slopes: [2]slope2{powByBase, powByExponent},
	})
}

// powByBase is y·x^(y−1), and 0 for y = 0 even if the power is infinite. The zero is that
// of a product, so that the derivative by the exponent there is x^(y−1).
func powByBase(b *ir.Builder, x, y, _ ir.Value) ir.Value {
	return scale(b, Pow(b, x, Sub(b, y, OnesLike(b, y))), y)
}

// powByExponent is x^y·log x, which is 0 where x^y is. At 0^0, where 0^y jumps,
// it is 0 as at every jump.
func powByExponent(b *ir.Builder, x, y, z ir.Value) ir.Value {
	zero := ZerosLike(b, x)
	jump := And(b, Eq(b, x, zero), Eq(b, y, zero))
	return Select(b, jump, zero, MulZero(b, z, Log(b, x)))
}

func defineRoots() {
	defineFunction(OpSqrt, "The square root of x, NaN below 0. The derivative at 0 is infinite.", scalar.Sqrt, math.Sqrt,
		func(b *ir.Builder, _, y ir.Value) ir.Value { return Div(b, ConstLike(b, y, 0.5), y) })
	defineUnary(unary{
		op: OpRsqrt, doc: "1 / √x: infinite at 0, NaN below.",
		types: floats, scalar: scalar.Rsqrt,
		reference: scalarReference{float: func(x []float64) float64 { return 1 / math.Sqrt(x[0]) }},
		slope: func(b *ir.Builder, _, y ir.Value) ir.Value {
			return Mul(b, ConstLike(b, y, -0.5), Mul(b, y, Mul(b, y, y)))
		},
	})
}

func defineExponentials() {
	defineFunction(OpExp, "e to the power x.", scalar.Exp, elementary.Exp,
		func(_ *ir.Builder, _, y ir.Value) ir.Value { return y })
	defineFunction(OpExpm1, "e^x − 1, accurate near 0.", scalar.Expm1, math.Expm1,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Exp(b, x) })
	defineFunction(OpLog, "The natural logarithm of x: −∞ at 0, NaN below.", scalar.Log, elementary.Log,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Div(b, OnesLike(b, x), x) })
	defineFunction(OpLog1p, "log(1 + x), accurate near 0.", scalar.Log1p, math.Log1p,
		func(b *ir.Builder, x, _ ir.Value) ir.Value {
			one := OnesLike(b, x)
			return Div(b, one, Add(b, one, x))
		})
}

// Pow returns x to the power y, broadcast; NaN for a negative x unless y is an integer.
func Pow(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpPow, x, y) }

// Sqrt returns the square root of x.
func Sqrt(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSqrt, nil, x) }

// Rsqrt returns 1 / √x.
func Rsqrt(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRsqrt, nil, x) }

// Exp returns e to the power x.
func Exp(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpExp, nil, x) }

// Expm1 returns e^x − 1.
func Expm1(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpExpm1, nil, x) }

// Log returns the natural logarithm of x.
func Log(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpLog, nil, x) }

// Log1p returns log(1 + x).
func Log1p(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpLog1p, nil, x) }

// Powers and logarithms to bases other than e, and the cube root.
const (
	OpCbrt  ir.Op = "cbrt"
	OpExp2  ir.Op = "exp2"
	OpLog2  ir.Op = "log2"
	OpLog10 ir.Op = "log10"
)

func init() {
	defineFunction(OpCbrt, "The cube root of x, with the sign of x. The derivative at 0 is infinite.", widened(cbrtOf), math.Cbrt,
		func(b *ir.Builder, _, y ir.Value) ir.Value {
			return Div(b, OnesLike(b, y), Mul(b, ConstLike(b, y, 3), Mul(b, y, y)))
		})
	defineUnary(unary{
		op: OpExp2, doc: "2 to the power x.",
		types: floats, reference: scalarReference{float: float1(math.Exp2)},
		scalar: widened(func(x scalar.Expr) scalar.Expr { return scalar.Pow(scalar.ConstF(x.Type, 2), x) }),
		slope:  func(b *ir.Builder, _, y ir.Value) ir.Value { return Mul(b, y, ConstLike(b, y, math.Ln2)) },
	})
	for _, l := range []struct {
		op      ir.Op
		doc     string
		inverse float64
		float   func(float64) float64
	}{
		{OpLog2, "The logarithm of x to base 2: −∞ at 0, NaN below.", 1 / math.Ln2, elementary.Log2},
		{OpLog10, "The logarithm of x to base 10: −∞ at 0, NaN below.", 1 / math.Ln10, elementary.Log10},
	} {
		defineUnary(unary{
			op: l.op, doc: l.doc, types: floats, reference: scalarReference{float: float1(l.float)},
			scalar: widened(func(x scalar.Expr) scalar.Expr {
				return scalar.Mul(scalar.Log(x), scalar.ConstF(x.Type, l.inverse))
			}),
			slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Div(b, ConstLike(b, x, l.inverse), x) },
		})
	}
}

// widened wraps a function of f32 or f64 for all float types.
func widened(f func(x scalar.Expr) scalar.Expr) func(x scalar.Expr) scalar.Expr {
	return func(x scalar.Expr) scalar.Expr {
		return scalar.Convert(f(scalar.Convert(x, sumType(x.Type))), x.Type)
	}
}

// cbrtOf refines |x|^(1/3), whose exponent is inexact, by a Newton step.
func cbrtOf(x scalar.Expr) scalar.Expr {
	number := func(v float64) scalar.Expr { return scalar.ConstF(x.Type, v) }
	a := scalar.Abs(x)
	y := scalar.Pow(a, number(1.0/3))
	square := scalar.Mul(y, y)
	step := scalar.Div(scalar.Sub(y, scalar.Div(a, square)), number(3))
	inside := scalar.And(scalar.Gt(a, number(0)), scalar.IsFinite(a))
	return scalar.Mul(scalar.Sign(x), scalar.Select(inside, scalar.Sub(y, step), y))
}

// Cbrt returns the cube root of x.
func Cbrt(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpCbrt, nil, x) }

// Exp2 returns 2 to the power x.
func Exp2(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpExp2, nil, x) }

// Log2 returns the logarithm of x to base 2.
func Log2(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpLog2, nil, x) }

// Log10 returns the logarithm of x to base 10.
func Log10(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpLog10, nil, x) }
