//go:build !js

package cpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/simd"
)

// squaresSVD is the singular value decomposition of a matrix of f32, computed in f64: the eigenvectors of
// aᵀ·a are v, and a·v = u·r has orthogonal columns, so that r is diagonal. Squares cost half the
// digits of f64, and f32 has fewer: the rest of r is below 10⁻⁸ of the largest singular value.
type squaresSVD struct {
	values []float64
	u, v   []float64 // vectors as rows
}

// svdOfSquares computes a decomposition for [ops.OpSVD], of the transposed matrix if a has more columns
// than rows.
func svdOfSquares(w *workspace[float64], a []float64, rows, cols, width, height int, out [][]float64) {
	wanted := w.read[0] || w.read[2]
	var f *squaresSVD
	switch {
	case !finite(a):
	case rows >= cols:
		f = newSquaresSVD(w, a, rows, cols, width, wanted)
	default:
		turned := w.take(rows * cols)
		simd.Transpose(turned, rows, a, cols, rows, cols)
		if f = newSquaresSVD(w, turned, cols, rows, height, wanted); f != nil {
			f.u, f.v = f.v, f.u
		}
	}
	if f == nil {
		for _, x := range out {
			fill(x, math.NaN())
		}
		return
	}
	f.order(w, out[1])
	if wanted {
		f.store(w.pivots, out[0], rows, width, out[2], cols, height)
	}
}

// newSquaresSVD computes, for rows ≥ cols, values and, if wanted, v and the given number of rows of u; nil where the
// iteration does not converge.
func newSquaresSVD(w *workspace[float64], a []float64, rows, cols, width int, wanted bool) *squaresSVD {
	f := &squaresSVD{}
	matrix := simd.Matrix[float64]{Data: a, Row: cols, Col: 1}
	squares := w.take(cols * cols)
	w.multiply(simd.Size{M: cols, N: cols, K: rows}, matrix.Transposed(), matrix, squares, cols)
	f.values, f.v = eigenvectors(w, squares, cols, wanted)
	if f.values == nil {
		return nil
	}
	slices.Reverse(f.values)
	if !wanted {
		for i, x := range f.values {
			f.values[i] = math.Sqrt(max(x, 0))
		}
		return f
	}
	for i := range cols / 2 {
		swap(f.v[i*cols:][:cols], f.v[(cols-1-i)*cols:])
	}
	along := w.take(cols * rows)
	w.multiply(simd.Size{M: cols, N: rows, K: cols}, simd.Matrix[float64]{Data: f.v, Row: cols, Col: 1}, matrix.Transposed(), along, rows)
	h := triangularize(w, along, rows, cols)
	f.u = w.take(width * rows)
	h.columns(w, f.u, width)
	for i := range f.values {
		f.values[i] = along[i*rows+i]
		if f.values[i] < 0 {
			f.values[i] = -f.values[i]
			negate(f.u[i*rows:], rows, 1)
		}
	}
	return f
}

// order stores the singular values in descending order, and their indices as the workspace's pivots.
func (f *squaresSVD) order(w *workspace[float64], s []float64) {
	w.pivots = w.pivots[:0]
	for i := range f.values {
		w.pivots = append(w.pivots, i)
	}
	slices.SortStableFunc(w.pivots, func(i, j int) int { return cmp.Compare(f.values[j], f.values[i]) })
	for i, from := range w.pivots {
		s[i] = f.values[from]
	}
}

// store stores the vectors in an order: those of u, of rows numbers, as width columns, and those of v as
// height rows, with the sign that the op chooses.
func (f *squaresSVD) store(order []int, u []float64, rows, width int, vt []float64, cols, height int) {
	for i := range max(width, height) {
		from, sign := i, 1.0
		if i < len(order) {
			from = order[i]
		}
		if i < height {
			row := vt[i*cols:][:cols]
			copy(row, f.v[from*cols:])
			if hasWrongSign(row, cols, 1) {
				negate(row, cols, 1)
				if i < len(order) {
					sign = -1
				}
			}
		}
		if i < width {
			for j, x := range f.u[from*rows:][:rows] {
				u[j*width+i] = sign * x
			}
		}
	}
}
