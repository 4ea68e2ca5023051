package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attention is a node of attention, forward or backward, that gets kernels which
// keep no scores in memory.
type attention struct {
	ir.Attend
	p    *fusion.Partition
	caps loop.Caps
	m    *fusion.Member
	// prefix begins the names of the kernels.
	prefix string
	// mma says that the kernels compute with multiply-adds of warp groups.
	mma bool
	// staged are operands that were written to memory of their own, by number.
	staged map[int]*fusion.Tensor
	// turned are their copies with rows and columns exchanged, by number.
	turned map[int]*fusion.Tensor
	// stats holds the two numbers of each query that its cotangents depend on,
	// in one tensor, since the kernels have hardly enough bindings.
	stats *fusion.Tensor
}

func scheduleAttend(e *emitter, g *fusion.Group) []Launch {
	m := g.Members[0]
	n := &attention{
		Attend: m.Node.Def().Lower.(*ir.AttendLowering).Spec(m.Node),
		p:      e.p, caps: e.caps, m: m, prefix: g.Name(), staged: map[int]*fusion.Tensor{}, turned: map[int]*fusion.Tensor{},
	}
	n.mma = withMma && attendsByMma(n.Attend, m.Node.Input(0).DType(), e.caps)
	var launches []Launch
	if withMma && n.mma {
		launches = n.stage()
	}
	if n.Backward {
		return append(launches, n.backward()...)
	}
	return append(launches, n.forward())
}

// attendKind is what a kernel of attention computes.
type attendKind uint8

const (
	attendForward attendKind = iota
	attendQueries            // the cotangents of the queries
	attendKeys               // those of keys and values
	attendMask               // that of a mask which is added
)

// attender writes a kernel of attention: a workgroup has a block of rows, queries
// or keys, and goes through blocks of columns, keys or queries. How its threads
// hold scores and sums, and multiply, is up to its fragments.
type attender struct {
	writer
	*attention
	fragments
	kind       attendKind
	read       ir.Load
	exists     scalar.Expr // false in workgroups that must store nothing
	rows, cols attendSide
	byQuery    bool     // the rows are queries
	queryHead  ir.Index // which head of the queries, and of the keys
	keyHead    ir.Index
	// sums are the tables that blocks are added to.
	sums []fragment
	// whole says that all scores of the block of columns at hand are seen, as far
	// as this is a matter of positions.
	whole bool
}

// fragments is how the threads of a workgroup hold tables, which are scores or
// sums, and multiply: in tiles of plain registers, with or without the help of
// subgroups, or in those of multiply-adds.
type fragments interface {
	// layout says which elements of a table a thread has.
	layout() *layout
	// begin defines what the thread is, at the start of a kernel.
	begin()
	// product makes the products of the rows of two operands of scores that are zeros.
	// They are there after ready.
	product(scores fragment, rows, cols matrix) (ready func())
	// accumulate adds to sums the products of a table of weights and the rows of an
	// operand that belong to its columns: those that the weights are now, and no later
	// than begin.
	accumulate(sums, weights fragment, m matrix) (begin func())
	// fold combines a value for each row over the threads that share the row, into
	// variables that hold what they start from.
	fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr)
	// blocks runs a body for blocks of columns from lo on and before hi. Those from
	// whole[0] on and before whole[1] are seen by all rows.
	blocks(lo, hi scalar.Expr, whole [2]scalar.Expr, body func())
	// columnStat returns a number that stats has of the query of a column.
	columnStat(c, which int) scalar.Expr
}

// matrix is an operand with rows of some length.
type matrix struct{ operand, length int }

func (n *attention) q() matrix    { return matrix{0, n.Depth} }
func (n *attention) k() matrix    { return matrix{1, n.Depth} }
func (n *attention) v() matrix    { return matrix{2, n.Width} }
func (n *attention) dout() matrix { return matrix{5, n.Width} }

// attender starts a kernel.
func (n *attention) attender(kind attendKind) *attender {
	a := &attender{writer: writer{emitter: newEmitter(n.p, n.caps)}, attention: n, kind: kind, byQuery: kind != attendKeys}
	a.read = a.reader().Operand(n.m.Node)
	switch {
	case withMma && n.mma && kind != attendMask:
		a.fragments = newAttendMma(a)
	case withMma && attendsBySubgroup(kind, n.caps):
		a.fragments = newAttendSubgroup(a)
	default:
		a.fragments = newAttendPlain(a)
	}
	l := a.layout()
	a.rows = attendSide{count: a.Queries, block: l.rows}
	a.cols = attendSide{count: a.Keys, block: l.cols}
	if !a.byQuery {
		a.rows.count, a.cols.count = a.Keys, a.Queries
	}
	return a
}

// workgroups lays out so many workgroups and returns the number of the one that a
// thread is in.
func (a *attender) workgroups(n int) (workgroup scalar.Expr) {
	workgroup, a.exists = a.boundedGroup(n)
	a.begin()
	return a.let("group", workgroup)
}

// launch makes the kernel of what was written.
func (a *attender) launch(name string) Launch {
	l := a.writer.launch(name)
	if size := a.layout().subgroup; size > 0 {
		l.Kernel.Subgroup = [2]int{size, size}
	}
	return l
}

// columns is how many elements of a row of the scores a thread has.
func (a *attender) columns() int { return a.layout().columns(a.cols.block) }

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
