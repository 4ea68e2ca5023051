package mil

import (
	"fmt"
	"slices"
	"strings"
)

// DType is an element type, by its number in MIL.proto.
type DType int

// The element types that rlx emits or reads.
const (
	Bool    DType = 1
	String  DType = 2
	Float16 DType = 10
	Float32 DType = 11
	Int8    DType = 21
	Int16   DType = 22
	Int32   DType = 23
	Int4    DType = 25
	UInt8   DType = 31
	UInt16  DType = 32
	UInt4   DType = 35
)

// dtypeInfo describes an element type.
type dtypeInfo struct {
	name string
	bits int
	blob uint32 // its number in a weight file, 0 if it has none
}

var dtypes = map[DType]dtypeInfo{
	Bool: {"bool", 8, 0}, String: {"string", 0, 0},
	Float16: {"fp16", 16, 1}, Float32: {"fp32", 32, 2},
	UInt8: {"uint8", 8, 3}, Int8: {"int8", 8, 4}, Int16: {"int16", 16, 6}, UInt16: {"uint16", 16, 7},
	Int4: {"int4", 4, 8}, UInt4: {"uint4", 4, 11}, Int32: {"int32", 32, 14},
}

// String returns the type's name in the cast operation.
func (d DType) String() string {
	if info, ok := dtypes[d]; ok {
		return info.name
	}
	return fmt.Sprintf("dtype%d", int(d))
}

// IsFloat reports whether the type is fp16 or fp32.
func (d DType) IsFloat() bool { return d == Float16 || d == Float32 }

// bytes returns the size of n elements in bytes.
func (d DType) bytes(n int) int { return (n*dtypes[d].bits + 7) / 8 }

// dtypeNamed returns the type with the given name in the cast operation.
func dtypeNamed(name string) (DType, bool) {
	for d, info := range dtypes {
		if info.name == name && d != String {
			return d, true
		}
	}
	return 0, false
}

// Type is the type of a tensor. The shape is constant: rlx emits a function for each set of shapes.
type Type struct {
	DType DType
	Dims  []int // empty for a scalar
}

// TypeOf returns the type with the given element type and sizes.
func TypeOf(d DType, dims ...int) Type { return Type{d, dims} }

// Len returns the number of elements.
func (t Type) Len() int {
	n := 1
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Equal reports whether element type and sizes are the same.
func (t Type) Equal(u Type) bool { return t.DType == u.DType && slices.Equal(t.Dims, u.Dims) }

// String returns the type as in "fp32[2,3]".
func (t Type) String() string {
	s := make([]string, len(t.Dims))
	for i, d := range t.Dims {
		s[i] = fmt.Sprint(d)
	}
	return t.DType.String() + "[" + strings.Join(s, ",") + "]"
}

// Opset is a set of operations with its version of the model format and of the systems.
type Opset int

// The opsets: iOS 15 and macOS 12, iOS 16 and macOS 13, iOS 17 and macOS 14,
// iOS 18 and macOS 15, and iOS and macOS 26.
const (
	CoreML5 Opset = 5 + iota
	CoreML6
	CoreML7
	CoreML8
	CoreML9
)

// Valid reports whether rlx supports the opset.
func (o Opset) Valid() bool { return o >= CoreML5 && o <= CoreML9 }

// String returns the name in a program, as in "CoreML8".
func (o Opset) String() string { return fmt.Sprintf("CoreML%d", int(o)) }

// Specification returns the version of the model format: one more than the
// number of the opset.
func (o Opset) Specification() int { return int(o) + 1 }

// opsetNamed returns the opset of a name in a program.
func opsetNamed(name string) (Opset, bool) {
	for o := CoreML5; o <= CoreML9; o++ {
		if o.String() == name {
			return o, true
		}
	}
	return 0, false
}
