//go:build !js

package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
)

// eigh computes eigenvalues and, where they are used, eigenvectors.
func eigh[T simd.Float](w *workspace[T], n *ir.Node, in, out [][]T) {
	size, _ := matrixOf(n.Input(0))
	if size == 0 {
		return
	}
	values, v := out[0], out[1]
	a := w.take(size * size)
	symmetricPart(a, in[0], size)
	mirror(a, size)
	d, z := eigenvectors(w, a, size, w.read[1])
	if d == nil {
		fill(values, T(math.NaN()))
		fill(v, T(math.NaN()))
		return
	}
	for i, x := range d {
		values[i] = T(x)
	}
	if !w.read[1] {
		return
	}
	for i := range size {
		if row := z[i*size : (i+1)*size]; hasWrongSign(row, size, 1) {
			negate(row, size, 1)
		}
	}
	simd.Transpose(v, size, z, size, size, size)
}

// eigenvectors returns the eigenvalues of a symmetric matrix, which it overwrites, in ascending order,
// and, if wanted, the eigenvectors as rows; nil if the matrix has elements that are not finite.
func eigenvectors[T simd.Float](w *workspace[T], a []T, size int, wanted bool) (values []float64, z []T) {
	if !finite(a) {
		return nil, nil
	}
	scale := unitScale(a)
	t := w.tridiagonal(size)
	h := tridiagonalize(w, a, size, t)
	scale *= t.normalize()
	if !wanted {
		if !iterate[T](t, nil, 0) {
			return nil, nil
		}
		slices.Sort(t.d)
		return multiplied(t.d, scale), nil
	}
	z = w.take(size * size)
	if !newConquest(w, t, z).solve(0, size) {
		return nil, nil
	}
	scratch := w.take(2 * factorBlock * size)
	for start := (h.count - 1) / factorBlock * factorBlock; start >= 0 && h.count > 0; start -= factorBlock {
		h.apply(w, start, false, z[start+1:], size, size, scratch)
	}
	return multiplied(t.d, scale), z
}

// normalize divides by a power of two, which it returns, so that the largest element is near 1, as divide and
// conquer expects.
func (t tridiagonal) normalize() float64 {
	largest := 0.0
	for i, x := range t.d {
		largest = max(largest, math.Abs(x), math.Abs(t.e[i]))
	}
	_, exponent := math.Frexp(largest)
	multiplied(t.d, math.Ldexp(1, -exponent))
	multiplied(t.e, math.Ldexp(1, -exponent))
	return math.Ldexp(1, exponent)
}

// multiplied multiplies numbers.
func multiplied(x []float64, by float64) []float64 {
	for i := range x {
		x[i] *= by
	}
	return x
}

// unitScale divides numbers by a power of two, which it returns, so that squares do not overflow.
func unitScale[T simd.Float](x []T) float64 {
	largest := 0.0
	for _, y := range x {
		largest = max(largest, math.Abs(float64(y)))
	}
	if 0x1p-30 < largest && largest < 0x1p30 {
		return 1
	}
	_, exponent := math.Frexp(largest)
	exponent = max(exponent, -1000) // its inverse is finite
	by := math.Ldexp(1, -exponent)
	for i, y := range x {
		x[i] = T(float64(y) * by)
	}
	return math.Ldexp(1, exponent)
}
