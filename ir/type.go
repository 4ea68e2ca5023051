package ir

import (
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
)

// The element types, so that a graph can be written with this package alone. Package dtype says
// what each target supports.
const (
	Bool   = dtype.Bool
	I8     = dtype.I8
	I16    = dtype.I16
	I32    = dtype.I32
	I64    = dtype.I64
	U8     = dtype.U8
	U16    = dtype.U16
	U32    = dtype.U32
	U64    = dtype.U64
	F8E4M3 = dtype.F8E4M3
	F8E5M2 = dtype.F8E5M2
	F16    = dtype.F16
	BF16   = dtype.BF16
	F32    = dtype.F32
	F64    = dtype.F64
	C64    = dtype.C64
	C128   = dtype.C128
)

// DType is an element type.
type DType = dtype.DType

// Shape holds the size of each axis, outermost first. A nil or empty Shape is that of a scalar, of
// rank 0.
type Shape []Dim

// Dims returns the shape with the given constant sizes.
func Dims(sizes ...int) Shape {
	s := make(Shape, len(sizes))
	for i, n := range sizes {
		s[i] = N(n)
	}
	return s
}

// Rank returns the number of axes.
func (s Shape) Rank() int { return len(s) }

// Equal reports whether both shapes have the same sizes in the same order. Symbolic sizes are equal
// if their normal forms are.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] != t[i] {
			return false
		}
	}
	return true
}

// Size returns the number of elements: the product of all sizes, 1 for rank 0.
func (s Shape) Size() Dim {
	n := N(1)
	for _, d := range s {
		if d.Is(0) {
			return d // even if the product of the other sizes overflows
		}
		n = n.Mul(d)
	}
	return n
}

// Ints returns the sizes as integers, or false if one is symbolic.
func (s Shape) Ints() ([]int, bool) {
	out := make([]int, len(s))
	for i, d := range s {
		n, ok := d.Const()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// Clone returns a deep copy.
func (s Shape) Clone() Shape { return append(Shape(nil), s...) }

// String returns the shape as in the text form: "[batch,4]".
func (s Shape) String() string {
	var sb strings.Builder
	sb.WriteByte('[')
	for i, d := range s {
		if i > 0 {
			sb.WriteByte(',')
		}
		sb.WriteString(d.String())
	}
	sb.WriteByte(']')
	return sb.String()
}

// Type is the static type of a value: element type and shape.
type Type struct {
	DType DType
	Shape Shape
}

// TypeOf returns the type with the given element type and axes.
func TypeOf(d DType, axes ...Dim) Type { return Type{d, Shape(axes)} }

// TypesOf returns the types of values.
func TypesOf(values []Value) []Type {
	out := make([]Type, len(values))
	for i, v := range values {
		out[i] = v.Type()
	}
	return out
}

// Equal reports whether element type and shape are the same.
func (t Type) Equal(u Type) bool { return t.DType == u.DType && t.Shape.Equal(u.Shape) }

// String returns the type as in the text form: "f32[batch,4]".
func (t Type) String() string { return t.DType.String() + t.Shape.String() }

// Bytes returns the storage size of a value in bytes, or an error if the shape is symbolic, too
// large, or not a whole number of blocks of a packed element type.
func (t Type) Bytes() (int, error) {
	n, ok := t.Shape.Size().Const()
	if _, whole := t.Shape.Ints(); !ok || !whole {
		return 0, Shapef("%s has a symbolic or an overflowing size", t)
	}
	return t.DType.Bytes(n)
}
