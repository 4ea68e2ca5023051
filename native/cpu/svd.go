//go:build !js

package cpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
)

// singular is the singular value decomposition of a matrix of no fewer rows than columns. The eigenvectors of
// aᵀ·a are v, and a·v = u·r has orthogonal columns, so that r is diagonal but for rounding errors: those of aᵀ·a
// are ε of the square of the largest singular value s, and so row i of r has errors of ε·s²/sᵢ. Rows where that is
// little are finished; the block of the others has smaller singular values and is decomposed in the same way. So
// each step squares the range of sizes that is finished, and few steps reach ε.
type singular[T simd.Float] struct {
	values []float64 // from large to small but for their last digits
	u, v   []T       // vectors as rows
}

// svd computes singular values and, where they are used, vectors, of the transposed matrix if it has more columns
// than rows.
func svd[T simd.Float](w *workspace[T], n *ir.Node, in, out [][]T) {
	rows, cols := matrixOf(n.Input(0))
	_, width := matrixOf(n.Result(0))
	height, _ := matrixOf(n.Result(2))
	if min(rows, cols) == 0 {
		setIdentity(out[0], rows, width)
		setIdentity(out[2], height, cols)
		return
	}
	a, wanted := in[0], w.read[0] || w.read[2]
	var f *singular[T]
	switch {
	case !finite(a):
	case rows >= cols:
		f = singularOf(w, a, rows, cols, width, wanted, 0)
	default:
		transposed := w.take(rows * cols)
		simd.Transpose(transposed, rows, a, cols, rows, cols)
		if f = singularOf(w, transposed, cols, rows, height, wanted, 0); f != nil {
			f.u, f.v = f.v, f.u
		}
	}
	if f == nil {
		for _, x := range out {
			fill(x, T(math.NaN()))
		}
		return
	}
	f.order(w, out[1])
	if wanted {
		f.store(w.pivots, out[0], rows, width, out[2], cols, height)
	}
}

// setIdentity stores the unit matrix, the vectors of a matrix without elements.
func setIdentity[T simd.Float](to []T, rows, cols int) {
	clear(to)
	for i := range min(rows, cols) {
		to[i*cols+i] = 1
	}
}

// finishedPart is the least part of the largest singular value for which rows are finished.
const finishedPart = 0.25

// singularOf decomposes a matrix of rows ≥ cols, which it overwrites: v and, if wanted, the given number of rows of
// u. whole is the largest singular value of the matrix that a is a block of, 0 if it is none. It returns nil where
// the eigenvalues do not converge.
func singularOf[T simd.Float](w *workspace[T], a []T, rows, cols, width int, wanted bool, whole float64) *singular[T] {
	f, scale := &singular[T]{}, unitScale(a)
	matrix := simd.Matrix[T]{Data: a, Row: cols, Col: 1}
	squares := w.take(cols * cols)
	clear(squares)
	w.accumulateLower(simd.Size{M: cols, N: cols, K: rows}, matrix.Transposed(), matrix, squares, cols)
	mirror(squares, cols)
	values, v := eigenvectors(w, squares, cols, true)
	if values == nil {
		return nil
	}
	f.values, f.v = slices.Clone(values), v
	for i := range cols / 2 {
		swap(f.v[i*cols:][:cols], f.v[(cols-1-i)*cols:])
	}
	along := w.take(cols * rows)
	w.multiply(simd.Size{M: cols, N: rows, K: cols}, simd.Matrix[T]{Data: f.v, Row: cols, Col: 1}, matrix.Transposed(), along, rows)
	h := triangularize(w, along, rows, cols)
	if wanted {
		f.u = w.take(width * rows)
		h.columns(w, f.u, width)
	}
	for i := range f.values {
		f.values[i] = float64(along[i*rows+i])
		if f.values[i] < 0 {
			f.values[i] = -f.values[i]
			if wanted { // with row i of r
				negate(f.u[i*rows:], rows, 1)
				negate(along[i*rows+i:], cols-i, rows)
			}
		}
	}
	if !f.finish(w, along, rows, cols, wanted, whole/scale) {
		return nil
	}
	multiplied(f.values, scale)
	return f
}

// finish decomposes the block of r whose singular values are too small, given the block's columns. It returns
// false where that does not converge.
func (f *singular[T]) finish(w *workspace[T], r []T, rows, cols int, wanted bool, whole float64) bool {
	most := slices.Max(f.values)
	whole = max(whole, most)
	first, bound := 1, finishedPart*most*most/whole
	for first < cols && f.values[first] >= bound {
		first++
	}
	size := cols - first
	block, sum := w.take(size*size), 0.0
	clear(block)
	for j := range size {
		column := r[(first+j)*rows+first:][:j+1]
		sum += squares(column, 1)
		for i, x := range column {
			block[i*size+j] = x
		}
	}
	if math.Sqrt(sum) <= epsilonOf[T]()*whole {
		return true
	}
	rest := singularOf(w, block, size, size, size, wanted, whole)
	if rest == nil {
		return false
	}
	copy(f.values[first:], rest.values)
	turn(w, rest.v, f.v[first*cols:], size, cols)
	if wanted {
		turn(w, rest.u, f.u[first*rows:], size, rows)
	}
	return true
}

// turn replaces vectors of n numbers, which are rows, by their combinations.
func turn[T simd.Float](w *workspace[T], by, vectors []T, size, n int) {
	old := w.take(size * n)
	copy(old, vectors[:size*n])
	w.multiply(simd.Size{M: size, N: n, K: size}, simd.Matrix[T]{Data: by, Row: size, Col: 1}, simd.Matrix[T]{Data: old, Row: n, Col: 1}, vectors, n)
}

// order stores the singular values in descending order, and their indices as the workspace's pivots.
func (f *singular[T]) order(w *workspace[T], s []T) {
	w.pivots = w.pivots[:0]
	for i := range f.values {
		w.pivots = append(w.pivots, i)
	}
	slices.SortStableFunc(w.pivots, func(i, j int) int { return cmp.Compare(f.values[j], f.values[i]) })
	for i, from := range w.pivots {
		s[i] = T(f.values[from])
	}
}

// store stores the vectors in an order: those of u, of rows numbers, as width columns, and those of v as
// height rows, with the sign that the op chooses.
func (f *singular[T]) store(order []int, u []T, rows, width int, vt []T, cols, height int) {
	for i := range max(width, height) {
		from, sign := i, T(1)
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
