package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// layout is which elements of a table a thread has.
type layout struct {
	// rows and cols are the sizes of a block.
	rows, cols int
	// own is how many rows a thread has a part of, and columns how many elements of
	// a row that long.
	own     int
	columns func(length int) int
	// row and column are a thread's first ones, and rowAt and columnAt tell how far
	// from there its others are.
	row, column     scalar.Expr
	rowAt, columnAt func(i int) int
	// A row as long as a multiple of width is divided evenly.
	width int
	// pairs says that a thread has neighbouring columns by twos, and nothing else.
	pairs bool
	// first holds in one of the threads that share a row.
	first scalar.Expr
	// subgroup is the size of subgroups that the kernel is for, 0 for any.
	subgroup int
}

// fragment is a table that the threads of a workgroup hold in registers: each
// has so many rows and columns.
type fragment struct {
	name          string
	rows, columns int
}

// zeros declares a fragment of a table with rows of a length.
func (a *attender) zeros(prefix string, length int) fragment {
	l := a.layout()
	f := fragment{a.name(prefix), l.own, l.columns(length)}
	f.each(func(i, c int) { a.add(&loop.Var{Name: f.register(i, c), Init: scalar.ConstF(ir.F32, 0)}) })
	return f
}

// total declares a fragment of sums over all blocks.
func (a *attender) total(prefix string, length int) fragment {
	f := a.zeros(prefix, length)
	a.sums = append(a.sums, f)
	return f
}

// each shows a thread's elements.
func (f fragment) each(visit func(i, c int)) {
	for i := range f.rows {
		for c := range f.columns {
			visit(i, c)
		}
	}
}

func (f fragment) register(i, c int) string {
	return f.name + "_" + strconv.Itoa(i*f.columns+c)
}

func (f fragment) at(i, c int) scalar.Expr { return scalar.FreeVar(f.register(i, c), ir.F32) }

// assign changes an element.
func (a *attender) assign(f fragment, i, c int, x scalar.Expr) {
	a.add(&loop.Assign{Name: f.register(i, c), Value: x})
}

// vars declares a variable for each row of a thread.
func (a *attender) vars(prefix string, init scalar.Expr) []string {
	out := make([]string, a.layout().own)
	for i := range out {
		out[i] = a.name(prefix)
		a.add(&loop.Var{Name: out[i], Init: init})
	}
	return out
}

// row is the position of a thread's row i, and column that of its column c.
func (a *attender) row(i int) scalar.Expr {
	return sum(a.rows.first, a.layout().row, loop.Int(a.layout().rowAt(i)))
}

func (a *attender) column(c int) scalar.Expr {
	return sum(a.cols.first, a.layout().column, loop.Int(a.layout().columnAt(c)))
}

// storeSums stores a thread's rows of sums as rows of a result.
func (a *attender) storeSums(t *fusion.Tensor, head ir.Index, length int, value func(i, c int) scalar.Expr) {
	l := a.layout()
	a.when(a.exists, func() {
		col := l.column
		if !l.pairs {
			col = a.let("column", col)
		}
		for i := range l.own {
			_, exists := a.rows.inside(a.row(i))
			a.when(exists, func() {
				root, offset := a.p.Place(t, slices.Concat(head, ir.Index{a.row(i), col}))
				if a.storePairs(root, offset, l.columns(length), func(c int) scalar.Expr { return scalar.Convert(value(i, c), t.DType) }) {
					return
				}
				to := a.let("to", offset)
				for c := range l.columns(length) {
					on := l.columnAt(c)
					_, ok := withinBounds(scalar.Add(col, loop.Int(on)), length, length%l.width == 0)
					store := &loop.Store{Array: root.ID, At: scalar.Add(to, loop.Int(on)), Value: scalar.Convert(value(i, c), t.DType)}
					a.add(guard(ok, []loop.Stmt{store})...)
				}
			})
		}
	})
}

// storePairs stores a thread's elements of a row by twos, where the layout has such and
// they lie so in memory.
func (a *attender) storePairs(root *fusion.Tensor, offset scalar.Expr, columns int, value func(c int) scalar.Expr) bool {
	odd, known := a.Simplify(scalar.Mod(offset, loop.Int(2))).IntConst()
	if !a.layout().pairs || !known || odd != 0 || root.Len()%2 != 0 || a.p.Guards(root) {
		return false
	}
	a.wide[root.ID] = 2
	to := a.let("to", scalar.FloorDiv(offset, loop.Int(2)))
	for c := 0; c < columns; c += 2 {
		at := scalar.Add(to, loop.Int(a.layout().columnAt(c)/2))
		a.add(&loop.StoreVec{Array: root.ID, At: a.Simplify(at), Values: []scalar.Expr{value(c), value(c + 1)}})
	}
	return true
}

// storeRows stores a value of each row, which all threads that share it have.
func (a *attender) storeRows(t *fusion.Tensor, head ir.Index, value func(i int) scalar.Expr) {
	a.when(scalar.And(a.exists, a.layout().first), func() {
		for i := range a.layout().own {
			_, exists := a.rows.inside(a.row(i))
			at := append(slices.Clone(head), a.row(i))
			a.when(exists, func() { a.save(t, at, scalar.Convert(value(i), t.DType)) })
		}
	})
}
