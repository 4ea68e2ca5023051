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

// logPoly is p in log(1 + f) = f - f²/2 + f³·p(f), √½ ≤ 1 + f ≤ √2; 1.6e-9.
var logPoly = []float64{
	0.3333331346511841, -0.2500016689300537, 0.20002222061157227, -0.1665937304496765,
	0.1420963853597641, -0.12549562752246857, 0.12107852846384048, -0.10916981846094131,
	0.05342608690261841,
}

// sqrtHalfBits are the bits of √½, the lower end of the significands of reduceLog.
const sqrtHalfBits = 0x3f3504f3

// reduceLog splits a positive normal x into 2^k·m with √½ ≤ m < √2, k as i32.
func reduceLog(x Expr) (k, m Expr) {
	u := Bitcast(x, dtype.I32)
	k = Shr(Sub(u, i32(sqrtHalfBits)), i32(23))
	return k, Bitcast(Sub(u, Shl(k, i32(23))), dtype.F32)
}

// ln 2 in two parts. The first has 16 bits, so that its product with a small integer is exact.
const (
	ln2Head = 45426.0 / 65536
	ln2Tail = 1.4286068203094172e-6
)

// logSum returns log(1 + f) + k·ln 2 for f as in logPoly. It adds the larger parts last.
func logSum(f, k Expr) Expr {
	z := Mul(f, f)
	t := Mul(z, Sub(Mul(f, polynomial(f, logPoly...)), f32(0.5)))
	kf := Convert(k, dtype.F32)
	return Add(Mul(kf, f32(ln2Head)), Add(f, Add(t, Mul(kf, f32(ln2Tail)))))
}

// normalise returns x and 0, or 2²⁴·x and -24 for a positive subnormal x.
func normalise(x Expr) (scaled, k Expr) {
	tiny := Lt(absBits(x), u32(0x00800000))
	return Select(tiny, Mul(x, f32(1<<24)), x), Select(tiny, i32(-24), i32(0))
}

func log32(x Expr) Expr {
	scaled, k0 := normalise(x)
	k, m := reduceLog(scaled)
	y := bitsOf(logSum(Sub(m, f32(1)), Add(k, k0)))
	// Test for zero after scaling: it may be a flushed subnormal.
	y = Select(Eq(absBits(scaled), u32(0)), u32(signBit|infBits), y)
	return floatOf(logEnds(x, y))
}

// logEnds returns the bits y, or those of infinity if x is infinite, and of NaN if it is NaN or
// negative but not -0.
func logEnds(x, y Expr) Expr {
	u := bitsOf(x)
	y = Select(Eq(u, u32(infBits)), u32(infBits), y)
	return Select(Or(isNaN32(x), Gt(u, u32(signBit))), u32(nanBits), y)
}

// log1p32 uses f = x for small x, and rounds 1 + x otherwise: there the error of the sum is small
// compared with its logarithm.
func log1p32(x Expr) Expr {
	central := And(Gt(x, f32(-0.2928)), Lt(x, f32(0.4142)))
	u := Add(x, f32(1))
	k, m := reduceLog(u)
	y := logSum(Select(central, x, Sub(m, f32(1))), Select(central, i32(0), k))
	r := Or(bitsOf(y), signOf(x))
	r = Select(Eq(bitsOf(x), u32(0xbf800000)), u32(signBit|infBits), r) // -1
	r = Select(Eq(bitsOf(x), u32(infBits)), u32(infBits), r)
	return floatOf(Select(Or(isNaN32(x), Gt(bitsOf(x), u32(0xbf800000))), u32(nanBits), r))
}

// atanhPoly is p in log((1+s)/(1-s)) = 2s + s³·p(s²), s² ≤ 0.0295; 5.9e-11.
var atanhPoly = []float64{
	0.6666666865348816, 0.39999663829803467, 0.285814493894577, 0.22725336253643036,
}

// exp2Poly is q in 2^r = 1 + r·q(r), |r| ≤ 0.502; 5.7e-9.
var exp2Poly = []float64{
	0.6931472420692444, 0.24022653698921204, 0.055502891540527344,
	0.009617882780730724, 0.0013410672545433044, 0.00015487338532693684,
}

// 2/ln 2 in two parts, the first of 12 bits.
const (
	logScaleHead = 2.884765625
	logScaleTail = 0.00062445677792681471985
)

