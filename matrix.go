package rlx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Matrix is a matrix of real numbers in host memory. Each mat.Matrix of Gonum is one.
type Matrix interface {
	// Dims returns the numbers of rows and of columns.
	Dims() (rows, columns int)
	// At returns an element, counted from 0.
	At(row, column int) float64
}

// OfMatrix returns a tensor of shape [rows, columns] with the elements of a matrix, rounded to element
// type d, toward 0 to an integer; bool is true for all but 0. The error is of kind [ir.ErrDType] for a packed or complex
// type and for an element that an integer type cannot have, and [ir.ErrGraph] for no matrix.
func OfMatrix(d ir.DType, m Matrix) (Tensor, error) {
	if m == nil {
		return Tensor{}, ir.Errorf(ir.ErrGraph, "no matrix is given")
	}
	if d.IsPacked() || d.IsComplex() {
		return Tensor{}, ir.DTypef("the element type of a matrix is %s; it must be real and not packed", d)
	}
	rows, columns := m.Dims()
	a := ir.NewArray(d, rows, columns)
	for i := range a.Len() {
		x := m.At(i/columns, i%columns)
		switch {
		case a.F != nil:
			a.F[i] = x
		case d.IsBool():
			if x != 0 {
				a.I[i] = 1
			}
		case !holds(d, math.Trunc(x)):
			return Tensor{}, ir.DTypef("element %d, %d is %v: %s cannot have it", i/columns, i%columns, x, d)
		default:
			a.I[i] = int64(x)
		}
	}
	a.Round()
	return native.FromArray(a), nil
}

// holds reports whether integer type d has a whole number, below 2⁶³ in any type.
func holds(d ir.DType, x float64) bool {
	if !(math.Abs(x) < 1<<63) || d.IsUnsigned() && x < 0 {
		return false
	}
	return d.Wrap(int64(x)) == int64(x)
}

// ToMatrix returns the shape and a copy of the elements of a tensor of rank 2 and of any real type:
// what mat.NewDense of Gonum takes. The error is of kind [ir.ErrShape] for another rank and [ir.ErrDType] for a
// packed or complex type.
func ToMatrix(t Tensor) (rows, columns int, elements []float64, err error) {
	if len(t.Dims) != 2 {
		return 0, 0, nil, ir.Shapef("the tensor is %s; a matrix has rank 2", t)
	}
	if t.DType.IsPacked() || t.DType.IsComplex() {
		return 0, 0, nil, ir.DTypef("the tensor is %s; the elements of a matrix must be real and not packed", t)
	}
	a, err := t.Array()
	if err != nil {
		return 0, 0, nil, err
	}
	elements = make([]float64, a.Len())
	for i := range elements {
		elements[i] = a.Float(i)
	}
	return t.Dims[0], t.Dims[1], elements, nil
}
