package native

import (
	"math"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
)

// Tensor is a value in host memory: contiguous row-major little-endian elements, a
// bool being one byte, 0 or 1. A copy of a Tensor shares its memory.
type Tensor struct {
	DType ir.DType
	Dims  []int
	Data  []byte
}

// Element is a Go type whose slices tensors can share.
type Element interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~bool | ~complex64 | ~complex128
}

// Float32s returns an f32 tensor that shares the memory of x; without dims, a vector.
// Dims that do not fit len(x) are an error where the tensor is used.
func Float32s(x []float32, dims ...int) Tensor { return of(ir.F32, x, dims) }

// Float64s is [Float32s] for f64.
func Float64s(x []float64, dims ...int) Tensor { return of(ir.F64, x, dims) }

// Int32s is [Float32s] for i32.
func Int32s(x []int32, dims ...int) Tensor { return of(ir.I32, x, dims) }

// Int64s is [Float32s] for i64.
func Int64s(x []int64, dims ...int) Tensor { return of(ir.I64, x, dims) }

// Uint32s is [Float32s] for u32.
func Uint32s(x []uint32, dims ...int) Tensor { return of(ir.U32, x, dims) }

// Bools is [Float32s] for bool.
func Bools(x []bool, dims ...int) Tensor { return of(ir.Bool, x, dims) }

// Float32 returns an f32 of rank 0.
func Float32(x float32) Tensor { return scalarOf(ir.F32, x) }

// Float64 returns an f64 of rank 0.
func Float64(x float64) Tensor { return scalarOf(ir.F64, x) }

// Int32 returns an i32 of rank 0.
func Int32(x int32) Tensor { return scalarOf(ir.I32, x) }

// Int64 returns an i64 of rank 0.
func Int64(x int64) Tensor { return scalarOf(ir.I64, x) }

// Uint32 returns a u32 of rank 0.
func Uint32(x uint32) Tensor { return scalarOf(ir.U32, x) }

// Bool returns a bool of rank 0.
func Bool(x bool) Tensor { return scalarOf(ir.Bool, x) }

// Of returns a tensor of type d that shares the memory of x, for types that Go does
// not have, such as f16 as []uint16. [Elements] is the inverse. The error is of kind
// [ir.ErrDType] if the sizes of d and T differ.
func Of[T Element](d ir.DType, x []T, dims ...int) (Tensor, error) {
	var zero T
	if size := int(unsafe.Sizeof(zero)); d.Size() != size {
		return Tensor{}, elementSize(d, size)
	}
	return of(d, x, dims), nil
}

// Zeros returns a new tensor of zeros.
func Zeros(d ir.DType, dims ...int) Tensor {
	n, ok := count(dims)
	if !ok {
		n = 0
	}
	bytes, err := d.Bytes(n)
	if err != nil {
		bytes = 0
	}
	return Tensor{DType: d, Dims: slices.Clone(dims), Data: aligned(bytes)}
}

// FromArray returns a tensor with the elements of an array.
func FromArray(a *ir.Array) Tensor {
	return Tensor{DType: a.DType, Dims: slices.Clone(a.Dims), Data: a.Bytes()}
}

// aligned returns zeroed memory aligned for elements of any type.
func aligned(bytes int) []byte {
	if bytes == 0 {
		return []byte{}
	}
	words := make([]complex128, (bytes+15)/16)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), bytes)
}

func of[T Element](d ir.DType, x []T, dims []int) Tensor {
	if dims == nil {
		dims = []int{len(x)}
	}
	t := Tensor{DType: d, Dims: dims, Data: []byte{}}
	if len(x) > 0 {
		t.Data = unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
	}
	return t
}

func scalarOf[T Element](d ir.DType, x T) Tensor { return of(d, []T{x}, []int{}) }

// Float32s returns the elements of an f32 tensor, sharing its memory. The error is of
// kind [ir.ErrDType] for any other type.
func (t Tensor) Float32s() ([]float32, error) { return elements[float32](t, ir.F32) }

// Float64s is [Tensor.Float32s] for f64.
func (t Tensor) Float64s() ([]float64, error) { return elements[float64](t, ir.F64) }

// Int32s is [Tensor.Float32s] for i32.
func (t Tensor) Int32s() ([]int32, error) { return elements[int32](t, ir.I32) }

