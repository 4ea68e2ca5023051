package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// factorBlock is how many rows or columns of a matrix are factored or solved by scalars: the
// rest is matrix products (Golub and Van Loan, Matrix Computations, sections 3.1.3, 3.2.11 and
// 4.2.5).
const factorBlock = 32

// matrixOf returns the size of the matrices of an operand or a result.
func matrixOf(v ir.Value) (rows, cols int) {
	rows, _ = v.Dim(-2).Const()
	cols, _ = v.Dim(-1).Const()
	return rows, cols
}

// multiply computes c = a·b.
func (w *workspace[T]) multiply(z simd.Size, a, b simd.Matrix[T], c []T, cRow int) {
	w.space.Grow(z)
	if z.N == 1 && a.Col == 1 && b.Row == 1 && cRow == 1 {
		simd.Dots(&w.space, z.M, z.K, a.Data, a.Row, b.Data, c, 1)
		return
	}
	simd.Product(&w.space, z, a, b, c, cRow)
}

// tinyProduct is the number of multiplications up to which a product takes less time without kernels.
const tinyProduct = 64

// subtract subtracts a·b from c; scratch has room for m×n numbers. The smaller factor is negated, unless
// it has more numbers than the product.
func (w *workspace[T]) subtract(z simd.Size, a, b simd.Matrix[T], c []T, cRow int, scratch []T) {
	m, n, k := z.M, z.N, z.K
	switch {
	case k == 0 || m*n == 0:
	case m*n*k <= tinyProduct:
		for i := range m {
			row := c[i*cRow:][:n]
			for l := range k {
				x, at := a.Data[i*a.Row+l*a.Col], l*b.Row
				for j := range row {
					row[j] -= x * b.Data[at]
					at += b.Col
				}
			}
		}
	case m <= n && k < n:
		w.accumulate(z, negative(a, m, k, scratch), b, c, cRow)
	case n < m && k < m:
		w.accumulate(z, a, negative(b, k, n, scratch), c, cRow)
	default:
		w.multiply(z, a, b, scratch, n)
		for i := range m {
			row := c[i*cRow:][:n]
			for j, x := range scratch[i*n:][:n] {
				row[j] -= x
			}
		}
	}
}

// negative returns -a, of rows×cols numbers, in scratch.
func negative[T simd.Float](a simd.Matrix[T], rows, cols int, scratch []T) simd.Matrix[T] {
	for i := range rows {
		at := i * a.Row
		for j := range scratch[i*cols:][:cols] {
			scratch[i*cols+j] = -a.Data[at]
			at += a.Col
		}
	}
	return simd.Matrix[T]{Data: scratch, Row: cols, Col: 1}
}

// accumulate adds a·b to c.
func (w *workspace[T]) accumulate(z simd.Size, a, b simd.Matrix[T], c []T, cRow int) {
	w.space.Grow(z)
	simd.Accumulate(&w.space, z, a, b, c, cRow)
}

// triangle is a triangular matrix to solve with.
type triangle[T simd.Float] struct {
	simd.Matrix[T]
	size        int
	lower, unit bool
}

// solve replaces x, of size rows of n elements, by the solution of a·y = x.
func (w *workspace[T]) solve(a triangle[T], x []T, n int) {
	if a.size*a.size*n <= tinySolution {
		a.solveTiny(x, n)
		return
	}
	product := w.take(factorBlock * n)
	for done := 0; done < a.size; done += factorBlock {
		size := min(factorBlock, a.size-done)
		if a.lower {
			rest := x[done*n:]
			w.subtract(simd.Size{M: size, N: n, K: done}, a.From(done, 0), simd.Matrix[T]{Data: x, Row: n, Col: 1}, rest, n, product)
			for i := range size {
				w.solveRow(a, done+i, done, i, x, n, product)
			}
			continue
		}
		first := a.size - done - size // the block is of rows [first, first+size)
		if after := first + size; done > 0 {
			w.subtract(simd.Size{M: size, N: n, K: done}, a.From(first, after), simd.Matrix[T]{Data: x[after*n:], Row: n, Col: 1}, x[first*n:], n, product)
		}
		for i := size - 1; i >= 0; i-- {
			w.solveRow(a, first+i, first+i+1, size-1-i, x, n, product)
		}
	}
}

