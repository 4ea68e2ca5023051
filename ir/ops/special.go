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
	defineUnary(unary{
		op: OpErfc, doc: "The complementary error function 1 − erf(x), accurate in its tail.",
		types: floats, scalar: scalar.Erfc, meaning: meaning{float: float1(math.Erfc)},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value {
			return Mul(b, ConstLike(b, x, -2/math.SqrtPi), Exp(b, Neg(b, Mul(b, x, x))))
		},
	})
	defineUnary(unary{
		op: OpErfinv, doc: "The inverse of the error function: infinite at ±1, NaN beyond.",
		types: floats, scalar: widened(erfinvOf), meaning: meaning{float: float1(math.Erfinv)},
		slope: func(b *ir.Builder, _, y ir.Value) ir.Value {
			return Mul(b, ConstLike(b, y, math.SqrtPi/2), Exp(b, Mul(b, y, y)))
		},
	})
	defineUnary(unary{
		op: OpLgamma, doc: "The logarithm of |Γ(x)|, infinite where x is 0 or a negative integer. Near 1 and 2 it has the absolute error of the " +
			"type's precision, not the relative error.",
		types: floats, scalar: widened(lgammaOf),
		meaning: meaning{float: float1(func(x float64) float64 { y, _ := math.Lgamma(x); return y })},
		slope:   func(b *ir.Builder, x, _ ir.Value) ir.Value { return Digamma(b, x) },
	})
	defineComposite(composite{
		op: OpDigamma, doc: "The derivative of lgamma, ψ(x): NaN or infinite where x is 0 or a negative integer.",
		types: floats,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			return inWide(b, in[0], digamma)
		},
	})
}

// erfinv(x)/x, for w = −log(1 − x²), as polynomials: of w − 2.5 for w up to 5,
// and of √w − 4 up to 37; fitted at Chebyshev points, good to 2e-6.
var (
	erfinvCentre = []float64{
		1.5014094114303589, 0.24664075672626495, -0.004177389666438103, -0.0012537486618384719,
		0.0002183469187002629, -4.383631676319055e-06, -3.4633562790986616e-06, 3.4252485647812136e-07, 2.3285844363840624e-08,
	}
	erfinvTail = []float64{
		3.8397796154022217, 1.009508728981018, 0.0013072490692138672, -0.0009354451321996748,
		0.00023777727619744837, -3.217921039322391e-05, 9.828720794757828e-05, -7.809288945281878e-05, 1.678585249464959e-05,
	}
)

// erfinvOf refines a polynomial by a step of Halley's method: f″/f′ of the
// error function is −2y. In the tail its error is that of erfc, which is small.
func erfinvOf(x scalar.Expr) scalar.Expr {
	number := func(v float64) scalar.Expr { return scalar.ConstF(x.Type, v) }
	a, one := scalar.Abs(x), number(1)
	rest := scalar.Sub(one, a)
	w := scalar.Neg(scalar.Log(scalar.Mul(rest, scalar.Add(one, a))))
	centre := horner(scalar.Sub(w, number(2.5)), erfinvCentre)
	tail := horner(scalar.Sub(scalar.Sqrt(w), number(4)), erfinvTail)
	y := scalar.Mul(a, scalar.Select(scalar.Lt(w, number(5)), centre, tail))

	over := scalar.Select(scalar.Gt(a, number(0.5)), scalar.Sub(rest, scalar.Erfc(y)), scalar.Sub(scalar.Erf(y), a))
	slope := scalar.Mul(number(2/math.SqrtPi), scalar.Exp(scalar.Neg(scalar.Mul(y, y))))
	step := scalar.Div(over, slope)
	y = scalar.Sub(y, scalar.Div(step, scalar.Add(one, scalar.Mul(y, step))))
	y = scalar.Select(scalar.Eq(a, one), number(math.Inf(1)), y)
	return scalar.Mul(scalar.Sign(x), y)
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
	return scalar.Select(reflected, scalar.Sub(mirror, value), value)
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