// Int64s is [Tensor.Float32s] for i64.
func (t Tensor) Int64s() ([]int64, error) { return elements[int64](t, ir.I64) }

// Uint32s is [Tensor.Float32s] for u32.
func (t Tensor) Uint32s() ([]uint32, error) { return elements[uint32](t, ir.U32) }

// Bools is [Tensor.Float32s] for bool.
func (t Tensor) Bools() ([]bool, error) { return elements[bool](t, ir.Bool) }

func elements[T Element](t Tensor, d ir.DType) ([]T, error) {
	if t.DType != d {
		return nil, ir.DTypef("the tensor is %s; its elements cannot be read as %s", t.DType, d)
	}
	return Elements[T](t)
}

// Elements returns the elements of a tensor, sharing its memory, or a copy if that is
// not aligned for T. The error is of kind [ir.ErrDType] if the sizes differ.
func Elements[T Element](t Tensor) ([]T, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	if _, isBool := any(zero).(bool); t.DType.Size() != size || isBool && t.DType != ir.Bool {
		return nil, elementSize(t.DType, size)
	}
	if len(t.Data) == 0 {
		return []T{}, nil
	}
	if !t.Aligned() {
		t = t.Clone()
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&t.Data[0])), len(t.Data)/size), nil
}

func elementSize(d ir.DType, size int) error {
	return ir.DTypef("the element type is %s of %d bytes; the slice has elements of %d", d, d.Size(), size)
}

// Len returns the number of elements, 0 if the dims are invalid.
func (t Tensor) Len() int {
	n, _ := count(t.Dims)
	return n
}

// Check returns an error of kind [ir.ErrShape] if the size of the memory does not
// match the type and the dims, or [ir.ErrDType] if the type is missing or a bool is
// neither 0 nor 1.
func (t Tensor) Check() error {
	if !t.DType.Valid() {
		return ir.DTypef("the tensor has no element type")
	}
	n, ok := count(t.Dims)
	if !ok {
		return ir.Shapef("dims are %v; each must be 0 or greater", t.Dims)
	}
	bytes, err := t.DType.Bytes(n)
	if err != nil {
		return ir.Shapef("%s: %v", t, err)
	}
	if bytes != len(t.Data) {
		if size := t.DType.Size(); size > 0 && len(t.Data)%size == 0 {
			return ir.Shapef("%s has %d elements; it must have %d", t, len(t.Data)/size, n)
		}
		return ir.Shapef("%s has %d bytes; it must have %d", t, len(t.Data), bytes)
	}
	if t.DType == ir.Bool {
		if i := slices.IndexFunc(t.Data, func(b byte) bool { return b > 1 }); i >= 0 {
			return ir.DTypef("element %d of %s is %d; a bool must be 0 or 1", i, t, t.Data[i])
		}
	}
	return nil
}

// Aligned reports whether the memory is aligned for the element type.
func (t Tensor) Aligned() bool {
	size := t.DType.Size()
	if t.DType.IsComplex() {
		size /= 2
	}
	return len(t.Data) == 0 || size == 0 || uintptr(unsafe.Pointer(&t.Data[0]))%uintptr(size) == 0
}

// Clone returns a copy with new memory.
func (t Tensor) Clone() Tensor {
	data := aligned(len(t.Data))
	copy(data, t.Data)
	return Tensor{DType: t.DType, Dims: slices.Clone(t.Dims), Data: data}
}

// Array returns the elements as the reference implementations of ops take them.
func (t Tensor) Array() (*ir.Array, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	return ir.ArrayOf(ir.Type{DType: t.DType, Shape: ir.Dims(t.Dims...)}, t.Data)
}

// String returns the type, as in "f32[2,3]".
func (t Tensor) String() string { return typeText(t.DType, t.Dims) }

// typeText formats a type as the text form of graphs does.
func typeText(d ir.DType, dims []int) string {
	shape := ir.Dims(dims...)
	for axis, n := range dims {
		if n == OpenSize {
			shape[axis] = ir.Sym("any")
		}
	}
	return d.String() + shape.String()
}

// count returns the product of dims, false if one is negative or the product overflows.
func count(dims []int) (int, bool) {
	n := 1
	for _, d := range dims {
		if d < 0 || d > 0 && n > math.MaxInt/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}