// tinySolution is the number of multiplications up to which systems are solved without products.
const tinySolution = 1 << 11

// solveTiny is [workspace.solve] for a small triangle.
func (a *triangle[T]) solveTiny(x []T, n int) {
	data, by, step := a.Data, a.Row, a.Col
	for done := range a.size {
		i, first := done, 0
		if !a.lower {
			i, first = a.size-1-done, a.size-done
		}
		row, inverse := x[i*n:][:n], T(1)
		if !a.unit {
			inverse = 1 / data[i*(by+step)]
		}
		for l := first; l < first+done; l++ {
			f := data[i*by+l*step]
			for j, y := range x[l*n:][:len(row)] {
				row[j] -= f * y
			}
		}
		switch {
		case a.unit:
		case inverse-inverse == 0:
			for j := range row {
				row[j] *= inverse
			}
		default:
			quotients(row, data[i*(by+step)])
		}
	}
}

// solveRow solves for row i, given k rows from known on.
func (w *workspace[T]) solveRow(a triangle[T], i, known, k int, x []T, n int, product []T) {
	row := x[i*n:][:n]
	if k > 0 {
		if n == 1 {
			sum := T(0)
			for l, y := range x[known:][:k] {
				sum += a.Data[i*a.Row+(known+l)*a.Col] * y
			}
			row[0] -= sum
		} else {
			w.subtract(simd.Size{M: 1, N: n, K: k}, a.From(i, known), simd.Matrix[T]{Data: x[known*n:], Row: n, Col: 1}, row, n, product)
		}
	}
	if !a.unit {
		quotients(row, a.Data[i*(a.Row+a.Col)])
	}
}

// quotients divides numbers by one, by its reciprocal where that is finite.
func quotients[T simd.Float](x []T, by T) {
	if inverse := 1 / by; inverse-inverse == 0 {
		for i := range x {
			x[i] *= inverse
		}
		return
	}
	for i := range x {
		x[i] /= by
	}
}

func triangularSolve[T simd.Float](w *workspace[T], n *ir.Node, in, out [][]T) {
	attrs := n.Attrs().(*ops.TriangularAttrs)
	rows, cols := matrixOf(n.Input(1))
	size, _ := matrixOf(n.Input(0))
	if rows*cols == 0 {
		return
	}
	a := triangle[T]{simd.Matrix[T]{Data: in[0], Row: size, Col: 1}, size, attrs.Lower, attrs.UnitDiagonal}
	if attrs.TransposeA == attrs.LeftSide { // the right side has the transposed system
		a.Row, a.Col, a.lower = a.Col, a.Row, !a.lower
	}
	if attrs.LeftSide {
		copy(out[0], in[1])
		w.solve(a, out[0], cols)
		return
	}
	transposed := w.take(rows * cols)
	simd.Transpose(transposed, rows, in[1], cols, rows, cols)
	w.solve(a, transposed, rows)
	simd.Transpose(out[0], cols, transposed, rows, cols, rows)
}

func cholesky[T simd.Float](w *workspace[T], n *ir.Node, in, out [][]T) {
	size, _ := matrixOf(n.Input(0))
	l := out[0]
	symmetrize(l, in[0], size)
	product, panel := w.take(size*factorBlock), w.take(size*factorBlock)
	for j := 0; j < size; j += factorBlock {
		width := min(factorBlock, size-j)
		left := simd.Matrix[T]{Data: l[j*size:], Row: size, Col: 1}
		w.subtract(simd.Size{M: size - j, N: width, K: j}, left, simd.Matrix[T]{Data: left.Data, Row: 1, Col: size}, l[j*size+j:], size, product)
		if !choleskyBlock(l[j*size+j:], size, width) {
			fill(l, T(math.NaN()))
			return
		}
		below := size - j - width
		if below == 0 {
			break
		}
		// The rows below are solved as columns of their transpose.
		from := l[(j+width)*size+j:]
		simd.Transpose(panel, below, from, size, below, width)
		next := w.next
		w.solve(triangle[T]{simd.Matrix[T]{Data: l[j*size+j:], Row: size, Col: 1}, width, true, false}, panel, below)
		w.next = next
		simd.Transpose(from, size, panel, below, width, below)
	}
	for i := range size {
		clear(l[i*size+i+1 : (i+1)*size])
	}
}

