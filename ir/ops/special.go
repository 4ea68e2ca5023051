package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Special functions.
const (
	OpErfc    ir.Op = "erfc"
	OpErfinv  ir.Op = "erfinv"
	OpLgamma  ir.Op = "lgamma"
	OpDigamma ir.Op = "digamma"
)

func init() {
	defineFunction(OpErfc, "The complementary error function 1 − erf(x), accurate in its tail.", scalar.Erfc, math.Erfc,
		func(b *ir.Builder, x, _ ir.Value) ir.Value {
			return Mul(b, ConstLike(b, x, -2/math.SqrtPi), Exp(b, Neg(b, Mul(b, x, x))))
		})
	defineFunction(OpErfinv, "The inverse of the error function: infinite at ±1, NaN beyond.", widened(erfinvOf), math.Erfinv,
		func(b *ir.Builder, _, y ir.Value) ir.Value {
			return Mul(b, ConstLike(b, y, math.SqrtPi/2), Exp(b, Mul(b, y, y)))
		})
	defineFunction(OpLgamma, "The logarithm of |Γ(x)|, ∞ where x is 0, a negative integer or −∞. Near 1 and 2 it has the absolute error of the "+
		"type's precision, not the relative error.", widened(lgammaOf), lgamma,
		func(b *ir.Builder, x, _ ir.Value) ir.Value { return Digamma(b, x) })
	defineComposite(composite{
		op: OpDigamma, doc: "The derivative of lgamma, ψ(x): NaN or infinite where x is 0 or a negative integer.",
		types: floats,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			return inWide(b, in[0], digamma)
		},
	})
}

// erfinv(x)/x, for w = −log(1 − x²), as polynomials: of w − 1 for w up to 5, good to 6e-9, and, divided by √w, of 1/√w − 0.3
// up to 37, good to 5e-8; fitted at Chebyshev points with weights.
var (
	erfinvCentre = []float64{
		1.1273743988, 0.24783289009, 0.0042506428893, -0.0023764427035, 0.00010028129, 3.8228984e-05, -4.4015568e-06, -5.2470500e-07,
		1.4191350e-07, -8.7911702e-09,
	}
	erfinvTail = []float64{
		0.95030773643, -0.18591512884, 0.16767600971, 0.69013063792, 2.163910291, 12.499325485, -21.600194091, -283.04041567, 41.847584375, 3099.2058458,
	}
)

// erfinvOf is the polynomials, which f64 refines by a step of Halley's method: f″/f′ of the error function is −2y. In the
// tail its error is that of erfc, which is small.
func erfinvOf(x scalar.Expr) scalar.Expr {
	number := func(v float64) scalar.Expr { return scalar.ConstF(x.Type, v) }
	a, one := scalar.Abs(x), number(1)
	rest := scalar.Sub(one, a)
	w := scalar.Neg(scalar.Log(scalar.Mul(rest, scalar.Add(one, a))))
	root := scalar.Sqrt(w)
	centre := horner(scalar.Sub(w, one), erfinvCentre)
	tail := scalar.Mul(root, horner(scalar.Sub(scalar.Div(one, root), number(0.3)), erfinvTail))
	y := scalar.Mul(a, scalar.Select(scalar.Lt(w, number(5)), centre, tail))
	if x.Type == ir.F64 {
		y = erfinvStep(a, rest, y)
	}
	y = scalar.Select(scalar.Eq(a, one), number(math.Inf(1)), y)
	return scalar.Mul(scalar.Sign(x), y)
}

// erfinvStep is a step of Halley's method from y, where rest is 1 − a.
func erfinvStep(a, rest, y scalar.Expr) scalar.Expr {
	number := func(v float64) scalar.Expr { return scalar.ConstF(a.Type, v) }
	over := scalar.Select(scalar.Gt(a, number(0.5)), scalar.Sub(rest, scalar.Erfc(y)), scalar.Sub(scalar.Erf(y), a))
	slope := scalar.Mul(number(2/math.SqrtPi), scalar.Exp(scalar.Neg(scalar.Mul(y, y))))
	step := scalar.Div(over, slope)
	return scalar.Sub(y, scalar.Div(step, scalar.Add(number(1), scalar.Mul(y, step))))
}

