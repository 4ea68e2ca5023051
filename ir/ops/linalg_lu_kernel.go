package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxLURows is the maximum number of rows in a thread of [luKernels].
const maxLURows = 16

// luKernels eliminates the columns of each matrix in one workgroup. Rows stay in their
// registers: a swap exchanges their positions. There are two barriers for each column:
// after the pivot candidates, and after the factors and the pivot row.
func luKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	held := holdMatrix("eliminate", n, maxLURows, caps)
	if held == nil {
		return nil
	}
	f := &luWriter{heldMatrix: held}
	f.x, f.lu, f.pivots, f.permutation = f.w.operand(n, 0), f.w.result(n, 0), f.w.result(n, 1), f.w.result(n, 2)
	f.sizes, f.places = f.w.shared("sizes", bitsOf(f.w.d), f.w.down), f.w.shared("places", ir.I32, f.w.down)
	f.column, f.row = f.w.shared("column", f.w.d, f.w.down*len(f.ownRows)), f.w.shared("row", f.w.d, f.w.across*len(f.ownCols))
	f.load()
	f.eachStep(f.eliminate)
	f.store()
	return f.w.algorithm()
}

// luWriter writes the kernel that factors a matrix of rows × cols elements.
type luWriter struct {
	*heldMatrix
	x, lu, pivots, permutation int // arrays
	// sizes and places hold the best pivot candidate of each row of the thread grid,
	// column the factors of a step, row the pivot row.
	sizes, places, column, row int
	at                         []scalar.Expr // the current positions of the rows, -1 for padding
}

func (f *luWriter) load() {
	for _, row := range f.ownRows {
		f.at = append(f.at, f.w.Var("at", scalar.Select(scalar.Lt(row, loop.Int(f.rows)), row, loop.Int(-1))))
		var own []scalar.Expr
		for _, col := range f.ownCols {
			own = append(own, f.w.Var("own", f.w.get(f.x, f.w.place(row, col, f.rows, f.cols))))
		}
		f.own = append(f.own, own)
	}
}

// best returns the size and place of the first of the largest candidates. A size is the
// bits of an absolute value, whose order as integers is that of the values, with NaN as
// the largest, so that it propagates. A place is twice the row, plus 1 for a negative
// value.
func (f *luWriter) best(n int, size, place func(i int) scalar.Expr) (bestSize, bestPlace scalar.Expr) {
	bestSize = f.w.combined(n, size, scalar.Max)
	return bestSize, f.w.combined(n, func(i int) scalar.Expr {
		return scalar.Select(scalar.Eq(size(i), bestSize), place(i), loop.Int(2*f.rows))
	}, scalar.Min)
}

// bitsOf returns the integer type of the width of a float type.
func bitsOf(d ir.DType) ir.DType {
	if d == ir.F64 {
		return ir.I64
	}
	return ir.I32
}