// choleskyBlock factors a small matrix in place, with the given distance between rows; it returns
// false if the matrix is not positive definite.
func choleskyBlock[T simd.Float](a []T, step, size int) bool {
	for i := range size {
		row := a[i*step:][:size]
		for j := range i + 1 {
			sum, other := row[j], a[j*step:][:size]
			for k := range j {
				sum -= row[k] * other[k]
			}
			switch {
			case j < i:
				row[j] = sum / other[j]
			case sum > 0 && sum-sum == 0:
				row[i] = T(math.Sqrt(float64(sum)))
			default:
				return false
			}
		}
	}
	return true
}

// symmetrize stores the symmetric part of a matrix.
func symmetrize[T simd.Float](to, from []T, size int) {
	for i := range size {
		for j := range i + 1 {
			x := from[i*size+j]/2 + from[j*size+i]/2
			to[i*size+j], to[j*size+i] = x, x
		}
	}
}

// lu factors with partial pivoting.
func lu[T simd.Float](w *workspace[T], n *ir.Node, in, out [][]T) {
	rows, cols := matrixOf(n.Input(0))
	a, k := out[0], min(rows, cols)
	copy(a, in[0])
	w.pivots = slices.Grow(w.pivots[:0], k)[:k]
	w.luColumns(a, rows, cols, 0, k, cols, factorBlock)
	order := out[2]
	for i := range order {
		order[i] = T(i)
	}
	for i, p := range w.pivots {
		out[1][i] = T(p)
		order[i], order[p] = order[p], order[i]
	}
}

// luBlock is the number of columns that are factored by scalars: a panel of factorBlock columns is
// divided as the matrix is, if it has more than luRows rows.
const (
	luBlock = 8
	luRows  = 64
)

// luColumns factors columns [first, end) from row first on, in panels of block columns, and updates columns
// up to last: for each panel the rows of the upper factor that depend on it, and the rest by a product.
func (w *workspace[T]) luColumns(a []T, rows, cols, first, end, last, block int) {
	for j := first; j < end; j += block {
		width := min(block, end-j)
		if block > luBlock && rows-j > luRows {
			w.luColumns(a, rows, cols, j, j+width, j+width, luBlock)
		} else {
			luPanel(a, w.pivots, rows, cols, j, width)
		}
		right := last - j - width
		if right == 0 {
			continue
		}
		w.next = 0
		upper := w.take(width * right)
		for i := range width {
			copy(upper[i*right:][:right], a[(j+i)*cols+j+width:])
		}
		panel := simd.Matrix[T]{Data: a[j*cols+j:], Row: cols, Col: 1}
		w.solve(triangle[T]{panel, width, true, true}, upper, right)
		for i := range width {
			copy(a[(j+i)*cols+j+width:][:right], upper[i*right:])
		}
		if below := rows - j - width; below > 0 {
			w.subtract(simd.Size{M: below, N: right, K: width}, panel.From(width, 0), simd.Matrix[T]{Data: upper, Row: right, Col: 1}, a[(j+width)*cols+j+width:], cols, w.take(below*right))
		}
	}
}

// luPanel factors columns [first, first+width) from row first on, and exchanges whole rows.
func luPanel[T simd.Float](a []T, pivots []int, rows, cols, first, width int) {
	for j := first; j < first+width; j++ {
		best, largest := j, math.Abs(float64(a[j*cols+j]))
		for i := j + 1; i < rows; i++ {
			if x := math.Abs(float64(a[i*cols+j])); x > largest {
				best, largest = i, x
			}
		}
		pivots[j] = best
		if best != j {
			swap(a[j*cols:][:cols], a[best*cols:][:cols])
		}
		pivot := a[j*cols+j]
		if pivot == 0 {
			continue
		}
		upper := a[j*cols+j+1 : j*cols+first+width]
		for i := j + 1; i < rows; i++ {
			row := a[i*cols+j : i*cols+first+width]
			by := row[0] / pivot
			row[0] = by
			row = row[1:][:len(upper)]
			for l, x := range upper {
				row[l] -= by * x
			}
		}
	}
}

func swap[T any](x, y []T) {
	for i := range x {
		x[i], y[i] = y[i], x[i]
	}
}
