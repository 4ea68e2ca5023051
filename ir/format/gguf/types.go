package gguf

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
)

// Type is how the elements of a tensor are stored, by the numbers of ggml.
type Type uint32

// The types.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q8_1   Type = 9
	Q2_K   Type = 10
	Q3_K   Type = 11
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	Q8_K   Type = 15
	IQ2XXS Type = 16
	IQ2XS  Type = 17
	IQ3XXS Type = 18
	IQ1S   Type = 19
	IQ4NL  Type = 20
	IQ3S   Type = 21
	IQ2S   Type = 22
	IQ4XS  Type = 23
	I8     Type = 24
	I16    Type = 25
	I32    Type = 26
	I64    Type = 27
	F64    Type = 28
	IQ1M   Type = 29
	BF16   Type = 30
	TQ1_0  Type = 34
	TQ2_0  Type = 35
	MXFP4  Type = 39
	NVFP4  Type = 40
	Q1_0   Type = 41
)

// typeInfo describes a type: the elements and bytes of a block. unpack is nil for types that are
// not converted to floats.
type typeInfo struct {
	name            string
	elements, bytes int
	dtype           ir.DType // of single elements; invalid for blocks
	unpack          func(block []byte, out []float32)
}

var types = map[Type]typeInfo{
	F32: {"f32", 1, 4, ir.F32, nil}, F16: {"f16", 1, 2, ir.F16, nil}, BF16: {"bf16", 1, 2, ir.BF16, nil}, F64: {"f64", 1, 8, ir.F64, nil},
	I8: {"i8", 1, 1, ir.I8, nil}, I16: {"i16", 1, 2, ir.I16, nil}, I32: {"i32", 1, 4, ir.I32, nil}, I64: {"i64", 1, 8, ir.I64, nil},
	Q4_0: {"q4_0", 32, 18, 0, unpackQ4_0}, Q4_1: {"q4_1", 32, 20, 0, unpackQ4_1}, Q5_0: {"q5_0", 32, 22, 0, unpackQ5_0},
	Q5_1: {"q5_1", 32, 24, 0, unpackQ5_1}, Q8_0: {"q8_0", 32, 34, 0, unpackQ8_0}, Q8_1: {"q8_1", 32, 40, 0, nil},
	Q2_K: {"q2_k", 256, 84, 0, unpackQ2_K}, Q3_K: {"q3_k", 256, 110, 0, unpackQ3_K}, Q4_K: {"q4_k", 256, 144, 0, unpackQ4_K},
	Q5_K: {"q5_k", 256, 176, 0, unpackQ5_K}, Q6_K: {"q6_k", 256, 210, 0, unpackQ6_K}, Q8_K: {"q8_k", 256, 292, 0, unpackQ8_K},
	IQ2XXS: {"iq2_xxs", 256, 66, 0, unpackIQ2XXS}, IQ2XS: {"iq2_xs", 256, 74, 0, unpackIQ2XS}, IQ2S: {"iq2_s", 256, 82, 0, unpackIQ2S},
	IQ3XXS: {"iq3_xxs", 256, 98, 0, unpackIQ3XXS}, IQ3S: {"iq3_s", 256, 110, 0, unpackIQ3S}, IQ1S: {"iq1_s", 256, 50, 0, unpackIQ1S},
	IQ1M: {"iq1_m", 256, 56, 0, unpackIQ1M}, IQ4NL: {"iq4_nl", 32, 18, 0, unpackIQ4NL}, IQ4XS: {"iq4_xs", 256, 136, 0, unpackIQ4XS},
	TQ1_0: {"tq1_0", 256, 54, 0, unpackTQ1_0}, TQ2_0: {"tq2_0", 256, 66, 0, unpackTQ2_0},
	MXFP4: {"mxfp4", 32, 17, 0, unpackMXFP4}, NVFP4: {"nvfp4", 64, 36, 0, unpackNVFP4}, Q1_0: {"q1_0", 128, 18, 0, nil},
}

// String returns the name: "q4_k", "iq2_xxs". It is the format of ops.Dequantize where that has it.
func (t Type) String() string {
	if i, ok := types[t]; ok {
		return i.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// TypeOf returns the type with the name that [Type.String] returns; false for an unknown one.
func TypeOf(name string) (Type, bool) {
	for t, i := range types {
		if i.name == name {
			return t, true
		}
	}
	return 0, false
}

// Block returns how many elements a block has and how many bytes hold it; zeros for an unknown type.
func (t Type) Block() (elements, bytes int) { return types[t].elements, types[t].bytes }

// DType returns the element type of a type without blocks; it is not valid for the others.
func (t Type) DType() ir.DType { return types[t].dtype }

// Dequantize unpacks whole blocks into floats. Float types are converted; F64 rounds to f32. The
// error is of kind [ir.ErrUnsupported] for integers and for a type that is not known, and
// [ir.ErrShape] if src has no whole number of blocks or dst another number of elements.
func Dequantize(t Type, dst []float32, src []byte) error {
	i, ok := types[t]
	if !ok || i.unpack == nil && !i.dtype.IsFloat() {
		return ir.Errorf(ir.ErrUnsupported, "type %v is not unpacked into floats", t)
	}
	if len(src)%i.bytes != 0 || len(dst) != len(src)/i.bytes*i.elements {
		return ir.Shapef("there are %d bytes of %v for %d elements; they must be whole blocks of %d bytes for %d", len(src), t, len(dst), i.bytes, i.elements)
	}
	if i.unpack == nil {
		convertFloats(i.dtype, dst, src)
		return nil
	}
	for n := range len(src) / i.bytes {
		i.unpack(src[n*i.bytes:][:i.bytes], dst[n*i.elements:][:i.elements])
	}
	return nil
}
