package scalar

// erfPoly is p in erf(x) = x + x·p(x²), |x| ≤ 0.92; 1.6e-8.
var erfPoly = []float64{
	0.12837915122509003, -0.3761249780654907, 0.11281844973564148,
	-0.026767438277602196, 0.004994204733520746, -0.0005995479295961559,
}

// logErfcPoly approximates log(1 - erf(a)), 0.92 ≤ a ≤ 3.95; 1.6e-9, relative
// to erf(a).
var logErfcPoly = []float64{
	-0.0001956779888132587, -1.1276756525039673, -0.6371821165084839, -0.10393182188272476,
	0.022227104753255844, -0.003043290227651596, 0.00019594831974245608,
}

// erfSmall returns erf(x) for |x| ≤ 0.92.
func erfSmall(x Expr) Expr {
	z := Mul(x, x)
	return Add(x, Mul(x, polynomial(z, erfPoly...)))
}

// erf32 takes 1 - exp(log(1 - erf(a))) for the larger arguments; from a = 3.92
// on that rounds to 1.
func erf32(x Expr) Expr {
	a := Abs(x)
	e := expBounded(polynomial(atMost(a, 3.95), logErfcPoly...))
	return odd(x, Select(Lt(a, f32(0.92)), erfSmall(a), Sub(f32(1), e)))
}

// erfcPoly is p in erfc(a) = exp(-a²)·t·p(t), t = 2/(2 + a), 0.5 ≤ a ≤ 10.1;
// 2.6e-9.
var erfcPoly = []float64{
	0.2820863723754883, 0.2823212146759033, 0.24423053860664368, 0.19300150871276855,
	0.018593624234199524, 0.1520795077085495, -0.2717960476875305, 0.06297744810581207,
	0.06682659685611725, -0.03034891188144684,
}

// erfc32 squares a in two parts: the square of its head is exact, and the rest
// is small enough to be rounded.
func erfc32(x Expr) Expr {
	a := atMost(Abs(x), 10.1)
	h := head(a)
	rest := Neg(Mul(Sub(a, h), Add(a, h)))
	k, r := reduceExp(Neg(Mul(h, h)), rest)
	t := Div(f32(2), Add(a, f32(2)))
	tail := scale2(Mul(Add(expm1Reduced(r), f32(1)), Mul(t, polynomial(t, erfcPoly...))), k)

	y := Select(Lt(x, f32(0)), Sub(f32(2), tail), tail)
	y = Select(Lt(a, f32(0.5)), Sub(f32(1), erfSmall(x)), y)
	return keepNaN(x, bitsOf(y))
}
