package rlx

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Tensor is a value in host memory. Its methods Float32s, Int32s and so on return the elements.
type Tensor = native.Tensor

// Float32s returns an f32 tensor that shares the memory of x. Without dims it is a vector, also for
// a single element. The dims are checked against the length of x where the tensor is used.
func Float32s(x []float32, dims ...int) Tensor { return native.Float32s(x, dims...) }

// Float64s is [Float32s] for f64.
func Float64s(x []float64, dims ...int) Tensor { return native.Float64s(x, dims...) }

// Int32s is [Float32s] for i32.
func Int32s(x []int32, dims ...int) Tensor { return native.Int32s(x, dims...) }

// Int64s is [Float32s] for i64.
func Int64s(x []int64, dims ...int) Tensor { return native.Int64s(x, dims...) }

// Uint32s is [Float32s] for u32.
func Uint32s(x []uint32, dims ...int) Tensor { return native.Uint32s(x, dims...) }

// Bools is [Float32s] for bool.
func Bools(x []bool, dims ...int) Tensor { return native.Bools(x, dims...) }

// Float32 returns an f32 of rank 0.
func Float32(x float32) Tensor { return native.Float32(x) }

// Float64 returns an f64 of rank 0.
func Float64(x float64) Tensor { return native.Float64(x) }

// Int32 returns an i32 of rank 0.
func Int32(x int32) Tensor { return native.Int32(x) }

// Int64 returns an i64 of rank 0.
func Int64(x int64) Tensor { return native.Int64(x) }

// Uint32 returns a u32 of rank 0.
func Uint32(x uint32) Tensor { return native.Uint32(x) }

// Bool returns a bool of rank 0.
func Bool(x bool) Tensor { return native.Bool(x) }

// Of returns a tensor of element type d that shares the memory of x. It serves element types
// without a Go type, such as f16 as []uint16; [Elements] is the inverse. The error is of kind
// [ir.ErrDType] if the element sizes of d and T differ.
func Of[T native.Element](d ir.DType, x []T, dims ...int) (Tensor, error) {
	return native.Of(d, x, dims...)
}

// Elements returns the elements of a tensor without copying them. The error is of kind
// [ir.ErrDType] if the element sizes of the tensor and of T differ.
func Elements[T native.Element](t Tensor) ([]T, error) { return native.Elements[T](t) }

// Zeros returns a new tensor of zeros.
func Zeros(d ir.DType, dims ...int) Tensor { return native.Zeros(d, dims...) }
