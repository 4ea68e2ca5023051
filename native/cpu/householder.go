package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
)

// reflections are the Householder reflections H₀, H₁, … of a factorisation, Hᵢ = 1 - τᵢ·vᵢ·vᵢᵀ. The
// product of a block of them is 1 - v·t·vᵀ, where v has the vectors as columns and t is upper
// triangular (Schreiber and Van Loan, "A storage efficient WY representation", 1989). All vectors,
// and columns of the matrices that they reflect, are contiguous.
type reflections[T simd.Float] struct {
	v             []T // vᵢ is row i; elements before i + first are 0, and that one is 1
	minusT        []T // -t of each block, factorBlock rows of its size
	count, length int
	first         int // how many rows of the matrix the first reflection keeps
	tau, between  []T // of a block, and the products of its vectors
}

// fewProducts is the number of multiplications up to which columns are reflected one by one, without kernels.
const fewProducts = 256

// newReflections returns room for reflections.
func newReflections[T simd.Float](w *workspace[T], count, length, first int) reflections[T] {
	return reflections[T]{
		v: w.take(count * length), minusT: w.take(count * factorBlock), count: count, length: length, first: first,
		tau: w.take(factorBlock), between: w.take(factorBlock * factorBlock),
	}
}

// vector returns the elements of a vector from the one that is 1 on.
func (h *reflections[T]) vector(i int) []T { return h.v[i*h.length+i+h.first : (i+1)*h.length] }

// block returns the vectors of a block as rows, from the first element that is not 0.
func (h *reflections[T]) block(start int) simd.Matrix[T] {
	return simd.Matrix[T]{Data: h.v[start*h.length+start+h.first:], Row: h.length, Col: 1}
}

// width returns the number of reflections of the block that begins at start.
func (h *reflections[T]) width(start int) int { return min(factorBlock, h.count-start) }

// isSmall reports whether columns are reflected one by one, without products of blocks.
func (h *reflections[T]) isSmall() bool {
	return h.count <= factorBlock && h.length*h.length <= fewProducts
}

// reflect chooses reflection i, which maps x to (β, 0, …), as LAPACK's larfg, and returns β.
func (h *reflections[T]) reflect(i int, x []T) (beta T) {
	clear(h.v[i*h.length:][:i+h.first])
	v, tau := h.vector(i), &h.tau[i%factorBlock]
	v[0] = 1
	alpha, rest := float64(x[0]), norm(x[1:])
	if rest == 0 {
		clear(v[1:])
		*tau = 0
		return x[0]
	}
	b := -math.Copysign(math.Hypot(alpha, rest), alpha)
	by := alpha - b
	for j, y := range x[1:] {
		v[1+j] = T(float64(y) / by)
	}
	*tau = T(-by / b)
	return T(b)
}

// norm returns the length of a vector, without overflow.
func norm[T simd.Float](x []T) float64 {
	sum := squares(x, 1)
	if sum > 1e-280 && sum < 1e300 {
		return math.Sqrt(sum)
	}
	largest := 0.0
	for _, y := range x {
		largest = max(largest, math.Abs(float64(y)))
	}
	if largest == 0 || largest-largest != 0 {
		return largest
	}
	return largest * math.Sqrt(squares(x, largest))
}

// squares returns the sum of the squares of numbers divided by one.
func squares[T simd.Float](x []T, by float64) float64 {
	var sums [4]float64
	for ; len(x) >= len(sums); x = x[len(sums):] {
		for l := range sums {
			y := float64(x[l]) / by
			sums[l] += y * y
		}
	}
	for l, y := range x {
		sums[l] += float64(y) / by * (float64(y) / by)
	}
	return (sums[0] + sums[1]) + (sums[2] + sums[3])
}

// finish computes -t of the block that begins at start.
func (h *reflections[T]) finish(w *workspace[T], start int) {
	n, v, t := h.width(start), h.block(start), h.minusT[start*factorBlock:]
	w.multiply(simd.Size{M: n, N: n, K: h.length - start - h.first}, v, v.Transposed(), h.between, n)
	for j := range n {
		for r := range j {
			sum := T(0)
			for l := r; l < j; l++ {
				sum += t[r*n+l] * h.between[l*n+j]
			}
			t[r*n+j] = -h.tau[j] * sum
		}
		clear(t[j*n:][:j])
		t[j*n+j] = -h.tau[j]
	}
}