// horner returns c[0] + c[1]·x + c[2]·x² + …
func horner(x scalar.Expr, c []float64) scalar.Expr {
	p := scalar.ConstF(x.Type, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = scalar.Add(scalar.Mul(p, x), scalar.ConstF(x.Type, c[i]))
	}
	return p
}

// stirling are the coefficients B₂ₖ/(2k·(2k−1)) of z^(1−2k) in Stirling's
// series for log Γ(z), enough for f64 from z = 8 on.
var stirling = []float64{
	1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156, -3617.0 / 122400,
}

// lgammaOf shifts x to the range of Stirling's series: to 1 − x by reflection if it is
// below 1/2, and up by 8 if it is not above that.
func lgammaOf(x scalar.Expr) scalar.Expr {
	number := func(v float64) scalar.Expr { return scalar.ConstF(x.Type, v) }
	reflected := scalar.Lt(x, number(0.5))
	y := scalar.Select(reflected, scalar.Sub(number(1), x), x)
	near := scalar.Lt(y, number(8))
	from := scalar.Select(near, y, number(8))
	product := from
	for k := 1; k < 8; k++ {
		product = scalar.Mul(product, scalar.Add(from, number(float64(k))))
	}
	z := scalar.Select(near, scalar.Add(y, number(8)), y)
	inverse := scalar.Div(number(1), z)
	series := scalar.Mul(inverse, horner(scalar.Mul(inverse, inverse), stirling))
	half := number(0.5)
	// (z − ½)·log z − z, without cancellation for an infinite z
	leading := scalar.Sub(scalar.Mul(scalar.Sub(z, half), scalar.Sub(scalar.Log(z), number(1))), half)
	value := scalar.Add(scalar.Add(leading, number(0.5*math.Log(2*math.Pi))), series)
	value = scalar.Sub(value, scalar.Select(near, scalar.Log(product), number(0)))

	// Γ(x)·Γ(1 − x) = π / sin(πx)
	turn := scalar.Mul(number(math.Pi), scalar.Sub(x, scalar.Round(x)))
	mirror := scalar.Sub(number(math.Log(math.Pi)), scalar.Log(scalar.Abs(scalar.Sin(turn))))
	y = scalar.Select(reflected, scalar.Sub(mirror, value), value)
	// a large negative x is an integer or −∞, where mirror and value are ∞ and their difference is NaN
	return scalar.Select(scalar.Lt(x, number(-integersBelow)), number(math.Inf(1)), y)
}

// integersBelow: all floats of 64 bits and fewer from here on are integers.
const integersBelow = 1 << 53

// lgamma is [math.Lgamma] but for −∞, where that is −∞.
func lgamma(x float64) float64 {
	if math.IsInf(x, -1) {
		return math.Inf(1)
	}
	y, _ := math.Lgamma(x)
	return y
}

// digamma differentiates what lgammaOf computes, term by term; its own
// derivatives of every order are those of its terms.
func digamma(b *ir.Builder, x ir.Value) ir.Value {
	number := func(v float64) ir.Value { return ConstLike(b, x, v) }
	one := number(1)
	reflected := Lt(b, x, number(0.5))
	y := Select(b, reflected, Sub(b, one, x), x)
	z := Add(b, y, number(8))
	inverse := Div(b, one, z)
	square := Mul(b, inverse, inverse)
	series := number(0)
	for k := len(stirling); k >= 1; k-- { // B₂ₖ/(2k)·z^(−2k)
		series = Mul(b, square, Add(b, series, number(stirling[k-1]*float64(2*k-1))))
	}
	value := Sub(b, Sub(b, Log(b, z), Mul(b, inverse, number(0.5))), series)
	for k := range 8 {
		value = Sub(b, value, Div(b, one, Add(b, y, number(float64(k)))))
	}
	// π·cot(πx), not as 1/tan, which is infinite where cot is 0.
	turn := Mul(b, number(math.Pi), Sub(b, x, Round(b, x)))
	mirror := Div(b, Mul(b, number(math.Pi), Cos(b, turn)), Sin(b, turn))
	return Select(b, reflected, Sub(b, value, mirror), value)
}

// Erfc returns the complementary error function 1 − erf(x).
func Erfc(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpErfc, nil, x) }