// eliminate subtracts multiples of the pivot row of column k of a tile from the rows that
// have not been pivots.
func (f *luWriter) eliminate(tile int, k scalar.Expr) {
	step := f.w.Let("step", plus(k, tile*f.w.across))
	mine := f.w.Let("mine", scalar.Eq(f.w.j, k))
	bits := bitsOf(f.w.d)
	f.w.When(mine, func() {
		sizes, places := make([]scalar.Expr, len(f.at)), make([]scalar.Expr, len(f.at))
		for r, at := range f.at {
			size := scalar.Bitcast(scalar.Abs(f.own[r][tile]), bits)
			sizes[r] = f.w.Let("size", scalar.Select(scalar.Ge(at, step), size, scalar.ConstI(bits, -1)))
			places[r] = scalar.Add(times(at, 2), scalar.Convert(scalar.Lt(f.own[r][tile], f.w.number(0)), ir.I32))
		}
		size, place := f.best(len(sizes), func(i int) scalar.Expr { return sizes[i] }, func(i int) scalar.Expr { return places[i] })
		f.w.Store(f.sizes, f.w.i, size)
		f.w.Store(f.places, f.w.i, place)
	})
	f.w.Barrier()
	sizes := make([]scalar.Expr, f.w.down)
	for g := range sizes {
		sizes[g] = f.w.Let("size", scalar.LoadAt(f.sizes, bits, loop.Int(g)))
	}
	size, place := f.best(f.w.down, func(g int) scalar.Expr { return sizes[g] }, func(g int) scalar.Expr { return scalar.LoadAt(f.places, ir.I32, loop.Int(g)) })
	best := f.w.Let("best", over(place, 2))
	pivot := scalar.Bitcast(size, f.w.d)
	pivot = f.w.Let("pivot", scalar.Select(scalar.Eq(rest(place, 2), loop.Int(1)), scalar.Neg(pivot), pivot))
	live := make([]scalar.Expr, len(f.at))
	for r, at := range f.at {
		f.w.Set(at, scalar.Select(scalar.Eq(at, step), best, scalar.Select(scalar.Eq(at, best), step, at)))
		live[r] = f.w.Let("live", scalar.Gt(at, step))
	}
	f.share(tile, step, pivot, mine, live)
	f.w.When(scalar.And(f.w.exists, scalar.And(mine, scalar.Eq(f.w.i, loop.Int(0)))), func() {
		f.w.Store(f.pivots, scalar.Add(times(f.w.matrix, min(f.rows, f.cols)), step), best)
	})
	f.w.Barrier()
	factors := make([]scalar.Expr, len(f.at))
	for r, row := range f.ownRows {
		factors[r] = f.w.Let("factor", f.w.get(f.column, row))
	}
	for c := tile; c < len(f.ownCols); c++ {
		above := f.w.Let("above", f.w.get(f.row, f.ownCols[c]))
		for r := range f.own {
			changes := live[r]
			if c == tile {
				changes = scalar.And(changes, scalar.Gt(f.ownCols[c], step))
			}
			f.w.Set(f.own[r][c], scalar.Select(changes, scalar.Sub(f.own[r][c], scalar.Mul(factors[r], above)), f.own[r][c]))
		}
	}
}

// share divides the elements below the pivot by it, and writes these factors and the pivot
// row to workgroup memory.
func (f *luWriter) share(tile int, step, pivot, mine scalar.Expr, live []scalar.Expr) {
	zero := f.w.number(0)
	f.w.When(mine, func() {
		by := f.w.Let("by", scalar.Select(scalar.Eq(pivot, zero), f.w.number(1), pivot))
		for r, row := range f.ownRows {
			f.w.Set(f.own[r][tile], scalar.Select(live[r], scalar.Div(f.own[r][tile], by), f.own[r][tile]))
			f.w.Store(f.column, row, f.own[r][tile])
		}
	})
	for r, at := range f.at {
		f.w.When(scalar.Eq(at, step), func() {
			for c := tile; c < len(f.ownCols); c++ {
				f.w.Store(f.row, f.ownCols[c], f.own[r][c])
			}
		})
	}
}

// store writes each row to its final position.
func (f *luWriter) store() {
	for r, at := range f.at {
		there := f.w.Let("there", scalar.And(f.w.exists, scalar.Ge(at, loop.Int(0))))
		near := f.w.Let("near", scalar.Max(at, loop.Int(0)))
		f.w.When(scalar.And(there, scalar.Eq(f.w.j, loop.Int(0))), func() {
			f.w.Store(f.permutation, scalar.Add(times(f.w.matrix, f.rows), near), f.ownRows[r])
		})
		for c, col := range f.ownCols {
			f.w.When(scalar.And(there, scalar.Lt(col, loop.Int(f.cols))), func() {
				f.w.Store(f.lu, f.w.place(near, col, f.rows, f.cols), f.own[r][c])
			})
		}
	}
}
