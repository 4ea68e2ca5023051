package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/simd"
)

// tridiagonal is a symmetric matrix with diagonal d; e[i] is element (i, i+1), and the last of e is
// scratch.
type tridiagonal struct{ d, e []float64 }

// tridiagonal returns a matrix of zeros, in the workspace.
func (w *workspace[T]) tridiagonal(size int) tridiagonal {
	w.t.d, w.t.e = slices.Grow(w.t.d[:0], size)[:size], slices.Grow(w.t.e[:0], size)[:size]
	clear(w.t.d)
	clear(w.t.e)
	return w.t
}

// tridiagonalize reduces a symmetric matrix, which it overwrites, to q·t·qᵀ; q is the product of the
// reflections (Golub and Van Loan, Matrix Computations, section 8.3.1). As LAPACK's latrd it updates
// the matrix once for a block of reflections: a - v·wᵀ - w·vᵀ.
func tridiagonalize[T simd.Float](w *workspace[T], a []T, size int, t tridiagonal) reflections[T] {
	h := newReflections(w, size-1, size, 1)
	p := panelUpdates[T]{size: size, pairs: w.take(2 * factorBlock * size), swapped: w.take(2 * factorBlock * size), by: w.take(2 * factorBlock)}
	product := w.take(size)
	for start := 0; start < h.count; start += factorBlock {
		end := start + h.width(start)
		for i := start; i < end; i++ {
			p.update(w, a[i*size:(i+1)*size], i, i-start)
			t.d[i] = float64(a[i*size+i])
			t.e[i] = float64(h.reflect(i, a[i*size+i+1:(i+1)*size]))
			p.add(w, &h, a, i, i-start, product)
		}
		h.finish(w, start)
		if rest := size - end; rest > 0 {
			u := simd.Matrix[T]{Data: p.pairs[end:], Row: size, Col: 1}
			v := simd.Matrix[T]{Data: p.swapped[end:], Row: size, Col: 1}
			w.accumulate(simd.Size{M: rest, N: rest, K: 2 * (end - start)}, v.Transposed(), u, a[end*size+end:], size)
		}
	}
	t.d[size-1] = float64(a[size*size-1])
	return h
}

// panelUpdates are the updates of a block that the matrix does not have yet.
type panelUpdates[T simd.Float] struct {
	size    int
	pairs   []T // rows v₀, w₀, v₁, w₁, …
	swapped []T // rows -w₀, -v₀, -w₁, -v₁, …
	by      []T
}

// update applies the updates of the first n reflections to row i from its diagonal on.
func (p *panelUpdates[T]) update(w *workspace[T], row []T, i, n int) {
	for l := range 2 * n {
		p.by[l] = p.swapped[l*p.size+i]
	}
	p.combine(w, row, i, n)
}

// combine adds to x, from index i on, the rows of the first n pairs times p.by.
func (p *panelUpdates[T]) combine(w *workspace[T], x []T, i, n int) {
	by := simd.Matrix[T]{Data: p.by, Row: 2 * n, Col: 1}
	w.accumulate(simd.Size{M: 1, N: p.size - i, K: 2 * n}, by, simd.Matrix[T]{Data: p.pairs[i:], Row: p.size, Col: 1}, x[i:], p.size)
}

// add appends the update of reflection i to the n before it: w = τ·a·v - τ²/2·(vᵀ·a·v)·v, where a has
// their updates.
func (p *panelUpdates[T]) add(w *workspace[T], h *reflections[T], a []T, i, n int, product []T) {
	at, tau := i+1, h.tau[n]
	v := h.vector(i)
	x := product[at:]
	vector := simd.Matrix[T]{Data: v, Row: len(v), Col: 1}
	w.multiply(simd.Size{M: 1, N: len(v), K: len(v)}, vector, simd.Matrix[T]{Data: a[at*p.size+at:], Row: p.size, Col: 1}, x, len(v))
	if n > 0 {
		simd.Dots(&w.space, 2*n, len(v), p.swapped[at:], p.size, v, p.by)
		p.combine(w, product, at, n)
	}
	var between [1]T
	for j := range x {
		x[j] *= tau
	}
	simd.Dots(&w.space, 1, len(v), x, len(v), v, between[:])
	by := -tau / 2 * between[0]
	pair, swapped := p.pairs[2*n*p.size:], p.swapped[2*n*p.size:]
	copy(pair[at:p.size], v)
	for j, y := range v {
		value := x[j] + by*y
		pair[p.size+at+j] = value
		swapped[at+j], swapped[p.size+at+j] = -value, -y
	}
}

// sweeps bounds the iterations for an eigenvalue.
const sweeps = 60

// iterate replaces the diagonal by the eigenvalues, by the implicit QL method with Wilkinson's shifts
// (Golub and Van Loan, section 8.3.3), and rotates the rows of z, which are row apart, if there are any:
// unit rows become the eigenvectors. It returns false if the method does not converge.
func iterate[T simd.Float](t tridiagonal, z []T, row int) bool {
	n, bound := len(t.d), max(0x1p-53, epsilonOf[T]()/64)
	for first := range n {
		for tries := 0; ; tries++ {
			last := first
			for last < n-1 && math.Abs(t.e[last]) > bound*(math.Abs(t.d[last])+math.Abs(t.d[last+1])) {
				last++
			}
			if last == first {
				break
			}
			if tries == sweeps {
				return false
			}
			sweep(t, first, last, z, row)
		}
	}
	return true
}

// sweep is an iteration on the rows from first to last.
func sweep[T simd.Float](t tridiagonal, first, last int, z []T, row int) {
	d, e := t.d, t.e
	shift := (d[first+1] - d[first]) / (2 * e[first])
	g := d[last] - d[first] + e[first]/(shift+math.Copysign(math.Sqrt(shift*shift+1), shift))
	sin, cos, lost := 1.0, 1.0, 0.0
	for i := last - 1; i >= first; i-- {
		f, b := sin*e[i], cos*e[i]
		length := math.Sqrt(f*f + g*g)
		e[i+1] = length
		if length == 0 { // the matrix divides here
			d[i+1] -= lost
			e[last] = 0
			return
		}
		sin, cos = f/length, g/length
		g = d[i+1] - lost
		turned := (d[i]-g)*sin + 2*cos*b
		lost = sin * turned
		d[i+1] = g + lost
		g = cos*turned - b
		if z != nil {
			rotate(z[i*row:][:len(d)], z[(i+1)*row:][:len(d)], T(cos), T(-sin))
		}
	}
	d[first] -= lost
	e[first] = g
	e[last] = 0
}

// rotate replaces x and y by cos·x + sin·y and cos·y - sin·x.
func rotate[T simd.Float](x, y []T, cos, sin T) {
	y = y[:len(x)]
	for i, a := range x {
		b := y[i]
		x[i], y[i] = cos*a+sin*b, cos*b-sin*a
	}
}