// Erfinv returns the inverse of the error function.
func Erfinv(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpErfinv, nil, x) }

// Lgamma returns the logarithm of |Γ(x)|.
func Lgamma(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpLgamma, nil, x) }

// Digamma returns the derivative of lgamma.
func Digamma(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpDigamma, nil, x) }

// Exponentially scaled modified Bessel functions.
const (
	OpI0e ir.Op = "i0e"
	OpI1e ir.Op = "i1e"
)

// bessel are Chebyshev series: for |x| ≤ 8 of e^(−|x|)·I₀(x), or
// e^(−|x|)·I₁(x)/x, in |x|/4 − 1, and beyond of √|x|·e^(−|x|)·I in 16/|x| − 1,
// by cosine sums over 64 points with mpmath 1.4.1 at 40 digits.
var bessel = [2]struct{ near, far []float64 }{
	{
		near: []float64{
			0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764, 0.04930528423967071,
			-0.02373741480589947, 0.010546460394594998, -0.004324309995050576, 0.0016394756169413357, -0.0005763755745385824,
			0.00018850288509584165, -5.754195010082104e-05, 1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06,
			-2.670793853940612e-07, 6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
			9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13, 7.676185498604936e-14,
			-1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16, 3.3307945188222384e-17, -4.4153416464793395e-18,
		},
		far: []float64{
			0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06, 2.0489185894690638e-07,
			2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10, 1.1889147107846439e-11, -3.1499165279632416e-11,
			-1.3215811840447713e-11, -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
			-4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16,
			-2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944182e-18, -7.233180487874754e-18,
		},
	},
	{
		near: []float64{
			0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499, 0.024726449030626516,
			-0.010564084894626197, 0.004156422944312888, -0.0015135724506312532, 0.0005122859561685758, -0.00016176081582589674,
			4.781565107550054e-05, -1.3273163656039436e-05, 3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07,
			-4.445059128796328e-08, 9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
			1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14, 7.600684294735408e-15,
			-1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17, 2.7779141127610464e-18,
		},
		far: []float64{
			0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06, -2.512236237870209e-07,
			-2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10, -1.8974958123505413e-11, 3.2526035830154884e-11,
			1.4125807436613782e-11, 2.0356285441470896e-12, -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14,
			4.272440016711951e-14, 1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16,
			2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17, 4.414348323071708e-18, 7.517296310842105e-18,
		},
	},
}

func init() {
	defineComposite(composite{
		op: OpI0e, types: floats,
		doc:  "The modified Bessel function of the first kind and order 0 times e^(−|x|). The derivative at 0, a kink, is 0.",
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return inWide(b, in[0], besselOf(0)) },
	})
	defineComposite(composite{
		op: OpI1e, types: floats,
		doc:  "The modified Bessel function of the first kind and order 1 times e^(−|x|).",
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return inWide(b, in[0], besselOf(1)) },
	})
}

// besselOf returns the function of order 0 or 1.
func besselOf(order int) func(b *ir.Builder, x ir.Value) ir.Value {
	series := bessel[order]
	return func(b *ir.Builder, x ir.Value) ir.Value {
		a, eight := Abs(b, x), ConstLike(b, x, 8)
		isNear := Le(b, a, eight)
		near := Select(b, isNear, a, eight) // not their minimum, whose derivative at 8 is 1/2
		near = chebyshev(b, minus(b, Mul(b, near, ConstLike(b, x, 0.25)), 1), series.near)
		away := Select(b, isNear, eight, a)
		far := chebyshev(b, minus(b, Div(b, ConstLike(b, x, 16), away), 1), series.far)
		far = Mul(b, far, Rsqrt(b, away))
		if order == 1 {
			near, far = Mul(b, near, x), Mul(b, far, Sign(b, x))
		}
		return Select(b, isNear, near, far)
	}
}

// chebyshev returns Σ cₖ·Tₖ(t) by Clenshaw's recurrence, without terms below the precision
// of the element type.
func chebyshev(b *ir.Builder, t ir.Value, c []float64) ir.Value {
	n := len(c)
	for n > 1 && math.Abs(c[n-1]) < math.Abs(c[0])*t.DType().Epsilon()/8 {
		n--
	}
	twice := Add(b, t, t)
	last, before := ConstLike(b, t, c[n-1]), ZerosLike(b, t)
	for k := n - 2; k >= 1; k-- {
		last, before = Add(b, Sub(b, Mul(b, twice, last), before), ConstLike(b, t, c[k])), last
	}
	return Add(b, Sub(b, Mul(b, t, last), before), ConstLike(b, t, c[0]))
}

