package elementary

import (
	"math"
	"math/bits"
)

// Sin returns the sine of x. Like Cos and Tan it uses package math where its argument reduction is
// accurate enough, and elsewhere reduces the argument exactly.
func Sin(x float64) float64 {
	if r := math.Sin(x); accurate(x, r) {
		return r
	}
	sin, _ := sinCos(x)
	return sin
}

// Cos returns the cosine of x.
func Cos(x float64) float64 {
	if r := math.Cos(x); accurate(x, r) {
		return r
	}
	_, cos := sinCos(x)
	return cos
}

// Tan returns the tangent of x.
func Tan(x float64) float64 {
	if math.Abs(x) < 0x1p-20 {
		return x + x*x*x/3 // package math omits the second term up to 10⁻⁷; x⁵ does not count
	}
	if r := math.Tan(x); accurate(x, r) && (near(x) || accurate(x, 1/r)) {
		return r
	}
	sin, cos := sinCos(x)
	return sin / cos
}

// near reports whether x needs no reduction.
func near(x float64) bool { return math.Abs(x) <= math.Pi/4 }

// accurate reports whether r, which package math computed from x reduced, has all digits, or is not a
// number. It reduces large x with an absolute error of up to 2⁻⁵⁴, others with one of 2⁻⁶⁰.
func accurate(x, r float64) bool {
	const large, small = 1 << 29, 0.02
	return near(x) || r != r || math.Abs(x) < large && math.Abs(r) >= small
}

// twoOverPi holds 64 zero bits and then the first 1280 of the fraction of 2/π.
var twoOverPi = [21]uint64{
	0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c,
	0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08,
	0x56033046fc7b6bab, 0xf0cfbc209af4361d,
}

// TwoOverPi returns 64 zero bits and then the first 1280 of the fraction of 2/π, the first in the highest bit.
func TwoOverPi() [21]uint64 { return twoOverPi }

// sinCos returns sine and cosine of a finite |x| > π/4.
func sinCos(x float64) (sin, cos float64) {
	q, r, tail := reducePiOver2(math.Abs(x))
	s, c := math.Sin(r), math.Cos(r)
	s, c = s+tail*c, c-tail*s
	switch q & 3 {
	case 1:
		s, c = c, -s
	case 2:
		s, c = -s, -c
	case 3:
		s, c = -c, s
	}
	if x < 0 {
		s = -s
	}
	return s, c
}

// reducePiOver2 reduces a finite x ≥ π/4 to q·π/2 + r + tail with |r| ≤ π/4 and q modulo 4, by
// the method of Payne and Hanek: it computes the 256 bits from the quadrant on of the product
// of the significand and 2/π.
func reducePiOver2(x float64) (q uint64, r, tail float64) {
	b := math.Float64bits(x)
	significand, first := b&(1<<52-1)|1<<52, uint(b>>52)-(1023+52)+62
	var product [4]uint64 // most significant word first
	carry := uint64(0)
	for i := 3; i >= 0; i-- {
		word, shift := first/64+uint(i), first%64
		w := twoOverPi[word]<<shift | twoOverPi[word+1]>>1>>(63-shift)
		high, low := bits.Mul64(significand, w)
		var c uint64
		product[i], c = bits.Add64(low, carry, 0)
		carry = high + c
	}
	q = product[0] >> 62
	for i := range product { // drop the bits of the quadrant
		product[i] <<= 2
		if i < 3 {
			product[i] |= product[i+1] >> 62
		}
	}
	negative := product[0]>>63 == 1
	if negative {
		q++
		carry = 1
		for i := 3; i >= 0; i-- {
			product[i], carry = bits.Add64(^product[i], 0, carry)
		}
	}
	high, low := doubleFraction(product)
	const piHalf = math.Pi / 2
	r = high * piHalf
	tail = math.FMA(high, piHalf, -r) + (high*piHalfTail + low*piHalf)
	if negative {
		r, tail = -r, -tail
	}
	return q, r, tail
}

// doubleFraction returns a 256-bit fraction as the sum of two numbers. No float64 is so close
// to a multiple of π/2 that the first 64 bits are zeros.
func doubleFraction(f [4]uint64) (high, low float64) {
	zeros := bits.LeadingZeros64(f[0])
	a := f[0]<<zeros | f[1]>>1>>(63-zeros)
	b := f[1]<<zeros | f[2]>>1>>(63-zeros)
	high = math.Ldexp(float64(a>>11), -53-zeros)
	return high, math.Ldexp(float64(a<<53|b>>11), -117-zeros)
}
