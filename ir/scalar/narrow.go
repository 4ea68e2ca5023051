package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// narrowFloat describes the position of a floating type of 8 or 16 bits within f32, whose
// significand has 23 stored bits and whose exponent bias is 127.
type narrowFloat struct {
	d        dtype.DType
	mantissa int // stored bits of the significand
	minExp   int // exponent of the smallest normal number
	// infinity holds the bits of the smallest magnitude that is not finite, which is also the
	// result of overflow.
	infinity uint32
	// limit is the first f32, by its bits, that overflows.
	limit uint32
}

func narrowFloatOf(d dtype.DType) narrowFloat {
	_, mantissa := math.Frexp(d.Epsilon())
	_, minExp := math.Frexp(d.SmallestNormal())
	f := narrowFloat{d: d, mantissa: 1 - mantissa, minExp: minExp - 1}
	largest := d.FloatBits(d.MaxFloat())
	f.infinity = uint32(largest) + 1
	// Rounding goes up from half a unit above the largest number. The tie goes to the even
	// neighbour, which is the largest number if its last bit is 0.
	_, top := math.Frexp(d.MaxFloat())
	tie := d.MaxFloat() + math.Ldexp(1, top-2-f.mantissa)
	f.limit = math.Float32bits(float32(tie))
	if largest&1 == 0 {
		f.limit++
	}
	return f
}

// Unpack returns the f32 value of the low bits of a u32 in a floating type of 8 or 16 bits,
// exactly. Bits above those of the type must be 0. It uses integer operations, one conversion and
// one product, so that no device flushes a subnormal number of the narrow type. A NaN remains a
// NaN.
func Unpack(bits Expr, d dtype.DType) Expr {
	if d == dtype.BF16 {
		return Bitcast(Shl(bits, word(16)), dtype.F32)
	}
	f := narrowFloatOf(d)
	signBit := word(1 << (d.Bits() - 1))
	sign := Shl(And(bits, signBit), word(uint32(32-d.Bits())))
	magnitude := And(bits, word(1<<(d.Bits()-1)-1))
	// Adjust the exponent bias of a normal number; the exponent of an infinity or NaN becomes all
	// ones.
	rebias := word(uint32(127+f.minExp-1) << 23)
	toF32 := word(uint32(23 - f.mantissa))
	normal := Add(Shl(magnitude, toF32), rebias)
	normal = Select(Ge(magnitude, word(f.infinity)), Or(normal, word(0x7f800000)), normal)
	unit := ConstF(dtype.F32, math.Ldexp(1, f.minExp-f.mantissa))
	subnormal := Bitcast(Mul(Convert(magnitude, dtype.F32), unit), dtype.U32)
	isSubnormal := Lt(magnitude, word(1<<f.mantissa))
	return Bitcast(Or(Select(isSubnormal, subnormal, normal), sign), dtype.F32)
}

// Pack returns the bits, in the low bits of a u32, of an f32 rounded to a floating type of 8 or 16
// bits: to nearest, ties to even, like [dtype.DType.Round]. It uses integer operations except for
// one addition, which may flush a subnormal f32; that is 0 in all types but bf16. bf16 has the
// exponents of f32, so it needs no addition, and rounding carries into infinity.
func Pack(x Expr, d dtype.DType) Expr {
	f := narrowFloatOf(d)
	b := Bitcast(x, dtype.U32)
	magnitude := And(b, word(0x7fffffff))
	sign := Shr(And(b, word(0x80000000)), word(uint32(32-d.Bits())))
	drop := word(uint32(23 - f.mantissa))
	rebased := magnitude
	if d != dtype.BF16 {
		rebased = Sub(magnitude, word(uint32(127+f.minExp-1)<<23))
	}
	// Add half a unit minus one, plus one if the last kept bit is set: a tie then rounds up only to
	// an even number.
	odd := And(Shr(rebased, drop), word(1))
	rounded := Shr(Add(Add(rebased, word(1<<(22-f.mantissa)-1)), odd), drop)
	if d != dtype.BF16 {
		// Adding a number whose unit is that of the subnormals rounds.
		by := math.Ldexp(1, f.minExp-f.mantissa+23)
		sum := Add(Bitcast(magnitude, dtype.F32), ConstF(dtype.F32, by))
		subnormal := Sub(Bitcast(sum, dtype.U32), word(math.Float32bits(float32(by))))
		isSubnormal := Lt(magnitude, word(uint32(127+f.minExp)<<23))
		rounded = Select(isSubnormal, subnormal, rounded)
		rounded = Select(Ge(magnitude, word(f.limit)), word(f.infinity), rounded)
	}
	nan := word(uint32(d.FloatBits(math.NaN())))
	rounded = Select(Gt(magnitude, word(0x7f800000)), nan, rounded)
	return Or(rounded, sign)
}

// ExpandNarrow returns e with conversions from and to floats of 8 and 16 bits implemented by
// integer operations, through f32, for targets without these types. Only their loads and bitcasts
// remain.
func ExpandNarrow(e Expr) Expr {
	return bottomUp(e, func(n Expr) Expr {
		if n.Op != OpConvert {
			return n
		}
		return convertBits(n, 16)
	})
}

// convertBits implements a conversion from or to a float of at most the given number of bits by
// integer operations. Types other than f32 are converted through it.
func convertBits(n Expr, maxBits int) Expr {
	isNarrow := func(d dtype.DType) bool { return d.IsFloat() && d.Bits() <= maxBits }
	x := n.Args[0]
	if !isNarrow(x.Type) && !isNarrow(n.Type) {
		return n
	}
	if isNarrow(x.Type) {
		x = Unpack(Convert(Bitcast(x, sameWidth(x.Type)), dtype.U32), x.Type)
	}
	if !isNarrow(n.Type) {
		return Convert(x, n.Type)
	}
	bits := Pack(Convert(x, dtype.F32), n.Type)
	return Bitcast(Convert(bits, sameWidth(n.Type)), n.Type)
}

// sameWidth returns the unsigned type with the width of a float of 8 or 16 bits.
func sameWidth(d dtype.DType) dtype.DType {
	if d.IsFloat8() {
		return dtype.U8
	}
	return dtype.U16
}

func word(x uint32) Expr { return ConstI(dtype.U32, int64(x)) }