// apply reflects columns, which start where the vectors of the block do and are row apart: by the
// block's product, or by its inverse. scratch has room for 2·factorBlock numbers a column.
func (h *reflections[T]) apply(w *workspace[T], start int, inverse bool, x []T, row, columns int, scratch []T) {
	n, length, v := h.width(start), h.length-start-h.first, h.block(start)
	along, reflected := scratch[:columns*n], scratch[columns*n:]
	w.multiply(simd.Size{M: columns, N: n, K: length}, simd.Matrix[T]{Data: x, Row: row, Col: 1}, v.Transposed(), along, n)
	t := simd.Matrix[T]{Data: h.minusT[start*factorBlock:], Row: n, Col: 1}
	if !inverse {
		t = t.Transposed()
	}
	by := simd.Matrix[T]{Data: along, Row: n, Col: 1}
	w.multiply(simd.Size{M: columns, N: n, K: n}, by, t, reflected, n)
	by.Data = reflected
	w.accumulate(simd.Size{M: columns, N: length, K: n}, by, v, x, row)
}

// triangularize reflects columns, of rows numbers each, so that they are 0 below the diagonal; what
// is left there is not used.
func triangularize[T simd.Float](w *workspace[T], a []T, rows, cols int) reflections[T] {
	h := newReflections(w, min(rows, cols), rows, 0)
	scratch := w.take(2 * factorBlock * cols)
	for start := 0; start < h.count; start += factorBlock {
		end := start + h.width(start)
		for i := start; i < end; i++ {
			a[i*rows+i] = h.reflect(i, a[i*rows+i:(i+1)*rows])
			w.reflectOne(&h, i, a[min((i+1)*rows+i, len(a)):], rows, end-i-1, scratch)
		}
		right := cols - end
		if right > 0 || !h.isSmall() {
			h.finish(w, start)
		}
		if right > 0 {
			h.apply(w, start, true, a[end*rows+start:], rows, right, scratch)
		}
	}
	return h
}

// reflectOne applies reflection i to columns, which start where its vector does.
func (w *workspace[T]) reflectOne(h *reflections[T], i int, x []T, row, columns int, along []T) {
	if columns == 0 {
		return
	}
	v, along := h.vector(i), along[:columns]
	if columns*len(v) <= fewProducts {
		for j := range columns {
			reflectColumn(x[j*row:][:len(v)], v, h.tau[i%factorBlock])
		}
		return
	}
	w.space.Grow(simd.Size{M: columns, N: len(v), K: 1})
	simd.Dots(&w.space, columns, len(v), x, row, v, along)
	for j := range along {
		along[j] *= -h.tau[i%factorBlock]
	}
	simd.Accumulate(&w.space, simd.Size{M: columns, N: len(v), K: 1}, simd.Matrix[T]{Data: along, Row: 1, Col: 1}, simd.Matrix[T]{Data: v, Row: len(v), Col: 1}, x, row)
}

// reflectColumn applies the reflection with vector v to one column.
func reflectColumn[T simd.Float](x, v []T, tau T) {
	along := T(0)
	for k, y := range v {
		along += y * x[k]
	}
	along *= tau
	for k, y := range v {
		x[k] -= along * y
	}
}

// columns computes the first columns of the product of all reflections, in q.
func (h *reflections[T]) columns(w *workspace[T], q []T, columns int) {
	clear(q[:columns*h.length])
	for i := range min(columns, h.length) {
		q[i*h.length+i] = 1
	}
	scratch := w.take(2 * factorBlock * columns)
	if h.isSmall() {
		for i := min(h.count, columns) - 1; i >= 0; i-- {
			w.reflectOne(h, i, q[i*h.length+i:], h.length, columns-i, scratch)
		}
		return
	}
	for start := (h.count - 1) / factorBlock * factorBlock; start >= 0 && h.count > 0; start -= factorBlock {
		h.apply(w, start, false, q[start*h.length+start:], h.length, columns-start, scratch)
	}
}

func qr[T simd.Float](w *workspace[T], n *ir.Node, in, out [][]T) {
	rows, cols := matrixOf(n.Input(0))
	_, width := matrixOf(n.Result(0))
	a := w.take(rows * cols)
	simd.Transpose(a, rows, in[0], cols, rows, cols)
	h := triangularize(w, a, rows, cols)
	r := out[1]
	clear(r)
	for j := range cols {
		for i, x := range a[j*rows:][:min(j+1, rows)] {
			r[i*cols+j] = x
		}
	}
	if !w.read[0] {
		return
	}
	q := w.take(rows * width)
	h.columns(w, q, width)
	simd.Transpose(out[0], width, q, rows, width, rows)
}