// I0e returns the modified Bessel function I₀(x) times e^(−|x|).
func I0e(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpI0e, nil, x) }

// I1e returns the modified Bessel function I₁(x) times e^(−|x|).
func I1e(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpI1e, nil, x) }

// OpPolygamma are the derivatives of digamma.
const OpPolygamma ir.Op = "polygamma"

// PolygammaAttrs hold the order of the derivative of digamma.
type PolygammaAttrs struct{ Order int }

// Visit shows the attributes.
func (a *PolygammaAttrs) Visit(v ir.AttrVisitor) { v.Int("order", &a.Order) }

func init() {
	defineComposite(composite{
		op: OpPolygamma, types: floats, newAttrs: func() ir.Attrs { return &PolygammaAttrs{1} },
		doc:         "The polygamma function, the derivative ψ⁽ⁿ⁾(x) of digamma for n = order. NaN where x is not positive.",
		constraints: []string{"order is from 1 to 20"},
		check: func(n *ir.Node) error {
			if o := n.Attrs().(*PolygammaAttrs).Order; o < 1 || o > 20 {
				return ir.Attrf("order is %d, not in [1, 20]", o)
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return inWide(b, in[0], func(b *ir.Builder, x ir.Value) ir.Value { return polygamma(b, x, n.Attrs().(*PolygammaAttrs).Order) })
		},
		jvp: func(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
			next := &PolygammaAttrs{n.Attrs().(*PolygammaAttrs).Order + 1}
			return []ir.Value{scale(b, t[0], b.Add1(OpPolygamma, next, in[0]))}
		},
	})
}

// evenBernoulli are the Bernoulli numbers B₂, B₄, …
var evenBernoulli = []float64{1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730, 7. / 6}

// polygamma is (−1)^(n+1)·n!·ζ(n+1, x), with Hurwitz's zeta by the Euler–Maclaurin
// formula: a sum of terms until z is large, and an asymptotic series in 1/z.
func polygamma(b *ir.Builder, x ir.Value, n int) ir.Value {
	const terms = 12
	number := func(v float64) ir.Value { return ConstLike(b, x, v) }
	power := func(v ir.Value, n int) ir.Value {
		p := v
		for range n - 1 {
			p = Mul(b, p, v)
		}
		return p
	}
	valid := Gt(b, x, number(0))
	safe := Select(b, valid, x, number(1))
	one, z := number(1), Add(b, safe, number(terms))
	rest := Div(b, one, z)
	base := power(rest, n)
	sum := Mul(b, base, number(1/float64(n)))
	last := Mul(b, base, rest)
	sum = Add(b, sum, Mul(b, last, number(0.5)))
	factor := 1.
	for j, bernoulli := range evenBernoulli {
		// term j, from 1: B₂ⱼ·(n+1)…(n+2j−1)/(2j)!·z^(−n−2j)
		factor *= float64(n+2*j+1) / float64(2*j+2)
		last = Mul(b, last, rest)
		if j > 0 {
			factor *= float64(n+2*j) / float64(2*j+1)
			last = Mul(b, last, rest)
		}
		sum = Add(b, sum, Mul(b, last, number(bernoulli*factor)))
	}
	for k := terms - 1; k >= 0; k-- {
		sum = Add(b, sum, power(Div(b, one, Add(b, safe, number(float64(k)))), n+1))
	}
	scale := -1. // (−1)^(n+1)·n!
	for k := range n {
		scale *= -float64(k + 1)
	}
	return Select(b, valid, Mul(b, sum, number(scale)), number(math.NaN()))
}

// Polygamma returns the derivative of the given order, 1 to 20, of [Digamma]; NaN where x
// is not positive.
func Polygamma(b *ir.Builder, x ir.Value, order int) ir.Value {
	return b.Add1(OpPolygamma, &PolygammaAttrs{order}, x)
}
