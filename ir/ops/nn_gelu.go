package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Gelu returns x·Φ(x) = x/2·(1 + erf(x/√2)), for x of a float type (Hendrycks and Gimpel,
// Gaussian Error Linear Units).
func Gelu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpGelu, nil, x) }

// GeluTanh returns the tanh approximation x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) of
// [Gelu]. RLX in Rust calls it GeluApprox.
func GeluTanh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpGeluTanh, nil, x) }

// QuickGelu returns the approximation x·sigmoid(1.702·x) of [Gelu].
func QuickGelu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpQuickGelu, nil, x) }

func gelu(b *ir.Builder, x ir.Value, _ float64) ir.Value {
	e := Erf(b, Mul(b, x, ConstLike(b, x, math.Sqrt2/2)))
	return Mul(b, Mul(b, x, ConstLike(b, x, 0.5)), Add(b, e, OnesLike(b, x)))
}

// geluSlope is Φ(x) + x·φ(x). Written out it is one factor of the gradient;
// differentiating the body gives four, each of which [MulZero] tests for zero.
func geluSlope(b *ir.Builder, x ir.Value) ir.Value {
	e := Erf(b, Mul(b, x, ConstLike(b, x, math.Sqrt2/2)))
	density := Exp(b, Mul(b, Mul(b, x, x), ConstLike(b, x, -0.5)))
	return Add(b,
		Mul(b, Add(b, e, OnesLike(b, x)), ConstLike(b, x, 0.5)),
		MulZero(b, Mul(b, x, ConstLike(b, x, 1/math.Sqrt(2*math.Pi))), density))
}

// geluTanh computes x/2·(1 + tanh u) as x·sigmoid(2u).
func geluTanh(b *ir.Builder, x ir.Value, _ float64) ir.Value {
	s, _ := geluSigmoid(b, x)
	return Mul(b, x, s)
}

// geluTanhSlope is s + x·s·(1 − s)·2u′ for s = sigmoid(2u), where 2u′ is
// 2√(2/π)·(1 + 3·0.044715·x²).
func geluTanhSlope(b *ir.Builder, x ir.Value) ir.Value {
	s, square := geluSigmoid(b, x)
	inner := Add(b, Mul(b, square, ConstLike(b, x, 3*0.044715*geluScale)), ConstLike(b, x, geluScale))
	bend := Mul(b, s, Sub(b, OnesLike(b, x), s))
	return Add(b, s, MulZero(b, bend, Mul(b, x, inner)))
}

// geluScale is 2√(2/π).
const geluScale = 1.5957691216057308

// geluSigmoid returns sigmoid(2√(2/π)·(x + 0.044715·x³)), and x².
func geluSigmoid(b *ir.Builder, x ir.Value) (s, square ir.Value) {
	square = Mul(b, x, x)
	cubic := Add(b, Mul(b, square, ConstLike(b, x, 0.044715*geluScale)), ConstLike(b, x, geluScale))
	return Sigmoid(b, Mul(b, x, cubic)), square
}
