package ops

import (
	"math"

	"github.com/rlx-go/rlx/internal/elementary"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Hyperbolic and sigmoid functions.
const (
	OpSinh    ir.Op = "sinh"
	OpCosh    ir.Op = "cosh"
	OpTanh    ir.Op = "tanh"
	OpSigmoid ir.Op = "sigmoid"
	OpErf     ir.Op = "erf"
)

func init() {
	defineUnary(unary{
		op: OpSinh, doc: "The hyperbolic sine of x.",
		types: floats, scalar: scalar.Sinh, meaning: meaning{float: float1(elementary.Sinh)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Cosh(b, x) },
	})
	defineUnary(unary{
		op: OpCosh, doc: "The hyperbolic cosine of x.",
		types: floats, scalar: scalar.Cosh, meaning: meaning{float: float1(elementary.Cosh)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Sinh(b, x) },
	})
	defineUnary(unary{
		op: OpTanh, doc: "The hyperbolic tangent of x.",
		types: floats, scalar: scalar.Tanh, meaning: meaning{float: float1(math.Tanh)},
		slope: func(b *ir.Builder, _, y ir.Value) ir.Value { return oneMinusSquare(b, y) },
	})
	defineUnary(unary{
		op: OpSigmoid, doc: "1 / (1 + e^−x), the logistic function.",
		types: floats, scalar: scalar.Sigmoid, meaning: meaning{float: float1(elementary.Sigmoid)},
		slope: func(b *ir.Builder, _, y ir.Value) ir.Value { return Mul(b, y, Sub(b, OnesLike(b, y), y)) },
	})
	defineUnary(unary{
		op: OpErf, doc: "The error function 2/√π ∫₀ˣ e^(−s²) ds.",
		types: floats, scalar: scalar.Erf, meaning: meaning{float: float1(math.Erf)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value {
			return Mul(b, ConstLike(b, x, 2/math.SqrtPi), Exp(b, Neg(b, Mul(b, x, x))))
		},
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
