package onnx

import (
	"math"

	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
)

// Element is an element type of ONNX, by the numbers of TensorProto.DataType.
type Element int32

// The element types.
const (
	Float      Element = 1
	Uint8      Element = 2
	Int8       Element = 3
	Uint16     Element = 4
	Int16      Element = 5
	Int32      Element = 6
	Int64      Element = 7
	String     Element = 8
	Bool       Element = 9
	Float16    Element = 10
	Double     Element = 11
	Uint32     Element = 12
	Uint64     Element = 13
	Complex64  Element = 14
	Complex128 Element = 15
	BFloat16   Element = 16
	F8E4M3FN   Element = 17
	F8E4M3FNUZ Element = 18
	F8E5M2     Element = 19
	F8E5M2FNUZ Element = 20
	Uint4      Element = 21
	Int4       Element = 22
	F4E2M1     Element = 23
	F8E8M0     Element = 24
	Uint2      Element = 25
	Int2       Element = 26
	F6E2M3     Element = 27
	F6E3M2     Element = 28
)

// elementInfo is how an element type is stored in a file and in a graph.
type elementInfo struct {
	name string
	in   ir.DType // in a graph
	bits int      // in a file
	// Types that a graph has not are held in a wider one: integers from low to high, floats as
	// small describes.
	low, high int64
	small     *smallFloat
}

// smallFloat is a floating type with a sign bit unless unsigned, exponent bits and mantissa bits.
type smallFloat struct {
	mantissa, bias int
	exponent       int
	unsigned       bool
	max            float64 // the largest finite number
	nan            bool    // there are NaNs
	fnuz           bool    // the NaN is the pattern of -0
}

var elements = map[Element]elementInfo{
	Float: {name: "float", in: ir.F32, bits: 32}, Uint8: {name: "uint8", in: ir.U8, bits: 8}, Int8: {name: "int8", in: ir.I8, bits: 8},
	Uint16: {name: "uint16", in: ir.U16, bits: 16}, Int16: {name: "int16", in: ir.I16, bits: 16},
	Int32: {name: "int32", in: ir.I32, bits: 32}, Int64: {name: "int64", in: ir.I64, bits: 64},
	String: {name: "string"}, Bool: {name: "bool", in: ir.Bool, bits: 8}, Float16: {name: "float16", in: ir.F16, bits: 16},
	Double: {name: "double", in: ir.F64, bits: 64}, Uint32: {name: "uint32", in: ir.U32, bits: 32}, Uint64: {name: "uint64", in: ir.U64, bits: 64},
	Complex64: {name: "complex64", in: ir.C64, bits: 64}, Complex128: {name: "complex128", in: ir.C128, bits: 128},
	BFloat16:   {name: "bfloat16", in: ir.BF16, bits: 16},
	F8E4M3FN:   {name: "float8e4m3fn", in: ir.F8E4M3, bits: 8},
	F8E4M3FNUZ: {name: "float8e4m3fnuz", in: ir.F32, bits: 8, small: &smallFloat{mantissa: 3, exponent: 4, bias: 8, max: 240, nan: true, fnuz: true}},
	F8E5M2:     {name: "float8e5m2", in: ir.F8E5M2, bits: 8},
	F8E5M2FNUZ: {name: "float8e5m2fnuz", in: ir.F32, bits: 8, small: &smallFloat{mantissa: 2, exponent: 5, bias: 16, max: 57344, nan: true, fnuz: true}},
	Uint4:      {name: "uint4", in: ir.U8, bits: 4, high: 15}, Int4: {name: "int4", in: ir.I8, bits: 4, low: -8, high: 7},
	F4E2M1: {name: "float4e2m1", in: ir.F32, bits: 4, small: &smallFloat{mantissa: 1, exponent: 2, bias: 1, max: 6}},
	F8E8M0: {name: "float8e8m0", in: ir.F32, bits: 8, small: &smallFloat{exponent: 8, bias: 127, unsigned: true, max: 0x1p127, nan: true}},
	Uint2:  {name: "uint2", in: ir.U8, bits: 2, high: 3}, Int2: {name: "int2", in: ir.I8, bits: 2, low: -2, high: 1},
	F6E2M3: {name: "float6e2m3", in: ir.F32, bits: 6, small: &smallFloat{mantissa: 3, exponent: 2, bias: 1, max: 7.5}},
	F6E3M2: {name: "float6e3m2", in: ir.F32, bits: 6, small: &smallFloat{mantissa: 2, exponent: 3, bias: 3, max: 28}},
}

// String returns the name in the ONNX specification.
func (e Element) String() string {
	if i, ok := elements[e]; ok {
		return i.name
	}
	return format.Sprintf("element type %d", int32(e))
}

// DType returns the element type that a graph holds the elements in: the same one or, for types
// that a graph has not, a wider one. It is Invalid for strings and unknown types.
func (e Element) DType() ir.DType { return elements[e].in }

// elementOf returns the ONNX type of an element type of graphs.
func elementOf(d ir.DType) Element {
	for e, i := range elements {
		if i.in == d && i.bits == 8*d.Size() && i.small == nil {
			return e
		}
	}
	return 0
}

// held reports whether a graph has no such type and holds its elements in a wider one.
func (i elementInfo) held() bool { return i.bits < 8*i.in.Size() }

// isSmall reports whether the type is a float of 8 bits or less.
func (i elementInfo) isSmall() bool { return i.small != nil || i.in.IsFloat8() }

// value returns the number with the given bits.
func (f *smallFloat) value(bits uint64) float64 {
	m := bits & (1<<f.mantissa - 1)
	e := int(bits>>f.mantissa) & (1<<f.exponent - 1)
	sign := 1.0
	if !f.unsigned && bits>>(f.mantissa+f.exponent)&1 != 0 {
		sign = -1
	}
	full := 1<<f.exponent - 1
	switch {
	case f.fnuz && bits == 1<<(f.mantissa+f.exponent):
		return math.NaN()
	case f.nan && f.unsigned && e == full:
		return math.NaN()
	case e == 0 && !f.unsigned:
		return sign * math.Ldexp(float64(m), 1-f.bias-f.mantissa)
	}
	return sign * math.Ldexp(float64(m)+float64(int(1)<<f.mantissa), e-f.bias-f.mantissa)
}
