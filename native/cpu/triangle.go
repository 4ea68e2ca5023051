package cpu

import (
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// triangle is a triangular matrix to solve with.
type triangle[T simd.Float] struct {
	simd.Matrix[T]
	size        int
	lower, unit bool
}

// part returns the triangle of count rows from one on.
func (a triangle[T]) part(from, count int) triangle[T] {
	a.Matrix, a.size = a.From(from, from), count
	return a
}

// solve replaces x, of size rows of n elements which are row apart, by the solution of a·y = x, by halves: the
// rows of one are solved, multiplied and subtracted from those of the other.
func (w *workspace[T]) solve(a triangle[T], x []T, row, n int) {
	switch {
	case a.size*a.size*n <= tinySolution:
		a.solveTiny(x, row, n)
		return
	case a.size <= factorBlock:
		w.solveBlock(a, x, row, n)
		return
	}
	half, next := halfOf(a.size), w.next
	rest := a.size - half
	top, bottom := simd.Matrix[T]{Data: x, Row: row, Col: 1}, simd.Matrix[T]{Data: x[half*row:], Row: row, Col: 1}
	if a.lower {
		w.solve(a.part(0, half), x, row, n)
		w.subtract(simd.Size{M: rest, N: n, K: half}, a.From(half, 0), top, bottom.Data, row, w.take(rest*max(n, half)))
		w.next = next
		w.solve(a.part(half, rest), bottom.Data, row, n)
		return
	}
	w.solve(a.part(half, rest), bottom.Data, row, n)
	w.subtract(simd.Size{M: half, N: n, K: rest}, a.From(0, half), bottom, x, row, w.take(half*max(n, rest)))
	w.next = next
	w.solve(a.part(0, half), x, row, n)
}

// solveBlock is [workspace.solve] for a triangle of few rows, by panels of columns.
func (w *workspace[T]) solveBlock(a triangle[T], x []T, row, n int) {
	size := a.size
	w.packed, w.panel = grown(w.packed, size*size), grown(w.panel, size*simd.PanelWidth[T](n))
	if !a.pack(w.packed) {
		a.solveTiny(x, row, n)
		return
	}
	for j := 0; j < n; {
		width := simd.PanelWidth[T](n - j)
		count := min(width, n-j)
		if count < width {
			clear(w.panel[:size*width])
		}
		for i := range size {
			copy(w.panel[i*width:][:count], x[a.order(i)*row+j:])
		}
		simd.Substitute(size, w.packed, w.panel, width)
		for i := range size {
			copy(x[a.order(i)*row+j:][:count], w.panel[i*width:])
		}
		j += count
	}
}

// grown returns a slice of n numbers, x where it has room.
func grown[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}

// order returns the row that is solved after i others.
func (a *triangle[T]) order(i int) int {
	if a.lower {
		return i
	}
	return a.size - 1 - i
}

// pack stores the triangle for [simd.Substitute]; it returns false where the inverse of an element on the
// diagonal is not finite.
func (a *triangle[T]) pack(to []T) bool {
	step := a.Col
	if !a.lower {
		step = -step
	}
	for i := range a.size {
		at, row := a.order(i)*a.Row+a.order(0)*a.Col, to[i*a.size:][:i+1]
		for l := range row[:i] {
			row[l] = -a.Data[at]
			at += step
		}
		row[i] = 1
		if !a.unit {
			row[i] = 1 / a.Data[at]
			if row[i]-row[i] != 0 {
				return false
			}
		}
	}
	return true
}

// tinySolution is the number of multiplications up to which systems are solved without kernels.
const tinySolution = 1 << 8

// solveTiny is [workspace.solve] row by row.
func (a *triangle[T]) solveTiny(x []T, xRow, n int) {
	data, by, step := a.Data, a.Row, a.Col
	for done := range a.size {
		i, first := done, 0
		if !a.lower {
			i, first = a.size-1-done, a.size-done
		}
		row := x[i*xRow:][:n]
		for l := first; l < first+done; l++ {
			f := data[i*by+l*step]
			for j, y := range x[l*xRow:][:len(row)] {
				row[j] -= f * y
			}
		}
		if !a.unit {
			quotients(row, data[i*(by+step)])
		}
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
		w.solve(a, out[0], cols, cols)
		return
	}
	transposed := w.take(rows * cols)
	simd.Transpose(transposed, rows, in[1], cols, rows, cols)
	w.solve(a, transposed, rows, rows)
	simd.Transpose(out[0], cols, transposed, rows, cols, rows)
}
