package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// Neg returns -a.
func Neg(a Expr) Expr { return New(OpNeg, a) }

// Abs returns |a|; of a complex number, its modulus as a real number.
func Abs(a Expr) Expr { return New(OpAbs, a) }

// Sign returns -1, 0 or 1 by the sign of a. It keeps ±0 and NaN.
func Sign(a Expr) Expr { return New(OpSign, a) }

// Floor returns the largest whole number not above a.
func Floor(a Expr) Expr { return New(OpFloor, a) }

// Ceil returns the smallest whole number not below a.
func Ceil(a Expr) Expr { return New(OpCeil, a) }

// Round returns the whole number nearest to a, ties to even.
func Round(a Expr) Expr { return New(OpRound, a) }

// Trunc returns a rounded toward zero.
func Trunc(a Expr) Expr { return New(OpTrunc, a) }

// Exp returns e to the power a.
func Exp(a Expr) Expr { return New(OpExp, a) }

// Expm1 returns exp(a) - 1, accurate also near 0.
func Expm1(a Expr) Expr { return New(OpExpm1, a) }

// Log returns the natural logarithm of a: -Inf at 0, NaN below.
func Log(a Expr) Expr { return New(OpLog, a) }

// Log1p returns log(1 + a), accurate also near 0.
func Log1p(a Expr) Expr { return New(OpLog1p, a) }

// Sqrt returns the square root of a, NaN below 0.
func Sqrt(a Expr) Expr { return New(OpSqrt, a) }

// Rsqrt returns 1 / sqrt(a).
func Rsqrt(a Expr) Expr { return New(OpRsqrt, a) }

// Recip returns 1 / a.
func Recip(a Expr) Expr { return New(OpRecip, a) }

// Sin returns the sine of a, in radians.
func Sin(a Expr) Expr { return New(OpSin, a) }

// Cos returns the cosine of a, in radians.
func Cos(a Expr) Expr { return New(OpCos, a) }

// Tan returns the tangent of a, in radians.
func Tan(a Expr) Expr { return New(OpTan, a) }

// Asin returns the arc sine of a, NaN outside [-1, 1].
func Asin(a Expr) Expr { return New(OpAsin, a) }

// Acos returns the arc cosine of a, NaN outside [-1, 1].
func Acos(a Expr) Expr { return New(OpAcos, a) }

// Atan returns the arc tangent of a.
func Atan(a Expr) Expr { return New(OpAtan, a) }

// Sinh returns the hyperbolic sine of a.
func Sinh(a Expr) Expr { return New(OpSinh, a) }

// Cosh returns the hyperbolic cosine of a.
func Cosh(a Expr) Expr { return New(OpCosh, a) }

// Tanh returns the hyperbolic tangent of a.
func Tanh(a Expr) Expr { return New(OpTanh, a) }

// Sigmoid returns 1 / (1 + exp(-a)).
func Sigmoid(a Expr) Expr { return New(OpSigmoid, a) }

// Erf returns the error function of a.
func Erf(a Expr) Expr { return New(OpErf, a) }

// Erfc returns 1 - erf(a), accurate also where erf(a) is near 1.
func Erfc(a Expr) Expr { return New(OpErfc, a) }

// Not returns the negation of a bool, or the complement of each bit of an
// integer.
func Not(a Expr) Expr { return New(OpNot, a) }

// PopCount returns the number of set bits of an integer.
func PopCount(a Expr) Expr { return New(OpPopCount, a) }

// IsNaN reports whether a float is not a number.
func IsNaN(a Expr) Expr { return New(OpIsNaN, a) }

// IsFinite reports whether a float is neither infinite nor NaN.
func IsFinite(a Expr) Expr { return New(OpIsFinite, a) }

// Real returns the real part of a complex number.
func Real(a Expr) Expr { return New(OpReal, a) }

// Imag returns the imaginary part of a complex number.
func Imag(a Expr) Expr { return New(OpImag, a) }

// Conj returns the complex conjugate of a.
func Conj(a Expr) Expr { return New(OpConj, a) }

// MakeComplex returns re + im·i from two floats, f32 or f64.
func MakeComplex(re, im Expr) Expr { return New(OpMakeComplex, re, im) }

// Add returns a + b.
func Add(a, b Expr) Expr { return New(OpAdd, a, b) }

// Sub returns a - b.
func Sub(a, b Expr) Expr { return New(OpSub, a, b) }

// Mul returns a · b.
func Mul(a, b Expr) Expr { return New(OpMul, a, b) }

// MulZero returns 0 if a or b is 0, even if the other is infinite or NaN, and a · b otherwise. It
// multiplies a tangent that may be masked out by a coefficient that may be infinite or NaN there.
// The sign of a zero result is unspecified.
func MulZero(a, b Expr) Expr { return New(OpMulZero, a, b) }

