package ir

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Array is a value on the host, in the representation of the reference implementation: floats as
// float64, integers and booleans as int64 (u64 as its bit pattern, booleans as 0 and 1), complex
// numbers as complex128. Elements are in row-major order. Exactly one of F, I and C is used,
// depending on the element type. [Array.Check] compares the number of elements with the dims;
// functions that use arrays call it.
type Array struct {
	DType DType
	Dims  []int
	F     []float64
	I     []int64
	C     []complex128
}

// NewArray returns an array of zeros; without elements if a dim is negative.
func NewArray(d DType, dims ...int) *Array {
	a := &Array{DType: d, Dims: slices.Clone(dims)}
	n := max(a.Len(), 0)
	switch {
	case d.IsComplex():
		a.C = make([]complex128, n)
	case d.IsFloat():
		a.F = make([]float64, n)
	default:
		a.I = make([]int64, n)
	}
	return a
}

// Floats returns an array of a floating element type with the elements of x, rounded to it. Without
// dims it is a vector.
func Floats(d DType, x []float64, dims ...int) *Array {
	a := &Array{DType: d, Dims: dimsOf(len(x), dims), F: slices.Clone(x)}
	a.Round()
	return a
}

// Ints returns an array of an integer or boolean element type with the elements of x, wrapped to
// it. Without dims it is a vector.
func Ints(d DType, x []int64, dims ...int) *Array {
	a := &Array{DType: d, Dims: dimsOf(len(x), dims), I: slices.Clone(x)}
	a.Round()
	return a
}

// Float returns a rank-0 array of a floating element type.
func Float(d DType, x float64) *Array { return Floats(d, []float64{x}, []int{}...) }

// Int returns a rank-0 array of an integer or boolean element type.
func Int(d DType, x int64) *Array { return Ints(d, []int64{x}, []int{}...) }

// dimsOf returns a copy of dims, or those of a vector of n elements if dims is empty.
func dimsOf(n int, dims []int) []int {
	if dims == nil {
		return []int{n}
	}
	return slices.Clone(dims)
}

// Len returns the number of elements that the dims require.
func (a *Array) Len() int {
	n := 1
	for _, d := range a.Dims {
		n *= d
	}
	return n
}

// Type returns the array's type.
func (a *Array) Type() Type { return Type{a.DType, Dims(a.Dims...)} }

// Check returns an error of kind [ErrShape] if the number of elements does not match the dims, or
// [ErrDType] if the elements are not in the field that the element type uses.
func (a *Array) Check() error {
	if a == nil {
		return Shapef("no array given")
	}
	if err := checkType(a.Type()); err != nil {
		return err
	}
	n, _ := a.Type().Shape.Size().Const()
	switch {
	case a.numHeld() != len(a.F)+len(a.I)+len(a.C):
		return DTypef("the elements of an array of %s have another type", a.Type())
	case a.numHeld() != n:
		return Shapef("the array has %d elements; %s needs %d", a.numHeld(), a.Type(), n)
	}
	return nil
}

// check checks that the array has type t. Packed element types are held as bytes, see [ArrayOf].
func (a *Array) check(t Type) error {
	if err := a.Check(); err != nil {
		return err
	}
	if t.DType.IsPacked() {
		n, err := t.Bytes()
		if err != nil {
			return err
		}
		t = Type{U8, Dims(n)}
	}
	switch {
	case a.DType != t.DType:
		return DTypef("the value is %s; it must be %s", a.Type(), t)
	case !a.Type().Shape.Equal(t.Shape):
		return Shapef("the value is %s; it must be %s", a.Type(), t)
	}
	return nil
}

// numHeld returns the number of elements in the field that the element type uses.
func (a *Array) numHeld() int {
	switch {
	case a.DType.IsFloat():
		return len(a.F)
	case a.DType.IsComplex():
		return len(a.C)
	}
	return len(a.I)
}

// Clone returns a deep copy.
func (a *Array) Clone() *Array {
	return &Array{
		DType: a.DType,
		Dims:  slices.Clone(a.Dims),
		F:     slices.Clone(a.F),
		I:     slices.Clone(a.I),
		C:     slices.Clone(a.C),
	}
}

