package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// triangularKernels solves for some columns of a matrix in one workgroup by forward
// substitution, one tile of rows after the other. An upper or transposed triangle, or one on the
// right, is a lower one on the left with other strides. One thread for each column solves for the
// rows of a tile in its registers, then all threads subtract their products from the rows below:
// three barriers for each tile.
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
		f.solve(tile)
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
	diagonal, factors, solved int // of workgroup memory; the last two hold a tile's columns and rows
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
	col = scalar.Add(times(f.part, f.width), col)
	if !f.left {
		return f.place(col, f.line(row), f.columns, f.size)
	}
	return f.place(f.line(row), col, f.size, f.columns)
}

// holds reports whether a row and the thread's column c are in x.
func (f *triangularWriter) holds(row scalar.Expr, c int) scalar.Expr {
	col := f.cols[c]
	mine := scalar.And(scalar.Lt(col, loop.Int(f.width)), scalar.Lt(scalar.Add(times(f.part, f.width), col), loop.Int(f.columns)))
	return scalar.And(f.exists, scalar.And(mine, scalar.Lt(row, loop.Int(f.size))))
}

func (f *triangularWriter) load() {
	f.rows, f.cols = f.spread(f.i, f.side, f.size), f.spread(f.j, f.side, f.width)
	f.diagonal = f.shared("diagonal", f.d, f.size)
	f.factors, f.solved = f.shared("factors", f.d, f.side*f.side*len(f.rows)), f.shared("solved", f.d, f.side*f.side*len(f.cols))
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
}

// factor is an element of the triangle in a tile's column k.
func (f *triangularWriter) factor(row, k scalar.Expr) scalar.Expr {
	return f.get(f.factors, scalar.Add(times(k, f.side*len(f.rows)), row))
}

// solvedAt is the offset of an element of x in a tile's row k.
func (f *triangularWriter) solvedAt(k, col scalar.Expr) scalar.Expr {
	return scalar.Add(times(k, f.side*len(f.cols)), col)
}

// solve finishes the rows of a tile and updates those below.
func (f *triangularWriter) solve(tile int) {
	count := min(f.side, f.size-tile*f.side)
	for r := tile; r < len(f.rows); r++ {
		f.Store(f.factors, scalar.Add(times(f.j, f.side*len(f.rows)), f.rows[r]), f.triangle[r][tile])
	}
	for c, col := range f.cols {
		f.Store(f.solved, f.solvedAt(f.i, col), f.own[tile][c])
	}
	f.Barrier()
	f.substitute(tile, count)
	f.Barrier()
	for c, col := range f.cols {
		f.Set(f.own[tile][c], f.get(f.solved, f.solvedAt(f.i, col)))
	}
	if tile == len(f.rows)-1 {
		return
	}
	f.Times("k", count, func(k scalar.Expr) {
		row := make([]scalar.Expr, len(f.cols))
		for c, col := range f.cols {
			row[c] = f.Let("x", f.get(f.solved, f.solvedAt(k, col)))
		}
		for r := tile + 1; r < len(f.rows); r++ {
			factor := f.Let("factor", f.factor(f.rows[r], k))
			for c := range f.cols {
				f.Set(f.own[r][c], scalar.Sub(f.own[r][c], scalar.Mul(factor, row[c])))
			}
		}
	})
	f.Barrier()
}

// substitute solves for the count rows of a tile, a column in each of the first threads.
func (f *triangularWriter) substitute(tile, count int) {
	thread := f.Let("thread", scalar.Add(times(f.i, f.across), f.j))
	f.When(scalar.Lt(thread, loop.Int(f.width)), func() {
		col := scalar.Min(thread, loop.Int(f.width-1))
		x := make([]scalar.Expr, count)
		for k := range x {
			x[k] = f.Let("x", f.get(f.solved, f.solvedAt(loop.Int(k), col)))
		}
		for k := range x {
			if !f.unit {
				x[k] = f.Let("x", scalar.Div(x[k], f.get(f.diagonal, loop.Int(tile*f.side+k))))
			}
			f.Store(f.solved, f.solvedAt(loop.Int(k), col), x[k])
			for r := k + 1; r < count; r++ {
				x[r] = f.Let("x", scalar.Sub(x[r], scalar.Mul(f.factor(loop.Int(tile*f.side+r), loop.Int(k)), x[k])))
			}
		}
	})
}
