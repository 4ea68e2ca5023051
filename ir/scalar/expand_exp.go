package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// The coefficients in the files expand_*.go were computed for rlx by Remez exchange in 40-digit
// arithmetic, minimising the relative error of the function (not of the polynomial). They were
// rounded to f32 one after the other from the lowest power up, with the remaining ones fitted again
// after each. Comments give the form, the interval and the relative error of the polynomial without
// evaluation errors.

// roundingBias are the bits of 1.5·2²³. Floats near it have a spacing of 1: adding it rounds a number
// to an integer, which appears in the low bits.
const roundingBias = 0x4b400000

// expPoly is q in exp(r) = 1 + r + r²·q(r), |r| ≤ ½; 5.5e-9, relative to
// exp(r) - 1.
var expPoly = []float64{
	0.5000000596046448, 0.1666666865348816, 0.04166517034173012,
	0.0083329351618886, 0.0014001468662172556, 0.0002006127469940111,
}

// roundedBits returns the bits of x + 1.5·2²³ and integerOf the integer in them, the nearest one to x,
// for |x| < 2²².
func roundedBits(x Expr) Expr  { return bitsOf(Add(x, floatOf(u32(roundingBias)))) }
func integerOf(bits Expr) Expr { return Sub(Bitcast(bits, dtype.I32), i32(roundingBias)) }

// reduceExp splits x + tail, for |x| ≤ 104 and a much smaller tail or nil, into k·ln 2 + r with an
// integer k and |r| ≤ ½. The cancelling difference is exact and passes through integers with its
// bits unchanged: a reassociating compiler could otherwise add the small parts to the large ones
// first. It uses a single conversion, since GPUs convert at an eighth or a quarter of the rate of
// additions: with four conversions, for fixed point without the detour, exp ran at 3,857 GB/s
// instead of 4,086 (WebGPU, H200).
func reduceExp(x, tail Expr) (k, r Expr) {
	sum := x
	if tail != nil {
		sum = Add(x, tail)
	}
	whole := roundedBits(Mul(sum, f32(math.Log2E)))
	k = integerOf(whole)
	kf := Convert(k, dtype.F32)
	all := Or(whole, u32(0xffffffff&^(1<<30))) // all bits; the compiler does not know that the omitted bit is set in roundingBias
	r = floatOf(And(bitsOf(Sub(x, Mul(kf, f32(ln2Head)))), all))
	r = Sub(r, Mul(kf, f32(ln2Tail)))
	if tail != nil {
		r = Add(r, tail)
	}
	return k, r
}

// expm1Reduced returns exp(r) - 1 for |r| ≤ ½.
func expm1Reduced(r Expr) Expr {
	return Add(r, Mul(r, Mul(r, polynomial(r, expPoly...))))
}

// scale2 returns p·2^k for 2⁻⁵ ≤ p < 2 and an i32 k in [-180, 128], and an unspecified number if
// that overflows. It adds k to the exponent. If the result may be subnormal, it adds 64 more and
// multiplies by 2⁻⁶⁴, which rounds once.
func scale2(p, k Expr) Expr {
	small := Lt(k, i32(-100))
	up := Select(small, Add(k, i32(64)), k)
	y := Add(Bitcast(p, dtype.I32), Shl(up, i32(23)))
	return Mul(Bitcast(y, dtype.F32), Select(small, f32(0x1p-64), f32(1)))
}

// expBounded returns exp(x) for -69 ≤ x ≤ 88.
func expBounded(x Expr) Expr {
	k, r := reduceExp(x, nil)
	p := Add(expm1Reduced(r), f32(1))
	return Bitcast(Add(Bitcast(p, dtype.I32), Shl(k, i32(23))), dtype.F32)
}

// powerOfTwo returns 2^x for -100 ≤ x ≤ 127 to within a few ULP. The fraction of x is exact.
func powerOfTwo(x Expr) Expr {
	k := integerOf(roundedBits(x))
	r := Sub(x, Convert(k, dtype.F32))
	p := Add(Mul(r, polynomial(r, exp2Poly...)), f32(1))
	return Bitcast(Add(Bitcast(p, dtype.I32), Shl(k, i32(23))), dtype.F32)
}

// maxExp is the largest f32 whose exponential is finite.
const maxExp = 88.72283172607422

