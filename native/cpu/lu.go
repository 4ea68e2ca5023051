package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
)

// lu factors with partial pivoting.
func lu[T simd.Float](w *workspace[T], n *ir.Node, in, out [][]T) {
	rows, cols := matrixOf(n.Input(0))
	a, k := out[0], min(rows, cols)
	copy(a, in[0])
	w.pivots = slices.Grow(w.pivots[:0], k)[:k]
	isTiny := rows*cols <= tinyMatrix
	switch {
	case isTiny:
		luTiny(a, rows, cols, w.pivots)
	case k > 0:
		w.luColumns(a, rows, cols, 0, k)
	}
	if k < cols && !isTiny {
		w.solve(triangle[T]{simd.Matrix[T]{Data: a, Row: cols, Col: 1}, k, true, true}, a[k:], cols, cols-k)
	}
	order := out[2]
	for i := range order {
		order[i] = T(i)
	}
	for i, p := range w.pivots {
		out[1][i] = T(p)
		order[i], order[p] = order[p], order[i]
	}
}

// tinyMatrix is the number of elements up to which a matrix is factored row by row, in place.
const tinyMatrix = 64

// luTiny factors a matrix by subtracting each row, once its pivot is chosen, from those below it.
func luTiny[T simd.Float](a []T, rows, cols int, pivots []int) {
	for j := range pivots {
		p, most := j, math.Abs(float64(a[j*cols+j]))
		for i := j + 1; i < rows; i++ {
			if x := math.Abs(float64(a[i*cols+j])); x > most {
				p, most = i, x
			}
		}
		row := a[j*cols:][:cols]
		if pivots[j] = p; p != j {
			for l, x := range a[p*cols:][:cols] {
				a[p*cols+l], row[l] = row[l], x
			}
		}
		for i := j + 1; i < rows; i++ {
			below := a[i*cols:][:cols]
			if row[j] != 0 {
				below[j] /= row[j]
			}
			for l := j + 1; l < cols; l++ {
				below[l] -= below[j] * row[l]
			}
		}
	}
}

// luRows is the number of rows up to which panels have factorPart columns; those of more have factorBlock.
const luRows = 64

// luColumns factors columns [first, end) from row first on by halves, and exchanges whole rows (Toledo, "Locality
// of reference in LU decomposition with partial pivoting", 1997).
func (w *workspace[T]) luColumns(a []T, rows, cols, first, end int) {
	if width := end - first; width <= factorPart || width <= factorBlock && rows-first > luRows {
		w.luPanel(a, rows, cols, first, width)
		return
	}
	half := halfOf(end - first)
	middle, next := first+half, w.next
	w.luColumns(a, rows, cols, first, middle)
	left := simd.Matrix[T]{Data: a[first*cols+first:], Row: cols, Col: 1}
	upper := a[first*cols+middle:]
	w.solve(triangle[T]{left, half, true, true}, upper, cols, end-middle)
	if below := rows - middle; below > 0 {
		z := simd.Size{M: below, N: end - middle, K: half}
		w.subtract(z, left.From(half, 0), simd.Matrix[T]{Data: upper, Row: cols, Col: 1}, a[middle*cols+middle:], cols, w.take(below*max(z.N, half)))
		w.next = next
	}
	w.luColumns(a, rows, cols, middle, end)
}

// luPanel factors a few columns from row first on, as rows of their transpose: a column has the updates of those
// before it when its pivot is chosen.
func (w *workspace[T]) luPanel(a []T, rows, cols, first, width int) {
	count, next := rows-first, w.next
	t, by := w.take(width*count), w.take(width)
	simd.Transpose(t, count, a[first*cols+first:], cols, count, width)
	for j := range width {
		x := t[j*count:][:count]
		for k := range j {
			by[k] = -x[k]
			for l, y := range t[k*count:][k+1 : j] {
				x[k+1+l] += by[k] * y
			}
		}
		w.addRows(x[j:], by[:j], t[j:], count)
		p := j + largest(x[j:])
		w.pivots[first+j] = first + p
		if p != j {
			for k := range width {
				t[k*count+j], t[k*count+p] = t[k*count+p], t[k*count+j]
			}
			top, bottom := a[(first+j)*cols:][:cols], a[(first+p)*cols:][:cols]
			swap(top[:first], bottom[:first])
			swap(top[first+width:], bottom[first+width:])
		}
		if pivot := x[j]; pivot != 0 {
			quotients(x[j+1:], pivot)
		}
	}
	simd.Transpose(a[first*cols+first:], cols, t, count, width, count)
	w.next = next
}

// addRows adds to x the sum of rows, which are apart, each times a number.
func (w *workspace[T]) addRows(x, by, rows []T, apart int) {
	if len(x)*len(by) > fewProducts {
		w.accumulate(simd.Size{M: 1, N: len(x), K: len(by)}, simd.Matrix[T]{Data: by, Row: len(by), Col: 1}, simd.Matrix[T]{Data: rows, Row: apart, Col: 1}, x, len(x))
		return
	}
	for k, f := range by {
		for i, y := range rows[k*apart:][:len(x)] {
			x[i] += f * y
		}
	}
}

// largest returns the index of the first number of the largest magnitude.
func largest[T simd.Float](x []T) int {
	at, most := 0, math.Abs(float64(x[0]))
	for i, y := range x {
		if y := math.Abs(float64(y)); y > most {
			at, most = i, y
		}
	}
	return at
}

// swap exchanges the numbers of two rows.
func swap[T any](x, y []T) {
	var held [64]T
	for len(x) > 0 {
		n := copy(held[:], x)
		copy(x[:n], y)
		copy(y, held[:n])
		x, y = x[n:], y[n:]
	}
}
