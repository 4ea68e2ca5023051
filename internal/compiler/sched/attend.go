package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attention is an attention node, forward or backward, computed by kernels that keep no scores
// in memory (flash attention).
type attention struct {
	ir.Attend
	p          *fusion.Partition
	caps       loop.Caps
	m          *fusion.Member
	prefix     string                 // of the kernels' names
	mma        bool                   // the kernels use multiply-adds of warp groups
	staged     map[int]*fusion.Tensor // operands copied to scratch memory, by number
	transposed map[int]*fusion.Tensor // transposed copies of operands, by number
	// stats holds the two numbers of each query that its cotangents depend on. They share
	// a tensor because the kernels have few bindings left.
	stats *fusion.Tensor
}

// scheduleAttend emits the kernels of an attention node.
func scheduleAttend(e *emitter, g *fusion.Group) []Launch {
	m := g.Members[0]
	n := &attention{
		Attend: m.Node.Def().Lower.(*ir.AttendLowering).Spec(m.Node),
		p:      e.p, caps: e.caps, m: m, prefix: g.Name(), staged: map[int]*fusion.Tensor{}, transposed: map[int]*fusion.Tensor{},
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
	attendMask               // the cotangent of an additive mask
)

// attender writes a kernel of attention. A workgroup has a block of rows (queries or keys) and
// loops over blocks of columns (keys or queries). Its fragments decide how threads hold and
// multiply scores and accumulators.
type attender struct {
	*emitter
	*attention
	fragments
	kind       attendKind
	read       ir.Load
	exists     scalar.Expr // false in workgroups beyond the last
	rows, cols attendSide
	byQuery    bool       // the rows are queries
	queryHead  ir.Index   // the current head of the queries
	keyHead    ir.Index   // and of the keys
	sums       []fragment // accumulators over all blocks
	unmasked   bool       // no position of the current block is masked by its position
}

// fragments is how the threads of a workgroup hold tables (scores or accumulators) and multiply:
// in register tiles, with or without subgroup fragments, or in the registers of multiply-adds.
type fragments interface {
	// layout returns which elements of a table a thread has.
	layout() *layout
	// begin names the thread's coordinates and declares shared memory.
	begin()
	// product starts scores += rows · colsᵀ, with scores zero. The result is available
	// after ready.
	product(scores fragment, rows, cols matrix) (ready func())
	// accumulate starts sums += weights · m with the current weights, where the rows of m
	// belong to the columns of weights. The products start no later than at begin.
	accumulate(sums, weights fragment, m matrix) (begin func())
	// fold reduces a value for each row over the threads that share the row, into
	// variables that hold the initial values.
	fold(into []string, values []scalar.Expr, combine func(a, b scalar.Expr) scalar.Expr)
	// blocks loops over the blocks of columns in [lo, hi). Those in [whole[0], whole[1])
	// are visible to all rows.
	blocks(lo, hi scalar.Expr, whole [2]scalar.Expr, body func())
	// columnStat returns the number which of stats for the query of column c.
	columnStat(c, which int) scalar.Expr
}

// matrix is an operand with rows of length elements.
type matrix struct{ operand, length int }

func (n *attention) q() matrix    { return matrix{0, n.Depth} }
func (n *attention) k() matrix    { return matrix{1, n.Depth} }
func (n *attention) v() matrix    { return matrix{2, n.Width} }
func (n *attention) dout() matrix { return matrix{5, n.Width} }

// attender returns the emitter of a kernel.
func (n *attention) attender(kind attendKind) *attender {
	a := &attender{emitter: newEmitter(n.p, n.caps), attention: n, kind: kind, byQuery: kind != attendKeys}
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

// workgroups launches n workgroups and returns the number of the thread's.
func (a *attender) workgroups(n int) (workgroup scalar.Expr) {
	workgroup, a.exists = a.boundedGroup(n)
	a.begin()
	return a.let("group", workgroup)
}

// launch returns the launch of the written kernel.
func (a *attender) launch(name string) Launch {
	l := a.emitter.launch(name)
	if size := a.layout().subgroup; size > 0 {
		l.Kernel.Subgroup = [2]int{size, size}
	}
	return l
}

// columns returns the number of a thread's elements in a row of scores.
func (a *attender) columns() int { return a.layout().columns(a.cols.block) }

// layout is which elements of a table a thread has.
type layout struct {
	rows, cols int                  // sizes of a block
	own        int                  // rows of a thread
	columns    func(length int) int // elements of a thread in a row of length
	// row and column are a thread's first ones; rowAt and columnAt are the offsets of the
	// others from them.
	row, column     scalar.Expr
	rowAt, columnAt func(i int) int
	width           int         // rows whose length is a multiple of width are divided evenly
	pairs           bool        // a thread's columns are aligned pairs of neighbours
	first           scalar.Expr // true in one of the threads that share a row
	subgroup        int         // required subgroup size, 0 for any
}

// fragment is a table in the registers of a workgroup: rows × columns elements in each thread.
type fragment struct {
	name          string
	rows, columns int
}

// zeros declares a fragment of a table with rows of length elements.
func (a *attender) zeros(prefix string, length int) fragment {
	l := a.layout()
	f := fragment{a.name(prefix), l.own, l.columns(length)}
	f.each(func(i, c int) { a.add(&loop.Var{Name: f.register(i, c), Init: scalar.ConstF(ir.F32, 0)}) })
	return f
}

// accumulators declares a fragment of accumulators over all blocks.
func (a *attender) accumulators(prefix string, length int) fragment {
	f := a.zeros(prefix, length)
	a.sums = append(a.sums, f)
	return f
}

// each calls visit for each element of a thread.
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

// assign sets an element.
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

// row returns the position of a thread's row i.
func (a *attender) row(i int) scalar.Expr {
	return sum(a.rows.first, a.layout().row, loop.Int(a.layout().rowAt(i)))
}

// column returns the position of a thread's column c.
func (a *attender) column(c int) scalar.Expr {
	return sum(a.cols.first, a.layout().column, loop.Int(a.layout().columnAt(c)))
}

// storeSums stores a thread's rows of accumulators as rows of a result.
func (a *attender) storeSums(t *fusion.Tensor, head ir.Index, length int, value func(i, c int) scalar.Expr) {
	l := a.layout()
	a.when(a.exists, func() {
		col := l.column
		if !l.pairs {
			col = a.let("column", col)
		}
		for i := range l.own {
			_, exists := a.rows.clamp(a.row(i))
			a.when(exists, func() {
				root, offset := a.emitter.p.Place(t, slices.Concat(head, ir.Index{a.row(i), col}))
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

// storePairs stores a thread's elements of a row as vectors of two, if the layout has pairs and
// they are aligned in memory. It reports whether it did.
func (a *attender) storePairs(root *fusion.Tensor, offset scalar.Expr, columns int, value func(c int) scalar.Expr) bool {
	odd, known := a.Simplify(scalar.Mod(offset, loop.Int(2))).IntConst()
	if !a.layout().pairs || !known || odd != 0 || root.Len()%2 != 0 || a.emitter.p.IsGuarded(root) {
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

// storeRows stores a value of each row that all threads of the row have.
func (a *attender) storeRows(t *fusion.Tensor, head ir.Index, value func(i int) scalar.Expr) {
	a.when(scalar.And(a.exists, a.layout().first), func() {
		for i := range a.layout().own {
			_, exists := a.rows.clamp(a.row(i))
			at := append(slices.Clone(head), a.row(i))
			a.when(exists, func() { a.save(t, at, scalar.Convert(value(i), t.DType)) })
		}
	})
}
