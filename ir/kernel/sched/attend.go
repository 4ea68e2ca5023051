package sched

import (
	"math"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attention is a node of attention, forward or backward, that gets kernels which
// keep no scores in memory.
type attention struct {
	ir.Attend
	p    *group.Program
	caps loop.Caps
	m    *group.Member
	// prefix begins the names of the kernels.
	prefix string
	// mma says that the kernels compute with multiply-adds of warp groups.
	mma bool
	// staged are operands that were written to memory of their own, by number.
	staged map[int]*group.Tensor
	// stats holds the two numbers of each query that its cotangents depend on,
	// in one tensor, since the kernels have hardly enough bindings.
	stats *group.Tensor
}

func scheduleAttend(e *emitter, g *group.Group) []Launch {
	m := g.Members[0]
	n := &attention{
		Attend: m.Node.Def().Lower.(*ir.AttendLowering).Spec(m.Node),
		p:      e.p, caps: e.caps, m: m, prefix: g.Name(), staged: map[int]*group.Tensor{},
	}
	n.mma = withMma && attendsByMma(n.Attend, m.Node.Input(0).DType(), e.caps)
	var launches []Launch
	if n.mma {
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
// sums, and multiply: in tiles of plain registers, or in those of multiply-adds.
type fragments interface {
	// layout says which elements of a table a thread has.
	layout() *layout
	// begin defines what the thread is, at the start of a kernel.
	begin()
	// product makes the products of the rows of two operands of scores that are zeros.
	product(scores fragment, rows, cols matrix)
	// accumulate adds to sums the products of a table of weights and the rows of an
	// operand that belong to its columns.
	accumulate(sums, weights fragment, m matrix)
	// fold combines a value for each row over the threads that share the row, into
	// variables that hold what they start from.
	fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr)
	// blocks runs a body for blocks of columns from lo on and before hi. Those from
	// whole[0] on and before whole[1] are seen by all rows.
	blocks(lo, hi scalar.Expr, whole [2]scalar.Expr, body func())
	// columnStat returns a number that stats has of the query of a column.
	columnStat(c, which int) scalar.Expr
}

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
	// first holds in one of the threads that share a row.
	first scalar.Expr
}

// attendSide is what goes along one side of the scores: queries or keys.
type attendSide struct {
	count int         // of them
	block int         // of a tile
	first scalar.Expr // of the block at hand
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
	if n.mma && kind != attendMask {
		a.fragments = newAttendMma(a)
	} else {
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

// columns is how many elements of a row of the scores a thread has.
func (a *attender) columns() int { return a.layout().columns(a.cols.block) }

func (s *attendSide) blocks() int { return ceilDiv(s.count, s.block) }

// move goes to a block.
func (a *attender) move(s *attendSide, block scalar.Expr) {
	s.first = a.let("first", scalar.Mul(block, loop.Int(s.block)))
}

// inside returns a position that exists, and whether it is the one asked for.
func (s *attendSide) inside(pos scalar.Expr) (at, ok scalar.Expr) {
	return withinBounds(pos, s.count, s.count%s.block == 0)
}

// atHead goes to a head of the queries, by its number among all.
func (a *attender) atHead(head scalar.Expr) {
	a.queryHead = a.unflatten(head, a.Heads)
	for i, h := range a.queryHead {
		a.queryHead[i] = a.let("head", h)
	}
	a.keyHead = slices.Clone(a.queryHead)
	if last := len(a.keyHead) - 1; last >= 0 {
		a.keyHead[last] = a.let("key_head", scalar.FloorDiv(a.keyHead[last], loop.Int(a.Share)))
	}
}

// head is the head at hand of an operand.
func (a *attender) head(operand int) ir.Index {
	if operand == a.k().operand || operand == a.v().operand {
		return a.keyHead
	}
	return a.queryHead
}

// count runs a body for 0, 1, … n-1.
func (a *attender) count(prefix string, n int, body func(i scalar.Expr)) {
	if n == 1 {
		body(loop.Int(0))
		return
	}
	a.times(prefix, n, body)
}

// columnBlocks runs a body for the blocks of columns in which any of the rows at
// hand sees, or is seen, from block lo on and before block hi.
func (a *attender) columnBlocks(lo, hi scalar.Expr, body func()) {
	later := a.Keys - a.Queries // query i belongs to key i + later
	block := loop.Int(a.cols.block)
	whole := [2]scalar.Expr{lo, scalar.Min(hi, loop.Int(a.cols.count/a.cols.block))}
	if a.Causal && a.byQuery {
		seen := scalar.Max(scalar.Add(a.rows.first, loop.Int(a.rows.block+later)), loop.Int(0))
		hi = scalar.Min(hi, scalar.FloorDiv(scalar.Add(seen, loop.Int(a.cols.block-1)), block))
		byAll := scalar.Max(scalar.Add(a.rows.first, loop.Int(later+1)), loop.Int(0))
		whole[1] = scalar.Min(whole[1], scalar.FloorDiv(byAll, block))
	}
	if a.Causal && !a.byQuery {
		seeing := scalar.Max(scalar.Sub(a.rows.first, loop.Int(later)), loop.Int(0))
		lo = scalar.Max(lo, scalar.FloorDiv(seeing, block))
		all := scalar.Max(scalar.Add(a.rows.first, loop.Int(a.rows.block-1-later+a.cols.block-1)), loop.Int(0))
		whole[0] = scalar.Max(lo, scalar.FloorDiv(all, block))
	}
	for i := range whole {
		whole[i] = a.Simplify(whole[i])
	}
	a.blocks(a.Simplify(lo), a.Simplify(hi), whole, body)
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
func (a *attender) storeSums(t *group.Tensor, head ir.Index, length int, value func(i, c int) scalar.Expr) {
	l := a.layout()
	a.when(a.exists, func() {
		col := a.let("column", l.column)
		for i := range l.own {
			_, exists := a.rows.inside(a.row(i))
			a.when(exists, func() {
				root, offset := a.p.Place(t, slices.Concat(head, ir.Index{a.row(i), col}))
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

// storeRows stores a value of each row, which all threads that share it have.
func (a *attender) storeRows(t *group.Tensor, head ir.Index, value func(i int) scalar.Expr) {
	a.when(scalar.And(a.exists, a.layout().first), func() {
		for i := range a.layout().own {
			_, exists := a.rows.inside(a.row(i))
			at := append(slices.Clone(head), a.row(i))
			a.when(exists, func() { a.save(t, at, scalar.Convert(value(i), t.DType)) })
		}
	})
}

// withinBounds returns a position below n, and whether it is the one asked for.
func withinBounds(pos scalar.Expr, n int, always bool) (at, ok scalar.Expr) {
	if always {
		return pos, scalar.ConstBool(true)
	}
	return scalar.Min(pos, loop.Int(n-1)), scalar.Lt(pos, loop.Int(n))
}

func orZero(ok, x scalar.Expr) scalar.Expr { return scalar.Select(ok, x, scalar.ConstF(ir.F32, 0)) }

func sum(first scalar.Expr, rest ...scalar.Expr) scalar.Expr {
	for _, x := range rest {
		first = scalar.Add(first, x)
	}
	return first
}

// finiteOrZero keeps what is subtracted from scores that are all -Inf from
// making NaN of them.
func finiteOrZero(x scalar.Expr) scalar.Expr {
	finite := scalar.Ge(x, scalar.ConstF(ir.F32, -math.MaxFloat32))
	return scalar.Select(finite, x, scalar.ConstF(ir.F32, 0))
}