// log2Parts returns log₂ of a positive x as the sum of hi, of 12 bits, and lo, with a relative
// error of about 2⁻³¹. x = 2^k·m, and log m is computed from s = (m-1)/(m+1), divided in two steps.
// Products of 12-bit heads are exact.
func log2Parts(x Expr) (hi, lo Expr) {
	scaled, k0 := normalise(x)
	k, m := reduceLog(scaled)
	f, sum := Sub(m, f32(1)), Add(m, f32(1))
	sumHi := head(sum)
	sumLo := Sub(m, Sub(sumHi, f32(1)))

	inv := Div(f32(1), sum)
	sHi := head(Mul(f, inv))
	sLo := Mul(Sub(Sub(f, Mul(sHi, sumHi)), Mul(sHi, sumLo)), inv)
	s := Add(sHi, sLo)
	z := Mul(s, s)
	cubic := Mul(s, Mul(z, Mul(f32(0.5), polynomial(z, atanhPoly...))))

	// log₂ m = (s + cubic)·2/ln 2
	big := Mul(sHi, f32(logScaleHead))
	small := Add(Mul(sHi, f32(logScaleTail)), Mul(Add(sLo, cubic), f32(logScaleHead+logScaleTail)))
	kf := Convert(Add(k, k0), dtype.F32)
	hi = head(Add(kf, big))
	return hi, Add(Add(Sub(kf, hi), big), small)
}

// pow32 returns 2^(y·log₂|x|), the product in two parts, then handles signs and special arguments.
func pow32(x, y Expr) Expr {
	if r := smallPower(x, y); r != nil {
		return r
	}
	hi, lo := log2Parts(Abs(x))
	// Beyond 2³² the result is 0, 1 or infinite for any y.
	yc := clampMax(clampMin(y, -0x1p32), 0x1p32)
	yHi := head(yc)
	big := Mul(yHi, hi)
	small := Add(Mul(Sub(yc, yHi), hi), Mul(yc, lo))

	// The sum of the parts may round up to 128; the difference from 128 does not.
	tooLarge := Ge(Add(Sub(big, f32(128)), small), f32(0))
	tooSmall := Lt(Add(big, small), f32(-151))
	inside := Not(Or(tooLarge, tooSmall))
	big, small = Select(inside, big, f32(0)), Select(inside, small, f32(0))
	n := Floor(Add(Add(big, small), f32(0.5)))
	r := Add(Sub(big, n), small)
	p := scale2(Add(f32(1), Mul(r, polynomial(r, exp2Poly...))), Convert(n, dtype.I32))

	u := Select(tooLarge, u32(infBits), Select(tooSmall, u32(0), bitsOf(p)))
	return powEnds(x, y, u)
}

// smallPower returns powers that need at most two products, nil for others.
func smallPower(x, y Expr) Expr {
	switch {
	case y.isFloat(3):
		return Mul(Mul(x, x), x)
	case y.isFloat(4):
		z := Mul(x, x)
		return Mul(z, z)
	case y.isFloat(-1):
		return Div(f32(1), x)
	}
	return nil
}

// powEnds returns x to the power y from the bits u of |x| to the power y, which are correct for x
// neither 0 nor infinite and y not NaN.
func powEnds(x, y, u Expr) Expr {
	ax, ay := absBits(x), absBits(y)
	negX, negY := Ne(signOf(x), u32(0)), Ne(signOf(y), u32(0))
	zero, inf := Eq(ax, u32(0)), Eq(ax, u32(infBits))
	u = Select(Or(zero, inf), Select(Eq(zero, negY), u32(infBits), u32(0)), u)

	// All floats from 2²⁴ on are even integers.
	n := clampMax(Abs(y), 0x1p24)
	whole := Eq(Floor(n), n)
	isOddY := And(whole, isOdd(Convert(n, dtype.U32)))
	u = Or(u, Select(And(negX, isOddY), u32(signBit), u32(0)))

	undefined := And(And(negX, Not(whole)), Not(Or(zero, inf)))
	u = Select(Or(undefined, Or(isNaN32(x), isNaN32(y))), u32(nanBits), u)
	return floatOf(Select(Or(Eq(ay, u32(0)), Eq(bitsOf(x), u32(0x3f800000))), u32(0x3f800000), u))
}
