package ops

import (
	"math"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Powers and logarithms to bases other than e, and the cube root.
const (
	OpCbrt  ir.Op = "cbrt"
	OpExp2  ir.Op = "exp2"
	OpLog2  ir.Op = "log2"
	OpLog10 ir.Op = "log10"
)

func init() {
	defineUnary(unary{
		op: OpCbrt, doc: "The cube root of x, with the sign of x. The derivative at 0 is infinite.",
		types: floats, scalar: widened(cbrtOf), meaning: meaning{float: float1(math.Cbrt)},
		slope: func(b *ir.Builder, _, y ir.Value) ir.Value {
			return Div(b, OnesLike(b, y), Mul(b, ConstLike(b, y, 3), Mul(b, y, y)))
		},
	})
	defineUnary(unary{
		op: OpExp2, doc: "2 to the power x.",
		types: floats, meaning: meaning{float: float1(math.Exp2)},
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
			op: l.op, doc: l.doc, types: floats, meaning: meaning{float: float1(l.float)},
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
