package elementary

import "math"

// maxIntPower is the largest integer exponent for which Pow multiplies, which is exact where
// it can be.
const maxIntPower = 32

// Pow returns x to the power y.
func Pow(x, y float64) float64 {
	whole := y == math.Trunc(y)
	switch a := math.Abs(x); {
	case whole && math.Abs(y) <= maxIntPower, x != x, y != y, a == 0, a == 1, math.IsInf(x, 0), math.IsInf(y, 0), x < 0 && !whole:
		return math.Pow(x, y)
	case y == 0.5:
		return math.Sqrt(x)
	case x < 0 && math.Mod(y, 2) != 0:
		return -positivePower(a, y)
	default:
		return positivePower(a, y)
	}
}

// positivePower returns x to the power y for positive finite x, with y·log x in double-double
// arithmetic.
func positivePower(x, y float64) float64 {
	high, low := doubleLog(x)
	// Rounded by conversions, as compilers for arm64 fuse products with sums.
	p := float64(y * high)
	switch { // the tail of an infinite product would be NaN
	case p > 710:
		return math.Inf(1)
	case p < -746:
		return 0
	}
	tail := math.FMA(y, high, -p) + y*low
	e := Exp(p)
	return e + e*tail
}

// logTerms are 1/(2k+1) from k = 3 on, of log m = 2·(s + s³/3 + s⁵/5 + …) for s = (m-1)/(m+1).
var logTerms = []float64{1. / 7, 1. / 9, 1. / 11, 1. / 13, 1. / 15, 1. / 17, 1. / 19, 1. / 21, 1. / 23, 1. / 25, 1. / 27}

// The natural logarithm of 2, 1/3 and 1/5 minus their float64.
const (
	ln2Tail   = 0x1.abc9e3b39803fp-56
	thirdTail = 0x1.5555555555555p-56
	fifthTail = -0x1.999999999999ap-57
)

// doubleLog returns log x of a positive finite x as a double-double number, with a relative
// error of about 2⁻⁶⁷.
func doubleLog(x float64) (high, low float64) {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	f, g := m-1, m+1
	s := f / g
	gTail := m - (g - 1)
	sTail := (math.FMA(-s, g, f) - s*gTail) / g

	z := float64(s * s)
	zTail := math.FMA(s, s, -z) + 2*s*sTail
	p := 0.0
	for i := len(logTerms) - 1; i >= 0; i-- {
		p = p*z + logTerms[i]
	}
	high, low = doubleProduct(z, zTail, p, 0)
	high, low = doubleSum(1./5, fifthTail, high, low)
	high, low = doubleProduct(z, zTail, high, low)
	high, low = doubleSum(1./3, thirdTail, high, low)
	high, low = doubleProduct(z, zTail, high, low)
	high, low = doubleSum(1, 0, high, low)
	high, low = doubleProduct(2*s, 2*sTail, high, low)

	k := float64(e)
	kHigh, kLow := doubleProduct(math.Ln2, ln2Tail, k, 0)
	if e == 0 {
		return high, low
	}
	return doubleSum(kHigh, kLow, high, low)
}

// doubleProduct multiplies two double-double numbers.
func doubleProduct(a, aTail, b, bTail float64) (high, low float64) {
	high = float64(a * b)
	return high, math.FMA(a, b, -high) + (a*bTail + aTail*b)
}

// doubleSum adds two double-double numbers; a is 0 or has the larger magnitude.
func doubleSum(a, aTail, b, bTail float64) (high, low float64) {
	high = a + b
	low = b - (high - a) + (aTail + bTail)
	total := high + low
	return total, low - (total - high)
}