// overflow returns the bits of r, or of infinity if x > limit.
func overflow(x Expr, limit float32, r Expr) Expr {
	above := Gt(Bitcast(x, dtype.I32), i32(int32(math.Float32bits(limit))))
	return Select(above, u32(infBits), bitsOf(r))
}

// exp32 replaces the built-in function, which WGSL allows an error of 3 + 2·|x| ULP, 180 near the
// ends, and whose underflow and overflow differ between devices; softmax and its gradient depend on
// it.
func exp32(x Expr) Expr {
	k, r := reduceExp(clampMax(clampMin(x, -104), 89), nil)
	y := scale2(Add(expm1Reduced(r), f32(1)), k)
	return keepNaN(x, overflow(x, maxExp, y))
}

// expm132 computes 2·(2^(k-1)·(exp(r) - 1) + (2^(k-1) - ½)). No intermediate value overflows before
// the result does, and the last bracket is exact up to k = 24.
func expm132(x Expr) Expr {
	k, r := reduceExp(clampMax(clampMin(x, -30), 89), nil)
	t := expm1Reduced(r)
	s := Bitcast(Shl(Add(k, i32(126)), i32(23)), dtype.F32) // 2^(k-1)
	h := Add(Mul(s, t), Sub(s, f32(0.5)))
	y := Select(Eq(k, i32(0)), t, Add(h, h))
	return keepNaN(x, Or(overflow(x, maxExp, y), signOf(x)))
}

// sinhPoly is p in sinh(x) = x + x³·p(x²), |x| ≤ 1; 7.4e-10.
var sinhPoly = []float64{
	0.1666666716337204, 0.008333306759595871, 0.0001984450063901022, 2.7693702122633113e-06,
}

// maxSinh is the largest f32 whose hyperbolic sine and cosine are finite.
const maxSinh = 89.41598510742188

// halfExp returns exp(a)/2 for 0 ≤ a, with a limited to 90.
func halfExp(a Expr) Expr {
	k, r := reduceExp(clampMax(a, 90), nil)
	return scale2(Add(expm1Reduced(r), f32(1)), Sub(k, i32(1)))
}

// sinh32 uses (exp(a) - exp(-a))/2 for arguments without cancellation.
func sinh32(x Expr) Expr {
	a := Abs(x)
	h := halfExp(a)
	large := Sub(h, Div(f32(0.25), h))
	z := Mul(a, a)
	small := Add(a, Mul(a, Mul(z, polynomial(z, sinhPoly...))))
	y := Select(Lt(a, f32(1)), small, large)
	return keepNaN(x, Or(overflow(a, maxSinh, y), signOf(x)))
}

func cosh32(x Expr) Expr {
	a := Abs(x)
	h := halfExp(a)
	return keepNaN(x, overflow(a, maxSinh, Add(h, Div(f32(0.25), h))))
}

// tanhPoly is p in tanh(x) = x + x³·p(x²), |x| ≤ 0.6; 3.0e-9.
var tanhPoly = []float64{
	-0.3333330452442169, 0.1333206444978714, -0.053794000297784805,
	0.020826304331421852, -0.005927171092480421,
}

// tanh32 uses 1 - 2/(exp(2a) + 1) for arguments without cancellation; from a = 9.02 on that rounds
// to 1.
func tanh32(x Expr) Expr {
	a := Abs(x)
	e := expBounded(Mul(clampMax(a, 10), f32(2)))
	large := Sub(f32(1), Div(f32(2), Add(e, f32(1))))
	z := Mul(a, a)
	small := Add(a, Mul(a, Mul(z, polynomial(z, tanhPoly...))))
	return oddFunction(x, Select(Lt(a, f32(0.6)), small, large))
}

// sigmoid32 is expandSigmoid with an exponential for bounded arguments; from a = 104 on exp(-a) is
// 0.
func sigmoid32(x Expr) Expr {
	k, r := reduceExp(Neg(clampMax(Abs(x), 104)), nil)
	e := scale2(Add(expm1Reduced(r), f32(1)), k)
	y := Div(f32(1), Add(e, f32(1)))
	return keepNaN(x, bitsOf(Select(Lt(x, f32(0)), Mul(e, y), y)))
}
