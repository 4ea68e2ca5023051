package scalar

// erfPoly is p in erf(x) = x + x·p(x²), |x| ≤ 0.92; 1.6e-8.
var erfPoly = []float64{
	0.12837915122509003, -0.3761249780654907, 0.11281844973564148,
	-0.026767438277602196, 0.004994204733520746, -0.0005995479295961559,
}

// logErfcPoly approximates log₂(1 - erf(a)), 0.92 ≤ a ≤ 3.95; 1.6e-9, relative
// to erf(a). It is the polynomial of the natural logarithm over ln 2, rounded.
var logErfcPoly = []float64{
	-0.0002823036629706621, -1.62689208984375, -0.9192594885826111, -0.14994192123413086,
	0.03206693381071091, -0.004390539601445198, 0.0002826936834026128,
}

// erfSmall returns erf(x) for |x| ≤ 0.92.
func erfSmall(x Expr) Expr {
	z := Mul(x, x)
	return Add(x, Mul(x, polynomial(z, erfPoly...)))
}

// erf32 uses 1 - 2^log₂(1 - erf(a)) for larger arguments; from a = 3.92 on that rounds to 1.
func erf32(x Expr) Expr {
	a := Abs(x)
	e := powerOfTwo(polynomial(clampMax(a, 3.95), logErfcPoly...))
	return oddFunction(x, Select(Lt(a, f32(0.92)), erfSmall(a), Sub(f32(1), e)))
}

// erfcPoly is p in erfc(a) = exp(-a²)·t·p(t), t = 2/(2 + a), 0.75 ≤ a ≤ 10.1;
// 5.0e-9.
var erfcPoly = []float64{
	0.28208044171333313, 0.2824785113334656, 0.24244070053100586,
	0.20447379350662231, -0.027096915990114212, 0.2694944441318512,
	-0.4668049216270447, 0.2651909589767456, -0.05218919739127159,
}

// erfc32 squares a in two parts: the square of its head is exact, and the rest is small enough to
// be rounded.
func erfc32(x Expr) Expr {
	a := clampMax(Abs(x), 10.1)
	h := head(a)
	rest := Neg(Mul(Sub(a, h), Add(a, h)))
	k, r := reduceExp(Neg(Mul(h, h)), rest)
	t := Div(f32(2), Add(a, f32(2)))
	tail := scale2(Mul(Add(expm1Reduced(r), f32(1)), Mul(t, polynomial(t, erfcPoly...))), k)

	y := Select(Lt(x, f32(0)), Sub(f32(2), tail), tail)
	y = Select(Lt(a, f32(0.75)), Sub(f32(1), erfSmall(x)), y)
	return keepNaN(x, bitsOf(y))
}
