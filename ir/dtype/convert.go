package dtype

import (
	"math"

	"github.com/x448/float16"
)

// The bulk converters convert elements of src to dst up to the end of the shorter slice and return
// their number. 16-bit values are bit patterns. Widening is exact; narrowing rounds to nearest,
// ties to even, overflows to infinity and keeps NaN a NaN.

// F16ToF32 widens binary16 bit patterns.
func F16ToF32(dst []float32, src []uint16) int {
	n := min(len(dst), len(src))
	for i, h := range src[:n] {
		dst[i] = float16.Frombits(h).Float32()
	}
	return n
}

// F32ToF16 narrows to binary16 bit patterns.
func F32ToF16(dst []uint16, src []float32) int {
	n := min(len(dst), len(src))
	for i, x := range src[:n] {
		dst[i] = float16.Fromfloat32(x).Bits()
	}
	return n
}

// BF16ToF32 widens bfloat16 bit patterns.
func BF16ToF32(dst []float32, src []uint16) int {
	n := min(len(dst), len(src))
	for i, h := range src[:n] {
		dst[i] = math.Float32frombits(uint32(h) << 16)
	}
	return n
}

// F32ToBF16 narrows to bfloat16 bit patterns.
func F32ToBF16(dst []uint16, src []float32) int {
	n := min(len(dst), len(src))
	for i, x := range src[:n] {
		dst[i] = bf16Bits(math.Float32bits(x))
	}
	return n
}

// bf16Bits rounds the bits of a float32 to those of a bfloat16. Adding 0x7fff plus the lowest kept
// bit carries into the upper half exactly if rounding to nearest even rounds up, and carries from
// the largest finite number to infinity. A NaN is handled separately, since the carry could turn it
// into an infinity or lose its payload: it is made quiet by setting the top bit of its significand.
func bf16Bits(b uint32) uint16 {
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x0040
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FloatBits returns the bit pattern of x in float type d, rounded as by Round. It returns 0 for
// types that are not floats.
func (d DType) FloatBits(x float64) uint64 {
	if d.IsFloat8() {
		return uint64(d.bits8(d.Round(x)))
	}
	switch d {
	case F16:
		return uint64(float16.Fromfloat32(float32(d.Round(x))).Bits())
	case BF16:
		return uint64(bf16Bits(math.Float32bits(float32(d.Round(x)))))
	case F32:
		return uint64(math.Float32bits(float32(x)))
	case F64:
		return math.Float64bits(x)
	}
	return 0
}

// FloatFromBits returns the value of the low bits of b in float type d, exactly. It returns 0 for
// types that are not floats.
func (d DType) FloatFromBits(b uint64) float64 {
	switch d {
	case F16:
		return float64(float16.Frombits(uint16(b)).Float32())
	case BF16:
		return float64(math.Float32frombits(uint32(b) << 16))
	case F32:
		return float64(math.Float32frombits(uint32(b)))
	case F64:
		return math.Float64frombits(b)
	}
	if d.IsFloat8() {
		return d.format().value8(uint8(b))
	}
	return 0
}

// QuietNaN returns the bits of the positive NaN of a float type whose significand has only the
// quiet bit set, or of the only positive NaN in f8e4m3fn. It returns 0 for types that are not
// floats.
func (d DType) QuietNaN() uint64 {
	if !d.IsFloat() {
		return 0
	}
	f, ones := d.format(), uint64(1)<<(d.Bits()-1)-1
	if f.finite {
		return ones
	}
	return ones &^ (1<<(f.mantissa-1) - 1)
}

// bits8 returns the bits of x, a value of the 8-bit float type d. A NaN keeps its sign and becomes
// quiet, as in the package ml_dtypes.
func (d DType) bits8(x float64) uint8 {
	f, sign := d.format(), uint8(0)
	if math.Signbit(x) {
		sign = 0x80
	}
	infinity := uint8(0x7f) &^ (1<<f.mantissa - 1)
	switch {
	case math.IsNaN(x):
		return sign | uint8(d.QuietNaN())
	case math.IsInf(x, 0):
		return sign | infinity
	case x == 0:
		return sign
	}
	// The significand as an integer. The implicit leading 1 of a normal number adds one to the
	// exponent field.
	exp := max(math.Ilogb(x), f.minExp)
	significand := uint8(math.Ldexp(math.Abs(x), f.mantissa-exp))
	return sign | uint8(exp-f.minExp)<<f.mantissa + significand
}

// value8 is the inverse of bits8.
func (f *binaryFormat) value8(b uint8) float64 {
	exp, significand := int(b&0x7f>>f.mantissa), int(b)&(1<<f.mantissa-1)
	x := math.Ldexp(float64(significand), f.minExp-f.mantissa)
	switch {
	case b&0x7f == 0x7f && f.finite:
		x = math.NaN()
	case b&0x7f>>f.mantissa == 0x7f>>f.mantissa && !f.finite:
		if x = math.Inf(1); significand != 0 {
			x = math.NaN()
		}
	case exp > 0:
		x = math.Ldexp(float64(significand+1<<f.mantissa), f.minExp-f.mantissa+exp-1)
	}
	if b&0x80 != 0 {
		return math.Copysign(x, -1)
	}
	return x
}
