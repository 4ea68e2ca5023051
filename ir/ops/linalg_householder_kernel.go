package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxHouseholderRows is the maximum number of rows in a thread of [householderKernels].
const maxHouseholderRows = 32

// householderKernels reflects the columns of each matrix in one workgroup, with two
// barriers for each column: after broadcasting the column and its squared norm, and after
// the dot products with the other columns.
func householderKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	held := holdMatrix("reflect", n, maxHouseholderRows, caps)
	if held == nil {
		return nil
	}
	f := &householderWriter{heldMatrix: held}
	x, packed := f.w.operand(n, 0), f.w.result(n, 0)
	f.tau = f.w.result(n, 1)
	f.squares, f.column = f.w.shared("squares", f.w.d, f.w.down), f.w.shared("column", f.w.d, f.w.down*len(f.ownRows))
	f.products = f.w.shared("products", f.w.d, f.w.down*f.w.across*len(f.ownCols))
	for _, row := range f.ownRows {
		var own []scalar.Expr
		for _, col := range f.ownCols {
			near := f.w.get(x, f.w.place(row, col, f.rows, f.cols))
			own = append(own, f.w.Var("own", scalar.Select(inMatrix(row, col, f.rows, f.cols), near, f.w.number(0))))
		}
		f.own = append(f.own, own)
	}
	f.eachStep(f.reflect)
	for r, row := range f.ownRows {
		for c, col := range f.ownCols {
			f.w.When(scalar.And(f.w.exists, inMatrix(row, col, f.rows, f.cols)), func() { f.w.Store(packed, f.w.place(row, col, f.rows, f.cols), f.own[r][c]) })
		}
	}
	return f.w.algorithm()
}

// householderWriter writes the kernel for matrices of rows × cols elements.
type householderWriter struct {
	*heldMatrix
	tau int
	// squares are the partial squared norms of a column, products its partial dot products
	// with the others, one for each row of the thread grid.
	squares, column, products int
}

// sum adds the partial sums of the rows of the thread grid in workgroup memory.
func (f *householderWriter) sum(array int, first scalar.Expr, stride int) scalar.Expr {
	return f.w.combined(f.w.down, func(g int) scalar.Expr { return f.w.get(array, plus(first, g*stride)) }, scalar.Add)
}

// reflect applies the reflection of column k of a tile to it and the later columns, so
// that it is 0 below the diagonal, and keeps the vector there.
func (f *householderWriter) reflect(tile int, k scalar.Expr) {
	step := f.w.Let("step", plus(k, tile*f.w.across))
	mine := f.w.Let("mine", scalar.Eq(f.w.j, k))
	zero, one := f.w.number(0), f.w.number(1)
	f.w.When(mine, func() {
		sum := f.w.Var("squares", zero)
		for r, row := range f.ownRows {
			x := f.own[r][tile]
			f.w.Store(f.column, row, x)
			f.w.Set(sum, scalar.Add(sum, scalar.Select(scalar.Gt(row, step), scalar.Mul(x, x), zero)))
		}
		f.w.Store(f.squares, f.w.i, sum)
	})
	f.w.Barrier()
	rest := f.sum(f.squares, loop.Int(0), 1)
	head := f.w.Let("head", f.w.get(f.column, step))
	reflects := f.w.Let("reflects", scalar.Not(scalar.Le(rest, f.w.number(tiny(f.w.d)))))
	size := f.w.Let("size", scalar.Sqrt(scalar.Add(scalar.Mul(head, head), rest)))
	end := f.w.Let("end", scalar.Select(reflects, scalar.Select(scalar.Lt(head, zero), size, scalar.Neg(size)), head))
	tau := f.w.Let("tau", scalar.Select(reflects, scalar.Div(scalar.Sub(end, head), scalar.Select(reflects, end, one)), zero))
	by := f.w.Let("by", scalar.Div(one, scalar.Select(reflects, scalar.Sub(head, end), one)))
	v := make([]scalar.Expr, len(f.ownRows))
	for r, row := range f.ownRows {
		below := f.w.Let("below", scalar.And(reflects, scalar.Gt(row, step)))
		on := scalar.Select(scalar.Eq(row, step), one, zero)
		v[r] = f.w.Let("v", scalar.Select(below, scalar.Mul(f.w.get(f.column, row), by), on))
	}
	f.updateTrailing(tile, step, tau, v)
	f.w.When(mine, func() {
		for r, row := range f.ownRows {
			below := scalar.Select(scalar.Gt(row, step), v[r], f.own[r][tile])
			f.w.Set(f.own[r][tile], scalar.Select(scalar.Eq(row, step), end, below))
		}
		f.w.When(scalar.And(f.w.exists, scalar.Eq(f.w.i, loop.Int(0))), func() {
			f.w.Store(f.tau, scalar.Add(times(f.w.matrix, min(f.rows, f.cols)), step), tau)
		})
	})
}

// updateTrailing subtracts τ·v·vᵀ times the later columns from them.
func (f *householderWriter) updateTrailing(tile int, step, tau scalar.Expr, v []scalar.Expr) {
	stride := f.w.across * len(f.ownCols)
	for c := tile; c < len(f.ownCols); c++ {
		sum := f.w.combined(len(v), func(r int) scalar.Expr { return scalar.Mul(v[r], f.own[r][c]) }, scalar.Add)
		f.w.Store(f.products, scalar.Add(times(f.w.i, stride), f.ownCols[c]), sum)
	}
	f.w.Barrier()
	for c := tile; c < len(f.ownCols); c++ {
		along := f.w.Let("along", scalar.Mul(tau, f.sum(f.products, f.ownCols[c], stride)))
		if c == tile { // finished columns are unchanged
			along = f.w.Let("along", scalar.Select(scalar.Gt(f.ownCols[c], step), along, f.w.number(0)))
		}
		for r := range f.ownRows {
			f.w.Set(f.own[r][c], scalar.Sub(f.own[r][c], scalar.Mul(along, v[r])))
		}
	}
}
