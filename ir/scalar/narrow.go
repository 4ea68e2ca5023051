package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// narrowFloat describes how a floating type of 8 or 16 bits lies beside f32,
// whose significand has 23 stored bits and whose exponents are biased by 127.
type narrowFloat struct {
	d        dtype.DType
	mantissa int // stored bits of the significand
	minExp   int // exponent of the smallest normal number
	// infinity holds the bits of the smallest magnitude that is no number, which is
	// also what rounds past the largest one.
	infinity uint32
	// limit is the first f32, by its bits, that is rounded past the largest.
	limit uint32
}

func narrowFloatOf(d dtype.DType) narrowFloat {
	_, mantissa := math.Frexp(d.Epsilon())
	_, minExp := math.Frexp(d.SmallestNormal())
	f := narrowFloat{d: d, mantissa: 1 - mantissa, minExp: minExp - 1}
	largest := d.FloatBits(d.MaxFloat())
	f.infinity = uint32(largest) + 1
	// Half a unit beyond the largest number is where rounding would go up. The tie
	// itself goes to the even neighbour, which is the largest where its last bit is
	// 0.
	_, top := math.Frexp(d.MaxFloat())
	tie := d.MaxFloat() + math.Ldexp(1, top-2-f.mantissa)
	f.limit = math.Float32bits(float32(tie))
	if largest&1 == 0 {
		f.limit++
	}
	return f
}

// Unpack returns the number, an f32, that the low bits of a u32 are in a
// floating type of 8 or 16 bits, exactly. Bits above those of the type must be 0.
// It is made of integer operations, one conversion and one product, so that no
// device flushes a subnormal number of the narrow type. A NaN stays one.
func Unpack(bits Expr, d dtype.DType) Expr {
	if d == dtype.BF16 {
		return Bitcast(Shl(bits, word(16)), dtype.F32)
	}
	f := narrowFloatOf(d)
	signBit := word(1 << (d.Bits() - 1))
	sign := Shl(And(bits, signBit), word(uint32(32-d.Bits())))
	magnitude := And(bits, word(1<<(d.Bits()-1)-1))
	// A normal number has its exponent's bias raised; what is no number gets all
	// ones as its exponent.
	rebias := word(uint32(127+f.minExp-1) << 23)
	toF32 := word(uint32(23 - f.mantissa))
	normal := Add(Shl(magnitude, toF32), rebias)
	normal = Select(Ge(magnitude, word(f.infinity)), Or(normal, word(0x7f800000)), normal)
	unit := ConstF(dtype.F32, math.Ldexp(1, f.minExp-f.mantissa))
	subnormal := Bitcast(Mul(Convert(magnitude, dtype.F32), unit), dtype.U32)
	isSubnormal := Lt(magnitude, word(1<<f.mantissa))
	return Bitcast(Or(Select(isSubnormal, subnormal, normal), sign), dtype.F32)
}

// Pack returns the bits, in the low bits of a u32, of an f32 rounded to a
// floating type of 8 or 16 bits: to nearest, ties to even, as [dtype.DType.Round]
// does it. It is made of integer operations, but for one sum, of which a
// subnormal f32 may be flushed: it is 0 in all types but bf16. That one has the
// exponents of f32, so that it needs no sum, and rounding carries into infinity.
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
	// Half a unit less one, and one more where the last kept bit is set: so a tie
	// goes up only to an even number.
	odd := And(Shr(rebased, drop), word(1))
	rounded := Shr(Add(Add(rebased, word(1<<(22-f.mantissa)-1)), odd), drop)
	if d != dtype.BF16 {
		// The sum with a number whose unit is that of the subnormal ones rounds.
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

// ExpandNarrow returns e with its conversions from and to floats of 8 and 16 bits
// made of integer operations, by way of f32, for targets that have no such types:
// what is left on them is loads and bitcasts.
func ExpandNarrow(e Expr) Expr {
	return fromLeaves(e, func(n Expr) Expr {
		if n.Op != OpConvert {
			return n
		}
		return convertBits(n, 16)
	})
}

// convertBits makes a conversion from or to a float of no more than some bits of
// integer operations on its bits. What is no f32 goes through it.
func convertBits(n Expr, most int) Expr {
	isNarrow := func(d dtype.DType) bool { return d.IsFloat() && d.Bits() <= most }
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

// sameWidth returns the unsigned type of the bits of a float of 8 or 16 bits.
func sameWidth(d dtype.DType) dtype.DType {
	if d.IsFloat8() {
		return dtype.U8
	}
	return dtype.U16
}

func word(x uint32) Expr { return ConstI(dtype.U32, int64(x)) }
