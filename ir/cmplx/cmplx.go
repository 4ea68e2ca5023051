// Package cmplx has elementwise functions of complex numbers over a builder, of type c64 or c128, as
// the spectra of [ops.FFT] are. They compose ops of the real and the imaginary part, so derivatives of every order
// exist, by the convention of [ops.OpComplex]. Package ops has the arithmetic: [ops.Add], [ops.Sub],
// [ops.Mul], [ops.Div], [ops.Neg], [ops.Reciprocal] and [ops.Conj], and the parts, [ops.Real] and [ops.Imag].
//
// Branch cuts are those of package math/cmplx and NumPy: along the negative real axis, continuous with
// the side of the sign of the imaginary part, also of −0. An operand of another type is an error of kind [ir.ErrDType]
// in the builder.
//
// [Eig] and [Eigvals] have the eigenvalues and eigenvectors of matrices, which are complex also of real ones.
//
// Like those of other packages beside ops, functions are calls of a builder that add ops, so that the compiler knows
// nothing of them. Start reading at cmplx.go; eig.go differentiates what schur.go computes.
package cmplx

import (
	"math"

	"github.com/rlx-go/rlx/internal/argument"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// parts checks complex operands of one type and returns the parts of the first.
func parts(b *ir.Builder, op ir.Op, in ...ir.Value) (re, im ir.Value, ok bool) {
	c, ok := argument.Of(b, "cmplx."+op, in...)
	for _, z := range in {
		ok = ok && c.That(z.DType().IsComplex() && z.DType() == in[0].DType(), func() error {
			return ir.DTypef("an operand is %s: all must be of one complex type", z.Type())
		})
	}
	if !ok {
		return re, im, false
	}
	return ops.Real(b, in[0]), ops.Imag(b, in[0]), true
}

// Abs returns |z|, f32 or f64. It does not overflow unless the result does. The derivative at 0 is 0.
func Abs(b *ir.Builder, z ir.Value) ir.Value {
	re, im, ok := parts(b, "abs", z)
	if !ok {
		return ir.Value{}
	}
	return ops.Hypot(b, re, im)
}

// Angle returns the argument of z, in [−π, π], f32 or f64. The derivative at 0 is 0.
func Angle(b *ir.Builder, z ir.Value) ir.Value {
	re, im, ok := parts(b, "angle", z)
	if !ok {
		return ir.Value{}
	}
	return ops.Atan2(b, im, re)
}

// Polar returns r·(cos θ + i·sin θ), for r and θ of one type, f32 or f64, which are broadcast.
func Polar(b *ir.Builder, r, theta ir.Value) ir.Value {
	c, ok := argument.Of(b, "cmplx.polar", r, theta)
	if !ok || !c.Floats() {
		return ir.Value{}
	}
	return ops.Complex(b, ops.MulZero(b, r, ops.Cos(b, theta)), ops.MulZero(b, r, ops.Sin(b, theta)))
}

// Exp returns e^z. It is 0 where the real part is −∞.
func Exp(b *ir.Builder, z ir.Value) ir.Value {
	re, im, ok := parts(b, "exp", z)
	if !ok {
		return ir.Value{}
	}
	return Polar(b, ops.Exp(b, re), im)
}

// Log returns the principal logarithm, log|z| + i·[Angle](z). At 0 it is −∞.
func Log(b *ir.Builder, z ir.Value) ir.Value {
	re, im, ok := parts(b, "log", z)
	if !ok {
		return ir.Value{}
	}
	return ops.Complex(b, ops.Log(b, ops.Hypot(b, re, im)), ops.Atan2(b, im, re))
}

// Sqrt returns the principal square root, whose real part is not negative. At 0 the derivative is 0.
// It is ∞ ± i·∞ where the imaginary part is infinite, as in C.
func Sqrt(b *ir.Builder, z ir.Value) ir.Value {
	re, im, ok := parts(b, "sqrt", z)
	if !ok {
		return ir.Value{}
	}
	// t² = (|z| + |re|)/2 has no cancellation; the other part is im/2t. |re| is differentiable at 0 on
	// the side that is selected below.
	half, zero := ops.ConstLike(b, re, 0.5), ops.ZerosLike(b, re)
	right := ops.Ge(b, re, zero)
	size := ops.Select(b, right, re, ops.Neg(b, re))
	square := ops.Add(b, ops.Mul(b, half, ops.Hypot(b, re, im)), ops.Mul(b, half, size))
	none := ops.Eq(b, square, zero)
	t := ops.Sqrt(b, ops.Select(b, none, ops.OnesLike(b, square), square))
	other := ops.Div(b, ops.Mul(b, half, im), t)
	// Of an infinite imaginary part both are infinite, for every real part.
	infinite, inf := ops.IsInf(b, im), ops.ConstLike(b, im, math.Inf(1))
	other = ops.Select(b, infinite, ops.CopySign(b, inf, im), other)
	t = ops.Select(b, infinite, inf, ops.Select(b, none, zero, t))
	return ops.Complex(b,
		ops.Select(b, right, t, ops.Mul(b, other, ops.CopySign(b, ops.OnesLike(b, im), im))),
		ops.Select(b, right, other, ops.CopySign(b, t, im)))
}

// Pow returns z^w = e^(w·log z), for complex z and w, which are broadcast; 0^w is 0, and 1 for w = 0.
func Pow(b *ir.Builder, z, w ir.Value) ir.Value {
	if _, _, ok := parts(b, "pow", z, w); !ok {
		return ir.Value{}
	}
	in := ops.Broadcast(b, "cmplx.pow", z, w)
	if b.Err() != nil {
		return ir.Value{}
	}
	none := ops.Eq(b, Abs(b, in[0]), ops.Real(b, ops.ZerosLike(b, in[0])))
	atZero := ops.Select(b, ops.Eq(b, Abs(b, in[1]), ops.Real(b, ops.ZerosLike(b, in[1]))), ops.OnesLike(b, in[0]), ops.ZerosLike(b, in[0]))
	base := ops.Select(b, none, ops.OnesLike(b, in[0]), in[0])
	return ops.Select(b, none, atZero, Exp(b, ops.Mul(b, in[1], Log(b, base))))
}

// Sin returns sin(x)·cosh(y) + i·cos(x)·sinh(y) for z = x + i·y.
func Sin(b *ir.Builder, z ir.Value) ir.Value {
	x, y, ok := parts(b, "sin", z)
	if !ok {
		return ir.Value{}
	}
	return ops.Complex(b, ops.MulZero(b, ops.Sin(b, x), ops.Cosh(b, y)), ops.MulZero(b, ops.Cos(b, x), ops.Sinh(b, y)))
}

// Cos returns cos(x)·cosh(y) − i·sin(x)·sinh(y) for z = x + i·y.
func Cos(b *ir.Builder, z ir.Value) ir.Value {
	x, y, ok := parts(b, "cos", z)
	if !ok {
		return ir.Value{}
	}
	return ops.Complex(b, ops.MulZero(b, ops.Cos(b, x), ops.Cosh(b, y)), ops.Neg(b, ops.MulZero(b, ops.Sin(b, x), ops.Sinh(b, y))))
}

// Sinh returns sinh(x)·cos(y) + i·cosh(x)·sin(y) for z = x + i·y.
func Sinh(b *ir.Builder, z ir.Value) ir.Value {
	x, y, ok := parts(b, "sinh", z)
	if !ok {
		return ir.Value{}
	}
	return ops.Complex(b, ops.MulZero(b, ops.Sinh(b, x), ops.Cos(b, y)), ops.MulZero(b, ops.Cosh(b, x), ops.Sin(b, y)))
}

// Cosh returns cosh(x)·cos(y) + i·sinh(x)·sin(y) for z = x + i·y.
func Cosh(b *ir.Builder, z ir.Value) ir.Value {
	x, y, ok := parts(b, "cosh", z)
	if !ok {
		return ir.Value{}
	}
	return ops.Complex(b, ops.MulZero(b, ops.Cosh(b, x), ops.Cos(b, y)), ops.MulZero(b, ops.Sinh(b, x), ops.Sin(b, y)))
}
