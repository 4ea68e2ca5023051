package cpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/simd"
)

// conquerSize is the size up to which a tridiagonal matrix is solved by iteration.
const conquerSize = 32

// conquest finds the eigenvalues and eigenvectors of a tridiagonal matrix by divide and conquer
// (Cuppen, "A divide and conquer method for the symmetric tridiagonal eigenproblem", 1981; Golub and
// Van Loan, Matrix Computations, section 8.4). Eigenvectors have the matrix's type, all else is f64.
type conquest[T simd.Float] struct {
	w       *workspace[T]
	t       tridiagonal
	z       []T // the eigenvectors as rows, of size numbers
	size    int
	epsilon float64 // of T
	secular secular

	halves         []uint8 // of each eigenvector of two halves, those where it is not 0
	order, kept    []int   // indices of eigenvectors, ascending by eigenvalue
	deflated       []int
	place          []int // for each kept eigenvector its row of rows and column of u
	u, rows, joint []T   // joint has the new eigenvectors, and values the eigenvalues
	values         []float64
}

// The halves of a matrix.
const (
	top uint8 = 1 << iota
	bottom
)

// newConquest returns the room for a matrix, in the workspace. z becomes the unit matrix.
func newConquest[T simd.Float](w *workspace[T], t tridiagonal, z []T) *conquest[T] {
	size := len(t.d)
	clear(z)
	for i := range size {
		z[i*size+i] = 1
	}
	c := &w.halves
	c.w, c.t, c.z, c.size, c.epsilon, c.joint = w, t, z, size, epsilonOf[T](), w.take(size*size)
	if size > conquerSize {
		c.u, c.rows = w.take(size*size), w.take(size*size)
		c.secular.tolerance = c.epsilon / 8
	}
	return c
}

// epsilonOf returns half the distance between 1 and the next number.
func epsilonOf[T simd.Float]() float64 {
	if _, single := any(T(0)).(float32); single {
		return 0x1p-24
	}
	return 0x1p-53
}

// solve replaces the diagonal from low to high by the eigenvalues of that block in ascending order,
// and the block's rows of z by the eigenvectors. It returns false if the iteration does not converge.
func (c *conquest[T]) solve(low, high int) bool {
	size := high - low
	if size <= conquerSize {
		d := c.t.d[low:high]
		if !iterate(tridiagonal{d, c.t.e[low:high]}, c.z[low*c.size+low:], c.size) {
			return false
		}
		for i := range size {
			copy(c.joint[i*size:][:size], c.row(low, i, size))
		}
		c.values = append(c.values[:0], d...)
		c.arrange(low, high)
		return true
	}
	middle := (low + high) / 2
	between := c.t.e[middle-1]
	c.t.d[middle-1] -= math.Abs(between)
	c.t.d[middle] -= math.Abs(between)
	if !c.solve(low, middle) || !c.solve(middle, high) {
		return false
	}
	c.join(low, middle, high, between)
	return true
}

// row returns the elements of an eigenvector of the block that starts at low.
func (c *conquest[T]) row(low, i, size int) []T { return c.z[(low+i)*c.size+low:][:size] }

// arrange stores new eigenvalues and eigenvectors in ascending order.
func (c *conquest[T]) arrange(low, high int) {
	size := high - low
	c.order = ascending(c.order, c.values)
	for i, from := range c.order {
		c.t.d[low+i] = c.values[from]
		copy(c.row(low, i, size), c.joint[from*size:])
	}
}

// ascending returns the indices of values in ascending order of these.
func ascending(order []int, values []float64) []int {
	order = order[:0]
	for i := range values {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	return order
}

// join solves a block from its two halves: with the eigenvectors of these it is a diagonal matrix plus
// ρ·x·xᵀ, where x has the last elements of the top eigenvectors and the first of the bottom ones.
func (c *conquest[T]) join(low, middle, high int, between float64) {
	size, half := high-low, middle-low
	s, d := &c.secular, c.t.d[low:high]
	s.rho = 2 * math.Abs(between)
	s.weights, c.halves = s.weights[:0], c.halves[:0]
	for i := range size {
		at, sign, of := middle-1-low, 1.0, top
		if i >= half {
			at, sign, of = half, math.Copysign(1, between), bottom
		}
		s.weights = append(s.weights, sign*float64(c.row(low, i, size)[at])/math.Sqrt2)
		c.halves = append(c.halves, of)
	}
	c.deflate(low, d)
	c.values = s.solve(d, c.kept, c.values[:0])
	c.multiply(low, half, size)
	for i, from := range c.deflated {
		copy(c.joint[(len(c.kept)+i)*size:][:size], c.row(low, from, size))
		c.values = append(c.values, d[from])
	}
	c.arrange(low, high)
}

// deflate divides the eigenvectors of the halves in those that are ones of the whole, as x is 0 there, and
// the rest. Of two with almost the same eigenvalue a rotation makes one with an x of 0 (Dongarra and
// Sorensen, "A fully parallel algorithm for the symmetric eigenvalue problem", 1987).
func (c *conquest[T]) deflate(low int, d []float64) {
	s, size := &c.secular, len(d)
	x, largest := s.weights, 0.0
	for i := range d {
		largest = max(largest, math.Abs(d[i]), math.Abs(x[i]))
	}
	bound := 8 * c.epsilon * largest
	c.order, c.kept, c.deflated = ascending(c.order, d), c.kept[:0], c.deflated[:0]
	last := -1
	for _, i := range c.order {
		switch {
		case s.rho*math.Abs(x[i]) <= bound:
			c.deflated = append(c.deflated, i)
			continue
		case last >= 0:
			length := math.Hypot(x[last], x[i])
			cos, sin := x[i]/length, -x[last]/length
			if math.Abs((d[i]-d[last])*cos*sin) > bound {
				c.kept = append(c.kept, last)
				break
			}
			x[i], x[last] = length, 0
			rotate(c.row(low, last, size), c.row(low, i, size), T(cos), T(sin))
			d[last], d[i] = d[last]*cos*cos+d[i]*sin*sin, d[last]*sin*sin+d[i]*cos*cos
			c.halves[i] |= c.halves[last]
			c.deflated = append(c.deflated, last)
		}
		last = i
	}
	if last >= 0 {
		c.kept = append(c.kept, last)
	}
}

// multiply computes the new eigenvectors from those kept, by two products that leave out blocks of zeros.
func (c *conquest[T]) multiply(low, half, size int) {
	k := len(c.kept)
	if k == 0 {
		return
	}
	c.place = slices.Grow(c.place[:0], k)[:k]
	next, begin, end := 0, 0, 0 // columns of u: in the bottom half from begin, in the top half before end
	for _, of := range []uint8{top, top | bottom, bottom} {
		if of == bottom {
			end = next
		}
		for i, from := range c.kept {
			if c.halves[from] == of {
				c.place[i] = next
				copy(c.rows[next*size:][:size], c.row(low, from, size))
				next++
			}
		}
		if of == top {
			begin = next
		}
	}
	for i := range k {
		s := &c.secular
		vectorOf(s, i, c.u[i*k:][:k], c.place)
	}
	u, rows := simd.Matrix[T]{Data: c.u, Row: k, Col: 1}, simd.Matrix[T]{Data: c.rows, Row: size, Col: 1}
	c.w.multiply(simd.Size{M: k, N: half, K: end}, u, rows, c.joint, size)
	if begin < k {
		c.w.multiply(simd.Size{M: k, N: size - half, K: k - begin}, u.From(0, begin), rows.From(begin, half), c.joint[half:], size)
		return
	}
	for i := range k {
		clear(c.joint[i*size+half:][:size-half])
	}
}
