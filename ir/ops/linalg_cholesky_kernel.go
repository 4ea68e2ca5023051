package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxCholesky is the maximum size of a matrix that a workgroup factors: its lower
// triangle is kept in the registers of 256 threads, 36 elements each.
const maxCholesky = 128

// choleskyKernels factors each matrix in one workgroup, column by column. Elements are
// distributed cyclically over the square grid of threads, which balances the load to the
// end. Columns are broadcast through double-buffered workgroup memory, with one barrier
// for each column.
func choleskyKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	size, _ := matrixDims(n.Input(0))
	d := n.Input(0).DType()
	side := 16
	if size <= 32 {
		side = 8
	}
	elements := elementsOf(n.Input(0).Type())
	if elements == 0 || size > maxCholesky {
		return nil
	}
	f := &choleskyWriter{tiles: newTiles("factor", d, side, side, elements/(size*size), 1, caps), size: size, side: side}
	f.x, f.l = f.operand(n, 0), f.result(n, 0)
	f.rows, f.cols = f.spread(f.i, side, size), f.spread(f.j, side, size)
	f.columns = f.shared("columns", d, 2*side*len(f.rows))
	f.load()
	good := f.Var("good", scalar.ConstBool(true))
	for t := range f.rows {
		f.Times("k", min(side, size-t*side), func(k scalar.Expr) { f.eliminate(t, k, good) })
	}
	f.store(good)
	return f.algorithm()
}

// choleskyWriter writes the kernel that factors a matrix of size rows.
type choleskyWriter struct {
	*tiles
	size, side    int
	x, l, columns int             // arrays
	rows, cols    []scalar.Expr   // of the thread's elements
	own           [][]scalar.Expr // the elements of the lower tiles
}

func (f *choleskyWriter) at(row, col scalar.Expr) scalar.Expr {
	return f.place(row, col, f.size, f.size)
}

// load loads the symmetric part, padded with an identity matrix.
func (f *choleskyWriter) load() {
	half := f.number(0.5)
	for i, row := range f.rows {
		var own []scalar.Expr
		for _, col := range f.cols[:i+1] {
			x, mirrored := f.get(f.x, f.at(row, col)), f.get(f.x, f.at(col, row))
			outside := scalar.Select(scalar.Eq(row, col), f.number(1), f.number(0))
			own = append(own, f.Var("own", scalar.Select(inMatrix(row, col, f.size, f.size), scalar.Mul(scalar.Add(x, mirrored), half), outside)))
		}
		f.own = append(f.own, own)
	}
}

// eliminate scales column k of a tile to that of the factor, and subtracts its product
// from all later columns.
func (f *choleskyWriter) eliminate(tile int, k, good scalar.Expr) {
	number := f.Let("number", plus(k, tile*f.side))
	half := f.Let("half", times(scalar.And(k, loop.Int(1)), f.side*len(f.rows)))
	mine := f.Let("mine", scalar.Eq(f.j, k))
	f.When(mine, func() {
		for i := tile; i < len(f.rows); i++ {
			f.Store(f.columns, scalar.Add(half, f.rows[i]), f.own[i][tile])
		}
	})
	f.Barrier()
	column := func(at scalar.Expr) scalar.Expr { return f.get(f.columns, scalar.Add(half, at)) }
	pivot := f.Let("pivot", column(number))
	f.Set(good, scalar.And(good, scalar.Gt(pivot, f.number(0))))
	root := f.Let("root", scalar.Sqrt(pivot))
	inverse := f.Let("inverse", scalar.Div(f.number(1), root))
	below := func(at scalar.Expr) scalar.Expr {
		return f.Let("below", scalar.Select(scalar.Gt(at, number), scalar.Mul(column(at), inverse), f.number(0)))
	}
	down, across := make([]scalar.Expr, len(f.rows)), make([]scalar.Expr, len(f.rows))
	for i := tile; i < len(f.rows); i++ {
		down[i], across[i] = below(f.rows[i]), below(f.cols[i])
	}
	for i := tile; i < len(f.rows); i++ {
		for j := tile; j <= i; j++ {
			f.Set(f.own[i][j], scalar.Sub(f.own[i][j], scalar.Mul(down[i], across[j])))
		}
	}
	f.When(mine, func() {
		for i := tile; i < len(f.rows); i++ {
			diagonal := scalar.Select(scalar.Eq(f.rows[i], number), root, f.own[i][tile])
			f.Set(f.own[i][tile], scalar.Select(scalar.Gt(f.rows[i], number), down[i], diagonal))
		}
	})
}

// store writes the factor, zeros above its diagonal, or NaN throughout.
func (f *choleskyWriter) store(good scalar.Expr) {
	for i, row := range f.rows {
		for j, col := range f.cols {
			value := f.number(0)
			if j <= i {
				value = scalar.Select(scalar.Ge(row, col), f.own[i][j], value)
			}
			f.When(scalar.And(f.exists, inMatrix(row, col, f.size, f.size)), func() {
				f.Store(f.l, f.at(row, col), scalar.Select(good, value, f.number(math.NaN())))
			})
		}
	}
}
