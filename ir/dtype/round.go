package dtype

import "math"

// binaryFormat describes a binary floating-point format by the width of its stored significand and
// its exponent range.
type binaryFormat struct {
	mantissa int     // stored significand bits
	minExp   int     // exponent of the smallest normal number
	max      float64 // largest finite number
	finite   bool    // there are no infinities: values beyond max are NaN
}

// formats holds the formats of the float types, and of the parts of the complex types.
var formats = [count]*binaryFormat{
	F8E4M3: {mantissa: 3, minExp: -6, max: 448, finite: true},
	F8E5M2: {mantissa: 2, minExp: -14, max: 57344},
	F16:    {mantissa: 10, minExp: -14, max: 65504},
	BF16:   {mantissa: 7, minExp: -126, max: 0x1.fep127},
	F32:    &binary32, C64: &binary32,
	F64: &binary64, C128: &binary64,
}

var (
	binary32 = binaryFormat{mantissa: 23, minExp: -126, max: math.MaxFloat32}
	binary64 = binaryFormat{mantissa: 52, minExp: -1022, max: math.MaxFloat64}
)

// format returns the format of a float type or of the parts of a complex type, nil for all others.
func (d DType) format() *binaryFormat {
	if !d.Valid() {
		return nil
	}
	return formats[d]
}

// Round returns the value of float type d nearest to x, ties to even. A result beyond the largest
// finite value is an infinity of the same sign, or NaN in f8e4m3fn, which has no infinities:
// nothing saturates. The sign of zero and NaN are kept, and subnormal values are not flushed. It
// rounds the float64 once, not through float32. Types that are not floats, and f64, return x
// unchanged.
func (d DType) Round(x float64) float64 {
	switch {
	case d == F32: // equivalent and faster
		return float64(float32(x))
	case d.IsFloat() && d.Size() < F32.Size():
		return d.format().round(x)
	}
	return x
}

// round scales x so that its last kept bit has value 1, rounds, and scales back. Both scalings are
// exact, since they are by powers of two.
func (f *binaryFormat) round(x float64) float64 {
	if f.finite && math.IsInf(x, 0) {
		return math.Copysign(math.NaN(), x)
	}
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	exp := max(math.Ilogb(x), f.minExp)
	quantum := exp - f.mantissa
	r := math.Ldexp(math.RoundToEven(math.Ldexp(x, -quantum)), quantum)
	if math.Abs(r) > f.max {
		if f.finite {
			return math.Copysign(math.NaN(), x)
		}
		return math.Inf(int(math.Copysign(1, x)))
	}
	return r
}

// Wrap returns x reduced to the width of integer type d in two's complement. A u64 is kept as its
// bit pattern, so values of 2⁶³ and more are negative here. Bool returns 1 for every x except 0.
// Other types return x unchanged.
func (d DType) Wrap(x int64) int64 {
	switch d {
	case Bool:
		if x != 0 {
			return 1
		}
		return 0
	case I8:
		return int64(int8(x))
	case I16:
		return int64(int16(x))
	case I32:
		return int64(int32(x))
	case U8:
		return int64(uint8(x))
	case U16:
		return int64(uint16(x))
	case U32:
		return int64(uint32(x))
	}
	return x
}

// IntRange returns the smallest and largest value of an integer type or Bool (0 and 1). ok is false
// for all others and for u64, whose upper half does not fit an int64.
func (d DType) IntRange() (lo, hi int64, ok bool) {
	bits := d.Bits()
	switch {
	case d == Bool:
		return 0, 1, true
	case d == U64:
		return 0, 0, false
	case d.IsSigned():
		return -1 << (bits - 1), 1<<(bits-1) - 1, true
	case d.IsUnsigned():
		return 0, 1<<bits - 1, true
	}
	return 0, 0, false
}

// MaxFloat returns the largest finite value of a float type or of the parts of
// a complex type, 0 for all others.
func (d DType) MaxFloat() float64 {
	if f := d.format(); f != nil {
		return f.max
	}
	return 0
}

// SmallestNormal returns the smallest positive normal value of a float type or
// of the parts of a complex type, 0 for all others.
func (d DType) SmallestNormal() float64 {
	if f := d.format(); f != nil {
		return math.Ldexp(1, f.minExp)
	}
	return 0
}

// Epsilon returns the distance from 1 to the next larger value of a float type
// or of the parts of a complex type, 0 for all others.
func (d DType) Epsilon() float64 {
	if f := d.format(); f != nil {
		return math.Ldexp(1, -f.mantissa)
	}
	return 0
}
