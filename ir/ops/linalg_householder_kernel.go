package ops

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// householderKernels reflects the columns of each matrix in one workgroup, with two
// barriers for each column: after broadcasting the column and its squared norm, and after
// the dot products with the other columns.
func householderKernels(n *ir.Node, caps loop.Caps) *ir.Algorithm {
	held := holdMatrix("reflect", n, 32, caps)
	if held == nil {
		return nil
	}
	f := &householderWriter{heldMatrix: held}
	x, packed := f.operand(n, 0), f.result(n, 0)
	f.tau = f.result(n, 1)
	f.squares, f.column = f.shared("squares", f.d, f.down), f.shared("column", f.d, f.down*len(f.ownRows))
	f.products = f.shared("products", f.d, f.down*f.across*len(f.ownCols))
	for _, row := range f.ownRows {
		var own []scalar.Expr
		for _, col := range f.ownCols {
			near := f.get(x, f.place(row, col, f.rows, f.cols))
			own = append(own, f.Var("own", scalar.Select(inMatrix(row, col, f.rows, f.cols), near, f.number(0))))
		}
		f.own = append(f.own, own)
	}
	f.eachStep(f.reflect)
	for r, row := range f.ownRows {
		for c, col := range f.ownCols {
			f.When(scalar.And(f.exists, inMatrix(row, col, f.rows, f.cols)), func() { f.Store(packed, f.place(row, col, f.rows, f.cols), f.own[r][c]) })
		}
	}
	return f.algorithm()
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
	return f.combined(f.down, func(g int) scalar.Expr { return f.get(array, scalar.Add(first, loop.Int(g*stride))) }, scalar.Add)
}

// reflect applies the reflection of column k of a tile to it and the later columns, so
// that it is 0 below the diagonal, and keeps the vector there.
func (f *householderWriter) reflect(tile int, k scalar.Expr) {
	step := f.Let("step", scalar.Add(k, loop.Int(tile*f.across)))
	mine := f.Let("mine", scalar.Eq(f.j, k))
	zero, one := f.number(0), f.number(1)
	f.When(mine, func() {
		sum := f.Var("squares", zero)
		for r, row := range f.ownRows {
			x := f.own[r][tile]
			f.Store(f.column, row, x)
			f.Set(sum, scalar.Add(sum, scalar.Select(scalar.Gt(row, step), scalar.Mul(x, x), zero)))
		}
		f.Store(f.squares, f.i, sum)
	})
	f.Barrier()
	rest := f.sum(f.squares, loop.Int(0), 1)
	head := f.Let("head", f.get(f.column, step))
	turns := f.Let("turns", scalar.Not(scalar.Le(rest, f.number(tiny(f.d)))))
	size := f.Let("size", scalar.Sqrt(scalar.Add(scalar.Mul(head, head), rest)))
	end := f.Let("end", scalar.Select(turns, scalar.Select(scalar.Lt(head, zero), size, scalar.Neg(size)), head))
	tau := f.Let("tau", scalar.Select(turns, scalar.Div(scalar.Sub(end, head), scalar.Select(turns, end, one)), zero))
	by := f.Let("by", scalar.Div(one, scalar.Select(turns, scalar.Sub(head, end), one)))
	v := make([]scalar.Expr, len(f.ownRows))
	for r, row := range f.ownRows {
		below := f.Let("below", scalar.And(turns, scalar.Gt(row, step)))
		on := scalar.Select(scalar.Eq(row, step), one, zero)
		v[r] = f.Let("v", scalar.Select(below, scalar.Mul(f.get(f.column, row), by), on))
	}
	f.turn(tile, step, tau, v)
	f.When(mine, func() {
		for r, row := range f.ownRows {
			below := scalar.Select(scalar.Gt(row, step), v[r], f.own[r][tile])
			f.Set(f.own[r][tile], scalar.Select(scalar.Eq(row, step), end, below))
		}
		f.When(scalar.And(f.exists, scalar.Eq(f.i, loop.Int(0))), func() {
			f.Store(f.tau, scalar.Add(scalar.Mul(f.matrix, loop.Int(min(f.rows, f.cols))), step), tau)
		})
	})
}

// turn subtracts τ·v·vᵀ times the later columns from them.
func (f *householderWriter) turn(tile int, step, tau scalar.Expr, v []scalar.Expr) {
	stride := f.across * len(f.ownCols)
	for c := tile; c < len(f.ownCols); c++ {
		sum := f.combined(len(v), func(r int) scalar.Expr { return scalar.Mul(v[r], f.own[r][c]) }, scalar.Add)
		f.Store(f.products, scalar.Add(scalar.Mul(f.i, loop.Int(stride)), f.ownCols[c]), sum)
	}
	f.Barrier()
	for c := tile; c < len(f.ownCols); c++ {
		along := f.Let("along", scalar.Mul(tau, f.sum(f.products, f.ownCols[c], stride)))
		if c == tile { // finished columns are unchanged
			along = f.Let("along", scalar.Select(scalar.Gt(f.ownCols[c], step), along, f.number(0)))
		}
		for r := range f.ownRows {
			f.Set(f.own[r][c], scalar.Sub(f.own[r][c], scalar.Mul(along, v[r])))
		}
	}
}
