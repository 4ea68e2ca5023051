package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// triangularKernels solves for some columns of a matrix in one workgroup by forward
// substitution, row by row. An upper or transposed triangle, or one on the right, is a
// lower one on the left with other strides. Each step broadcasts through double-buffered
// workgroup memory, with one barrier for each row.
func triangularKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	a := *n.Attrs().(*TriangularAttrs)
	size, _ := matrixDims(n.Input(0))
	count := elementsOf(n.Types()[0])
	if count == 0 || size > matrixBlock {
		return nil
	}
	side := 16
	if size <= 32 {
		side = 8
	}
	f := &triangularWriter{size: size, side: side, left: a.LeftSide, unit: a.UnitDiagonal, flipped: a.TransposeA == a.LeftSide, back: a.Lower == (a.TransposeA == a.LeftSide)}
	matrices := elementsOf(n.Input(0).Type()) / (size * size)
	f.columns = count / matrices / size
	f.width = min(f.columns, matrixBlock)
	f.tiles = newTiles("substitute", n.Input(0).DType(), side, side, matrices, (f.columns+f.width-1)/f.width, caps)
	f.a, f.y, f.x = f.operand(n, 0), f.operand(n, 1), f.result(n, 0)
	f.load()
	for tile := range f.rows {
		f.Times("k", min(side, size-tile*side), func(k scalar.Expr) { f.step(tile, k) })
	}
	for r, row := range f.rows {
		for c, col := range f.cols {
			f.When(f.holds(row, c), func() { f.Store(f.x, f.at(row, col), f.own[r][c]) })
		}
	}
	return f.algorithm()
}

// triangularWriter writes the kernel for triangles of size rows.
type triangularWriter struct {
	*tiles
	size, side int
	left, unit bool
	// flipped reads the triangle transposed, back counts rows from the last one.
	flipped, back bool
	// columns is the number of columns of x, width the maximum in a workgroup.
	columns, width            int
	a, y, x                   int // arrays
	diagonal, factors, solved int // of workgroup memory
	rows, cols                []scalar.Expr
	triangle, own             [][]scalar.Expr // elements below the diagonal, and of x
}

// line returns the row in memory of a row of the lower triangle.
func (f *triangularWriter) line(row scalar.Expr) scalar.Expr {
	row = scalar.Min(row, loop.Int(f.size-1))
	if f.back {
		return scalar.Sub(loop.Int(f.size-1), row)
	}
	return row
}

// at returns the offset of an element of x; columns are those of the workgroup.
func (f *triangularWriter) at(row, col scalar.Expr) scalar.Expr {
	col = scalar.Add(scalar.Mul(f.part, loop.Int(f.width)), col)
	if !f.left {
		return f.place(col, f.line(row), f.columns, f.size)
	}
	return f.place(f.line(row), col, f.size, f.columns)
}

// holds reports whether a row and the thread's column c are in x.
func (f *triangularWriter) holds(row scalar.Expr, c int) scalar.Expr {
	col := f.cols[c]
	mine := scalar.And(scalar.Lt(col, loop.Int(f.width)), scalar.Lt(scalar.Add(scalar.Mul(f.part, loop.Int(f.width)), col), loop.Int(f.columns)))
	return scalar.And(f.exists, scalar.And(mine, scalar.Lt(row, loop.Int(f.size))))
}

func (f *triangularWriter) load() {
	f.rows, f.cols = f.spread(f.i, f.side, f.size), f.spread(f.j, f.side, f.width)
	f.diagonal = f.shared("diagonal", f.d, f.size)
	f.factors, f.solved = f.shared("factors", f.d, 2*f.side*len(f.rows)), f.shared("solved", f.d, 2*f.side*len(f.cols))
	columns := f.spread(f.j, f.side, f.size)
	for r, row := range f.rows {
		var triangle, own []scalar.Expr
		for _, col := range columns[:r+1] {
			x, y := f.line(row), f.line(col)
			if f.flipped {
				x, y = y, x
			}
			element := f.Let("element", f.get(f.a, f.place(x, y, f.size, f.size)))
			below := scalar.And(scalar.Gt(row, col), scalar.Lt(row, loop.Int(f.size)))
			triangle = append(triangle, f.Let("below", scalar.Select(below, element, f.number(0))))
			if len(triangle) == r+1 && !f.unit {
				f.When(scalar.And(scalar.Eq(row, col), scalar.Lt(row, loop.Int(f.size))), func() { f.Store(f.diagonal, row, element) })
			}
		}
		for _, col := range f.cols {
			own = append(own, f.Var("own", f.get(f.y, f.at(row, col))))
		}
		f.triangle, f.own = append(f.triangle, triangle), append(f.own, own)
	}
	if !f.unit {
		f.Barrier()
	}
}

// step finishes row k of a tile and updates the rows below.
func (f *triangularWriter) step(tile int, k scalar.Expr) {
	half := scalar.And(k, loop.Int(1))
	solved := f.Let("solved", scalar.Mul(half, loop.Int(f.side*len(f.cols))))
	factors := f.Let("factors", scalar.Mul(half, loop.Int(f.side*len(f.rows))))
	f.When(scalar.Eq(f.j, k), func() {
		for r := tile; r < len(f.rows); r++ {
			f.Store(f.factors, scalar.Add(factors, f.rows[r]), f.triangle[r][tile])
		}
	})
	f.When(scalar.Eq(f.i, k), func() {
		for c, col := range f.cols {
			if !f.unit {
				f.Set(f.own[tile][c], scalar.Div(f.own[tile][c], f.get(f.diagonal, scalar.Min(f.rows[tile], loop.Int(f.size-1)))))
			}
			f.Store(f.solved, scalar.Add(solved, col), f.own[tile][c])
		}
	})
	f.Barrier()
	below := f.Let("below", scalar.Gt(f.i, k)) // in this tile
	row := make([]scalar.Expr, len(f.cols))
	for c, col := range f.cols {
		row[c] = f.Let("x", f.get(f.solved, scalar.Add(solved, col)))
	}
	for r := tile; r < len(f.rows); r++ {
		factor := f.Let("factor", f.get(f.factors, scalar.Add(factors, f.rows[r])))
		for c := range f.cols {
			rest := scalar.Sub(f.own[r][c], scalar.Mul(factor, row[c]))
			if r == tile {
				rest = scalar.Select(below, rest, f.own[r][c])
			}
			f.Set(f.own[r][c], rest)
		}
	}
}
