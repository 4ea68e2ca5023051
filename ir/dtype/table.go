package dtype

import (
	"math"

	"github.com/rlx-go/rlx/internal/format"
)

// DType is the type of one element of a tensor. The zero value is Invalid.
type DType uint8

// The element types. The packed types are the block formats of GGUF files and have their names and
// layout.
const (
	Invalid DType = iota

	Bool // one byte in host memory, 0 or 1
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
	F16    // IEEE 754 binary16
	BF16   // the upper half of binary32
	F32    // IEEE 754 binary32
	F64    // IEEE 754 binary64
	C64    // two F32: real part, imaginary part
	C128   // two F64: real part, imaginary part
	F8E4M3 // 4 bits of exponent, 3 of significand; no infinities, one NaN of each sign
	F8E5M2 // 5 bits of exponent, 2 of significand; follows IEEE 754

	Q8_0 // 8-bit, one scale per block
	Q4_0 // 4-bit, one scale per block
	Q4_1 // 4-bit, scale and minimum per block
	Q5_0 // 5-bit, one scale per block
	Q5_1 // 5-bit, scale and minimum per block
	Q2K  // 2-bit, two-level scales and minima
	Q3K  // 3-bit, two-level scales
	Q4K  // 4-bit, two-level scales and minima
	Q5K  // 5-bit, two-level scales and minima
	Q6K  // 6-bit, two-level scales
	Q8K  // 8-bit, one f32 scale and partial sums per block

	count
)

// class groups the types with the same arithmetic.
type class uint8

const (
	classNone class = iota
	classBool
	classSigned
	classUnsigned
	classFloat
	classComplex
	classPacked
)

// info is the table row of a type. A plain type is a block of one element.
type info struct {
	name       string
	class      class
	elems      int // elements per block
	blockBytes int // bytes per block
}

var table = [count]info{
	Invalid: {name: "invalid", elems: 1},

	Bool:   {"bool", classBool, 1, 1},
	I8:     {"i8", classSigned, 1, 1},
	I16:    {"i16", classSigned, 1, 2},
	I32:    {"i32", classSigned, 1, 4},
	I64:    {"i64", classSigned, 1, 8},
	U8:     {"u8", classUnsigned, 1, 1},
	U16:    {"u16", classUnsigned, 1, 2},
	U32:    {"u32", classUnsigned, 1, 4},
	U64:    {"u64", classUnsigned, 1, 8},
	F16:    {"f16", classFloat, 1, 2},
	BF16:   {"bf16", classFloat, 1, 2},
	F32:    {"f32", classFloat, 1, 4},
	F64:    {"f64", classFloat, 1, 8},
	C64:    {"c64", classComplex, 1, 8},
	C128:   {"c128", classComplex, 1, 16},
	F8E4M3: {"f8e4m3fn", classFloat, 1, 1},
	F8E5M2: {"f8e5m2", classFloat, 1, 1},

	Q8_0: {"q8_0", classPacked, 32, 34},
	Q4_0: {"q4_0", classPacked, 32, 18},
	Q4_1: {"q4_1", classPacked, 32, 20},
	Q5_0: {"q5_0", classPacked, 32, 22},
	Q5_1: {"q5_1", classPacked, 32, 24},
	Q2K:  {"q2_k", classPacked, 256, 84},
	Q3K:  {"q3_k", classPacked, 256, 110},
	Q4K:  {"q4_k", classPacked, 256, 144},
	Q5K:  {"q5_k", classPacked, 256, 176},
	Q6K:  {"q6_k", classPacked, 256, 210},
	Q8K:  {"q8_k", classPacked, 256, 292},
}

// row returns the table row of d; numbers outside the table read as Invalid.
func (d DType) row() *info {
	if d >= count {
		d = Invalid
	}
	return &table[d]
}

// All returns every valid type in declaration order. The caller owns the slice.
func All() []DType {
	all := make([]DType, 0, count-1)
	for d := Invalid + 1; d < count; d++ {
		all = append(all, d)
	}
	return all
}

// String returns the name used in text forms: f32, bool, c64, q4_0, q4_k.
func (d DType) String() string { return d.row().name }

// Parse is the inverse of String. The error is a *ParseError.
func Parse(name string) (DType, error) {
	for d := Invalid + 1; d < count; d++ {
		if table[d].name == name {
			return d, nil
		}
	}
	return Invalid, &ParseError{Name: name}
}