// Round rounds or wraps every element to the element type.
func (a *Array) Round() {
	for i, x := range a.F {
		a.F[i] = a.DType.Round(x)
	}
	for i, x := range a.I {
		a.I[i] = a.DType.Wrap(x)
	}
	if a.DType == C64 {
		for i, x := range a.C {
			a.C[i] = complex(dtype.F32.Round(real(x)), dtype.F32.Round(imag(x)))
		}
	}
}

// Element returns element i as a scalar value.
func (a *Array) Element(i int) scalar.Value {
	switch {
	case a.F != nil:
		return scalar.Value{F: a.F[i]}
	case a.C != nil:
		return scalar.Value{C: a.C[i]}
	}
	return scalar.Value{I: a.I[i]}
}

// SetElement sets element i to the field of v that the element type uses. It does not round; see
// [Array.Round].
func (a *Array) SetElement(i int, v scalar.Value) {
	switch {
	case a.F != nil:
		a.F[i] = v.F
	case a.C != nil:
		a.C[i] = v.C
	default:
		a.I[i] = v.I
	}
}

// Float returns element i as a float64; the real part for complex arrays.
func (a *Array) Float(i int) float64 {
	switch {
	case a.F != nil:
		return a.F[i]
	case a.C != nil:
		return real(a.C[i])
	case a.DType == U64:
		return float64(uint64(a.I[i]))
	}
	return float64(a.I[i])
}

// maxShown bounds the elements that [Array.String] writes.
const maxShown = 16

// String returns the type and the first elements, as "f32[3] [1 2 3]".
func (a *Array) String() string {
	if a == nil {
		return "<nil>"
	}
	var text strings.Builder
	text.WriteString(a.Type().String() + " [")
	n := a.numHeld()
	for i := range min(n, maxShown) {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(a.elementText(i))
	}
	if n > maxShown {
		text.WriteString(" ...")
	}
	return text.String() + "]"
}

// elementText returns element i with the digits that its type needs.
func (a *Array) elementText(i int) string {
	bits := 64
	if a.DType.Size() < 8 || a.DType == C64 {
		bits = 32
	}
	switch {
	case a.DType.IsFloat():
		return strconv.FormatFloat(a.F[i], 'g', -1, bits)
	case a.DType.IsComplex():
		return strconv.FormatComplex(a.C[i], 'g', -1, 2*bits)
	case a.DType == U64:
		return strconv.FormatUint(uint64(a.I[i]), 10)
	}
	return strconv.FormatInt(a.I[i], 10)
}

// Bytes returns the elements as devices store them: little endian, row-major, booleans as one byte.
func (a *Array) Bytes() []byte {
	size := a.DType.Size()
	out := make([]byte, 0, size*a.Len())
	for _, x := range a.F {
		out = appendBits(out, size, a.DType.FloatBits(x))
	}
	for _, x := range a.I {
		out = appendBits(out, size, uint64(x))
	}
	for _, x := range a.C {
		half := a.DType.Real()
		out = appendBits(out, size/2, half.FloatBits(real(x)))
		out = appendBits(out, size/2, half.FloatBits(imag(x)))
	}
	return out
}

// ArrayOf returns the array stored in data, whose length must be that of the type ([Type.Bytes]).
// Packed element types are kept as bytes, one U8 element each.
func ArrayOf(t Type, data []byte) (*Array, error) {
	want, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	if want != len(data) {
		return nil, Shapef("the array has %d bytes; %s needs %d", len(data), t, want)
	}
	if t.DType.IsPacked() {
		t = Type{U8, Dims(len(data))}
	}
	dims, _ := t.Shape.Ints()
	a := NewArray(t.DType, dims...)
	size := t.DType.Size()
	for i := range a.F {
		a.F[i] = t.DType.FloatFromBits(readBits(data[i*size:], size))
	}
	for i := range a.I {
		a.I[i] = t.DType.Wrap(int64(readBits(data[i*size:], size)))
	}
	for i := range a.C {
		half, h := t.DType.Real(), size/2
		a.C[i] = complex(half.FloatFromBits(readBits(data[i*size:], h)), half.FloatFromBits(readBits(data[i*size+h:], h)))
	}
	return a, nil
}

func appendBits(out []byte, size int, bits uint64) []byte {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], bits)
	return append(out, buf[:size]...)
}

func readBits(data []byte, size int) uint64 {
	var buf [8]byte
	copy(buf[:size], data)
	return binary.LittleEndian.Uint64(buf[:])
}
