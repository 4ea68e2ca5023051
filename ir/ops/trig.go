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
	defineUnary(unary{
		op: OpSin, doc: "The sine of x.",
		types: floats, scalar: scalar.Sin, meaning: meaning{float: float1(elementary.Sin)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Cos(b, x) },
	})
	defineUnary(unary{
		op: OpCos, doc: "The cosine of x.",
		types: floats, scalar: scalar.Cos, meaning: meaning{float: float1(elementary.Cos)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Neg(b, Sin(b, x)) },
	})
	defineUnary(unary{
		op: OpTan, doc: "The tangent of x.",
		types: floats, scalar: scalar.Tan, meaning: meaning{float: float1(elementary.Tan)},
		slope: func(b *ir.Builder, _, y ir.Value) ir.Value { return Add(b, OnesLike(b, y), Mul(b, y, y)) },
	})
}

func defineArcs() {
	defineUnary(unary{
		op: OpAsin, doc: "The arc sine of x, in [−π/2, π/2]; NaN outside [−1, 1]. The derivative at ±1 is infinite.",
		types: floats, scalar: scalar.Asin, meaning: meaning{float: float1(elementary.Asin)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Rsqrt(b, oneMinusSquare(b, x)) },
	})
	defineUnary(unary{
		op: OpAcos, doc: "The arc cosine of x, in [0, π]; NaN outside [−1, 1]. The derivative at ±1 is infinite.",
		types: floats, scalar: scalar.Acos, meaning: meaning{float: float1(elementary.Acos)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Neg(b, Rsqrt(b, oneMinusSquare(b, x))) },
	})
	defineUnary(unary{
		op: OpAtan, doc: "The arc tangent of x, in (−π/2, π/2).",
		types: floats, scalar: scalar.Atan, meaning: meaning{float: float1(math.Atan)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value {
			one := OnesLike(b, x)
			return Div(b, one, Add(b, one, Mul(b, x, x)))
		},
	})
	defineBinary(binary{
		op: OpAtan2, doc: "The angle of the point (x, y) of the plane, in [−π, π]. The derivatives at the origin are 0.",
		operands: []string{"y", "x"},
		types:    floats, scalar: scalar.Atan2, meaning: meaning{float: float2(elementary.Atan2)},
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
func Atan2(b *ir.Builder, y, x ir.Value) ir.Value { return broadcasting(b, OpAtan2, nil, y, x) }