// Valid reports whether d is one of the declared types other than Invalid.
func (d DType) Valid() bool { return d > Invalid && d < count }

// Size returns the bytes of one element in host memory, 0 for packed and invalid types.
func (d DType) Size() int {
	if r := d.row(); r.elems == 1 {
		return r.blockBytes
	}
	return 0
}

// Bits returns the number of bits of the value of one element: 1 for Bool, 8 times Size for other
// plain types, 0 for packed and invalid types.
func (d DType) Bits() int {
	if d == Bool {
		return 1
	}
	return 8 * d.Size()
}

// Block returns the number of elements and of bytes of one block. A plain type is a block of one
// element; Invalid has 1 element and 0 bytes.
func (d DType) Block() (elems, bytes int) {
	r := d.row()
	return r.elems, r.blockBytes
}

// Bytes returns the size of n elements in bytes. The error, a *SizeError, is returned for Invalid,
// a negative n, a partial block of a packed type, and a size that overflows an int.
func (d DType) Bytes(n int) (int, error) {
	r := d.row()
	switch {
	case !d.Valid():
		return 0, &SizeError{Type: d, Elems: n, Reason: "the type is invalid"}
	case n < 0:
		return 0, &SizeError{Type: d, Elems: n, Reason: "the count is negative"}
	case n%r.elems != 0:
		return 0, &SizeError{Type: d, Elems: n, Reason: "the count is not a whole number of blocks"}
	case n/r.elems > math.MaxInt/r.blockBytes:
		return 0, &SizeError{Type: d, Elems: n, Reason: "the size overflows"}
	}
	return n / r.elems * r.blockBytes, nil
}

// IsFloat reports whether d is f8e4m3fn, f8e5m2, f16, bf16, f32 or f64.
func (d DType) IsFloat() bool { return d.row().class == classFloat }

// IsFloat8 reports whether d is an 8-bit floating type; these only store values and have no
// arithmetic.
func (d DType) IsFloat8() bool { return d.IsFloat() && d.Size() == 1 }

// IsInteger reports whether d is a signed or unsigned integer. Bool is not.
func (d DType) IsInteger() bool { return d.IsSigned() || d.IsUnsigned() }

// IsSigned reports whether d is a signed integer.
func (d DType) IsSigned() bool { return d.row().class == classSigned }

// IsUnsigned reports whether d is an unsigned integer.
func (d DType) IsUnsigned() bool { return d.row().class == classUnsigned }

// IsBool reports whether d is Bool.
func (d DType) IsBool() bool { return d == Bool }

// IsComplex reports whether d is c64 or c128.
func (d DType) IsComplex() bool { return d.row().class == classComplex }

// IsPacked reports whether d is a quantised block type.
func (d DType) IsPacked() bool { return d.row().class == classPacked }

// IsNumeric reports whether d has arithmetic: integers, floats of 16 bits or more and complex
// numbers, but not Bool, 8-bit floats or packed types.
func (d DType) IsNumeric() bool {
	return d.IsInteger() || d.IsFloat() && !d.IsFloat8() || d.IsComplex()
}

// Real returns the type of the parts of a complex type (c64 to f32, c128 to f64) and d itself for
// all others.
func (d DType) Real() DType {
	switch d {
	case C64:
		return F32
	case C128:
		return F64
	}
	return d
}

// Complex returns the complex type whose parts have type d (f32 to c64, f64 to c128), d itself if
// it is complex, and Invalid otherwise.
func (d DType) Complex() DType {
	switch d {
	case F32, C64:
		return C64
	case F64, C128:
		return C128
	}
	return Invalid
}

// Unsigned returns the unsigned integer type of the width of the plain type d, for bitcasts;
// Invalid if there is none (Bool, c128, packed).
func (d DType) Unsigned() DType {
	switch {
	case d == Bool:
		return Invalid
	case d.Size() == 1:
		return U8
	case d.Size() == 2:
		return U16
	case d.Size() == 4:
		return U32
	case d.Size() == 8:
		return U64
	}
	return Invalid
}

// ParseError reports a name that is not the name of a type.
type ParseError struct{ Name string }

func (e *ParseError) Error() string { return format.Sprintf("dtype: unknown type %q", e.Name) }

// SizeError reports a number of elements that has no size in bytes.
type SizeError struct {
	Type   DType
	Elems  int
	Reason string
}

func (e *SizeError) Error() string {
	return format.Sprintf("dtype: no size for %d elements of %s: %s", e.Elems, e.Type, e.Reason)
}
