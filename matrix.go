package rlx

import (
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
// type d. The error is of kind [ir.ErrDType] for a packed or complex type and [ir.ErrGraph] for no matrix.
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
		if x := m.At(i/columns, i%columns); a.F != nil {
			a.F[i] = x
		} else {
			a.I[i] = int64(x)
		}
	}
	a.Round()
	return native.FromArray(a), nil
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
		if a.F != nil {
			elements[i] = a.F[i]
		} else {
			elements[i] = float64(a.I[i])
		}
	}
	return t.Dims[0], t.Dims[1], elements, nil
}
