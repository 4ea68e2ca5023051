// Package elementary has the float64 functions for which package math has larger errors
// somewhere: exponentials that overflow early and logarithms of subnormal numbers in its
// assembly for x86-64, arcs near ±1, powers of numbers near 1, and angles near multiples of π.
// Each result is within two ulps for every argument. The functions call package math where it
// is accurate enough. The reference evaluator (package scalar), the ops and the CPU backend
// use it. Start reading at functions.go; pow.go and trig.go have those that compute with two numbers for one.
package elementary

import "math"

// Exp returns e to the power x.
func Exp(x float64) float64 {
	if x > 700 {
		return math.Exp(x-1) * math.E // on x86-64 math.Exp overflows from 709.44 on
	}
	return math.Exp(x)
}

// Sigmoid returns 1/(1 + e^-x). It exponentiates negative numbers only, so that it neither
// overflows nor underflows early.
func Sigmoid(x float64) float64 {
	e := math.Exp(-math.Abs(x))
	if x < 0 {
		return e / (1 + e)
	}
	return 1 / (1 + e)
}

// Log returns the natural logarithm of x.
func Log(x float64) float64 {
	const minNormal, shift = 0x1p-1022, 54
	if x > 0 && x < minNormal {
		return math.Log(x*(1<<shift)) - shift*math.Ln2 // on x86-64 math.Log is wrong for subnormal numbers
	}
	return math.Log(x)
}

// Log2 returns the logarithm of x to base 2, exact for powers of two.
func Log2(x float64) float64 {
	frac, exp := math.Frexp(x)
	if frac < math.Sqrt2/2 {
		frac, exp = 2*frac, exp-1 // so that the sum below does not cancel
	}
	return float64(exp) + math.Log(frac)*(1/math.Ln2)
}

// Log10 returns the logarithm of x to base 10.
func Log10(x float64) float64 { return Log(x) * (1 / math.Ln10) }

// Sinh returns the hyperbolic sine of x.
func Sinh(x float64) float64 {
	if math.Abs(x) > 700 {
		return math.Copysign(halfExp(math.Abs(x)), x)
	}
	return math.Sinh(x)
}

// Cosh returns the hyperbolic cosine of x.
func Cosh(x float64) float64 {
	if math.Abs(x) > 700 {
		return halfExp(math.Abs(x))
	}
	return math.Cosh(x)
}

// halfExp returns e^x/2 of a large x, without early overflow.
func halfExp(x float64) float64 { return math.Exp(x-2) * (math.E * math.E / 2) }

// piHalfTail is π/2 minus its float64.
const piHalfTail = 0x1.1a62633145c07p-54

// Asin returns the arc sine of x.
func Asin(x float64) float64 {
	if a := math.Abs(x); a > 0.5 {
		return math.Copysign(math.Pi/2-(2*halfAcos(a)-piHalfTail), x)
	}
	return math.Asin(x)
}

// Acos returns the arc cosine of x.
func Acos(x float64) float64 {
	switch {
	case x > 0.5:
		return 2 * halfAcos(x)
	case x < -0.5:
		return math.Pi - (2*halfAcos(-x) - 2*piHalfTail)
	}
	return math.Pi/2 - (math.Asin(x) - piHalfTail)
}

// halfAcos returns half of the arc cosine of x > ½, as an arc sine: 1 - x is exact.
func halfAcos(x float64) float64 { return math.Asin(math.Sqrt((1 - x) / 2)) }

// Atan2 returns the angle of the point (x, y).
func Atan2(y, x float64) float64 {
	r := math.Atan2(y, x)
	if r != r {
		return r
	}
	return math.Copysign(r, y) // math.Atan2 loses the sign where y/x is 0 by rounding
}
