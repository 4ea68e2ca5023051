package scalar

import "github.com/rlx-go/rlx/ir/dtype"

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