// Div returns a / b; of integers, truncated toward zero.
func Div(a, b Expr) Expr { return New(OpDiv, a, b) }

// Rem returns the remainder of the truncated quotient, with the sign of a.
func Rem(a, b Expr) Expr { return New(OpRem, a, b) }

// FloorDiv returns the quotient of two integers rounded down.
func FloorDiv(a, b Expr) Expr { return New(OpFloorDiv, a, b) }

// Mod returns a - b·FloorDiv(a, b): in [0, b) for a positive b.
func Mod(a, b Expr) Expr { return New(OpMod, a, b) }

// Pow returns a to the power b: 1 for b = 0 and every a, and NaN for a negative
// a unless b is a whole number.
func Pow(a, b Expr) Expr { return New(OpPow, a, b) }

// Min returns the smaller of a and b, NaN if one is NaN.
func Min(a, b Expr) Expr { return New(OpMin, a, b) }

// Max returns the larger of a and b, NaN if one is NaN.
func Max(a, b Expr) Expr { return New(OpMax, a, b) }

// Atan2 returns the angle of the point (x, y) in (-π, π].
func Atan2(y, x Expr) Expr { return New(OpAtan2, y, x) }

// And returns the conjunction of two bools or of each pair of bits.
func And(a, b Expr) Expr { return New(OpAnd, a, b) }

// Or returns the disjunction of two bools or of each pair of bits.
func Or(a, b Expr) Expr { return New(OpOr, a, b) }

// Xor returns whether two bools, or each pair of bits, differ.
func Xor(a, b Expr) Expr { return New(OpXor, a, b) }

// Shl returns the integer a shifted left by n modulo its width.
func Shl(a, n Expr) Expr { return New(OpShl, a, n) }

// Shr returns the integer a shifted right by n modulo its width; signed types
// repeat the sign.
func Shr(a, n Expr) Expr { return New(OpShr, a, n) }

// Eq returns a = b. NaN equals nothing.
func Eq(a, b Expr) Expr { return New(OpEq, a, b) }

// Ne returns a ≠ b, true if one is NaN.
func Ne(a, b Expr) Expr { return New(OpNe, a, b) }

// Lt returns a < b, false if one is NaN.
func Lt(a, b Expr) Expr { return New(OpLt, a, b) }

// Le returns a ≤ b, false if one is NaN.
func Le(a, b Expr) Expr { return New(OpLe, a, b) }

// Gt returns a > b, false if one is NaN.
func Gt(a, b Expr) Expr { return New(OpGt, a, b) }

// Ge returns a ≥ b, false if one is NaN.
func Ge(a, b Expr) Expr { return New(OpGe, a, b) }

// Select returns a if cond is true and b otherwise. Both are evaluated.
func Select(cond, a, b Expr) Expr { return New(OpSelect, cond, a, b) }

// Fma returns a·b + c. Whether the product is rounded before the addition depends on the device;
// code must be correct either way.
func Fma(a, b, c Expr) Expr { return New(OpFma, a, b, c) }

// Dot4 returns c plus the dot product of the four signed bytes that the low 32 bits of a and of b hold. It wraps. Only CUDA
// has it: other printers refuse it.
func Dot4(a, b, c Expr) Expr { return New(OpDot4, a, b, c) }

// Clamp returns Min(Max(x, lo), hi).
func Clamp(x, lo, hi Expr) Expr { return New(OpClamp, x, lo, hi) }

// Extreme returns the largest value of a real type if sign is positive and the smallest one if it
// is negative: an infinity of floats, true and false for Bool.
func Extreme(d dtype.DType, sign int) Expr {
	if d.IsFloat() {
		return ConstF(d, math.Inf(sign))
	}
	if d.IsBool() {
		return ConstBool(sign > 0)
	}
	lo, hi, ok := d.IntRange()
	if !ok {
		lo, hi = 0, -1 // u64, by bit pattern
	}
	if sign > 0 {
		return ConstI(d, hi)
	}
	return ConstI(d, lo)
}

// TwoSum returns the rounded sum a + b and its rounding error, a float of the same type (Knuth, The
// Art of Computer Programming, volume 2, section 4.2.2, theorem B). If the sum is not finite, the
// error is NaN. It requires that each operation is rounded as written: a compiler must not
// reassociate sums.
func TwoSum(a, b Expr) (sum, rest Expr) {
	sum = Add(a, b)
	part := Sub(sum, a)
	return sum, Add(Sub(a, Sub(sum, part)), Sub(b, part))
}

// Compensated returns sum + rest, where rest is the accumulated rounding error from [TwoSum]; sum
// itself if that is not finite.
func Compensated(sum, rest Expr) Expr {
	return Select(Eq(rest, rest), Add(sum, rest), sum)
}
