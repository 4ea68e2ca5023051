package sched

import (
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
