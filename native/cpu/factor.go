package cpu

import (
	"math"

	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
)

// factorBlock is how many rows or columns of a matrix are factored or solved by scalars: the
// rest is matrix products (Golub and Van Loan, Matrix Computations, sections 3.1.3, 3.2.11 and
// 4.2.5).
const factorBlock = 32

// factorPart is how many columns of a matrix are factored by scalars where products of few rows cost little.
const factorPart = 8

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
		simd.Dots(&w.space, z.M, z.K, a.Data, a.Row, b.Data, c)
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

// halfOf returns about half of a size, in whole blocks or, of a block, in whole parts.
func halfOf(size int) int {
	unit := factorBlock
	if size <= factorBlock {
		unit = factorPart
	}
	return (size/2 + unit - 1) / unit * unit
}

func cholesky[T simd.Float](w *workspace[T], n *ir.Node, in, out [][]T) {
	size, _ := matrixOf(n.Input(0))
	l := out[0]
	symmetricPart(l, in[0], size)
	if !w.choleskyOf(l, size, size) {
		fill(l, T(math.NaN()))
		return
	}
	for i := range size {
		clear(l[i*size+i+1 : (i+1)*size])
	}
}

// choleskyOf factors a matrix in place, with the given distance between rows, by halves: only the lower triangle
// is the factor. It returns false if the matrix is not positive definite.
func (w *workspace[T]) choleskyOf(a []T, step, size int) bool {
	if size <= 2*factorPart {
		return choleskyBlock(a, step, size)
	}
	half := halfOf(size)
	if !w.choleskyOf(a, step, half) {
		return false
	}
	// The rows below are solved as columns of their transpose.
	below, from, next := size-half, a[half*step:], w.next
	panel := w.take(half * below)
	simd.Transpose(panel, below, from, step, below, half)
	w.solve(triangle[T]{simd.Matrix[T]{Data: a, Row: step, Col: 1}, half, true, false}, panel, below, below)
	simd.Transpose(from, step, panel, below, half, below)
	negate(panel, len(panel), 1)
	left, right := simd.Matrix[T]{Data: from, Row: step, Col: 1}, simd.Matrix[T]{Data: panel, Row: below, Col: 1}
	w.accumulateLower(simd.Size{M: below, N: below, K: half}, left, right, from[half:], step)
	w.next = next
	return w.choleskyOf(from[half:], step, below)
}

// lowerBlock is the size up to which all elements of a symmetric product are computed.
const lowerBlock = 128

// accumulateLower adds the lower triangle of a square product a·b to c, and some elements above it.
func (w *workspace[T]) accumulateLower(z simd.Size, a, b simd.Matrix[T], c []T, cRow int) {
	if z.M <= lowerBlock {
		w.accumulate(z, a, b, c, cRow)
		return
	}
	half := halfOf(z.M)
	rest := z.M - half
	w.accumulateLower(simd.Size{M: half, N: half, K: z.K}, a, b, c, cRow)
	w.accumulate(simd.Size{M: rest, N: half, K: z.K}, a.From(half, 0), b, c[half*cRow:], cRow)
	w.accumulateLower(simd.Size{M: rest, N: rest, K: z.K}, a.From(half, 0), b.From(0, half), c[half*cRow+half:], cRow)
}

// choleskyBlock factors a small matrix in place, with the given distance between rows; it returns
// false if the matrix is not positive definite.
func choleskyBlock[T simd.Float](a []T, step, size int) bool {
	var column [2 * factorPart]T
	for j := range size {
		pivot := a[j*step+j]
		if !(pivot > 0 && pivot-pivot == 0) {
			return false
		}
		root := T(math.Sqrt(float64(pivot)))
		a[j*step+j] = root
		for i := j + 1; i < size; i++ {
			column[i] = a[i*step+j] / root
			a[i*step+j] = column[i]
		}
		for i := j + 1; i < size; i++ {
			by, row, above := column[i], a[i*step+j+1:][:i-j], column[j+1:][:i-j]
			for k, x := range above {
				row[k] -= by * x
			}
		}
	}
	return true
}

// symmetricPart stores the lower triangle of the symmetric part of a matrix.
func symmetricPart[T simd.Float](to, from []T, size int) {
	if size*size <= tinyMatrix {
		for r := range size {
			for c := range r + 1 {
				to[r*size+c] = from[r*size+c]/2 + from[c*size+r]/2
			}
		}
		return
	}
	var block [factorBlock * factorBlock]T
	for i := 0; i < size; i += factorBlock {
		rows := min(factorBlock, size-i)
		for j := 0; j <= i; j += factorBlock {
			cols := min(factorBlock, size-j)
			simd.Transpose(block[:], factorBlock, from[j*size+i:], size, cols, rows)
			for r := range rows {
				count := min(cols, i+r-j+1)
				row, other, sum := from[(i+r)*size+j:][:count], block[r*factorBlock:][:count], to[(i+r)*size+j:][:count]
				for c, x := range other {
					sum[c] = row[c]/2 + x/2
				}
			}
		}
	}
}

// mirror copies the lower triangle of a matrix to its upper one.
func mirror[T simd.Float](a []T, size int) {
	for i := 0; i < size; i += factorBlock {
		rows := min(factorBlock, size-i)
		for r := range rows {
			for c := range r {
				a[(i+c)*size+i+r] = a[(i+r)*size+i+c]
			}
		}
		for j := 0; j < i; j += factorBlock {
			simd.Transpose(a[j*size+i:], size, a[i*size+j:], size, rows, factorBlock)
		}
	}
}

func negate[T simd.Float](x []T, n, step int) {
	for i := range n {
		x[i*step] = -x[i*step]
	}
}
