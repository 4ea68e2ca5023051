package attention

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attention is an attention node, forward or backward, computed by kernels that keep no scores
// in memory (flash attention).
type attention struct {
	spec       ir.Attend
	p          *fusion.Partition
	caps       loop.Caps
	m          *fusion.Member
	prefix     string // of the kernels' names
	schedule   emit.Schedule
	mma        bool                   // the kernels use multiply-adds of warp groups
	staged     map[int]*fusion.Tensor // operands copied to scratch memory, by number
	transposed map[int]*fusion.Tensor // transposed copies of operands, by number
	// stats holds the two numbers of each query that its cotangents depend on. They share
	// a tensor because the kernels have few bindings left.
	stats *fusion.Tensor
}

// kernelKind names the result of a kernel of attention.
type kernelKind uint8

const (
	forwardKernel kernelKind = iota
	queriesKernel            // the cotangents of the queries
	keysKernel               // those of keys and values
	maskKernel               // the cotangent of an additive mask
)

// kernel writes a kernel of attention. A workgroup has a block of rows (queries or keys) and
// loops over blocks of columns (keys or queries). Its fragments decide how threads hold and
// multiply scores and accumulators.
type kernel struct {
	e *emit.Emitter
	*attention
	fragments
	kind       kernelKind
	read       ir.Load
	exists     scalar.Expr // false in workgroups beyond the last
	rows, cols side
	byQuery    bool // the rows are queries
	heads      heads
	registers  registers
	visible    visibility
	shownWhole bool // the mask hides nothing of blocks that are visible to all rows
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

// The numbers of operands that are multiplied. Operands 3 and 4 of a backward node are the numbers
// of each query.
const (
	queryOperand     = 0
	keyOperand       = 1
	valueOperand     = 2
	cotangentOperand = 5
)

func (n *attention) q() matrix { return matrix{queryOperand, n.spec.Depth} }

func (n *attention) k() matrix { return matrix{keyOperand, n.spec.Depth} }

func (n *attention) v() matrix { return matrix{valueOperand, n.spec.Width} }

func (n *attention) dout() matrix { return matrix{cotangentOperand, n.spec.Width} }

// maskDims returns the dimensions of the mask, nil without one.
func (n *attention) maskDims() []int {
	if n.spec.Mask < 0 {
		return nil
	}
	dims, _ := n.m.Node.Input(n.spec.Mask).Shape().Ints()
	return dims
}

// newKernel returns the emitter of a kernel.
func (n *attention) newKernel(kind kernelKind) *kernel {
	a := &kernel{e: emit.New(n.p, n.caps), attention: n, kind: kind, byQuery: kind != keysKernel}
	a.read = a.e.Reader().Operand(n.m.Node)
	switch {
	case emit.WithMma && n.mma && kind != maskKernel:
		a.fragments = newMma(a)
	case emit.WithMma && n.schedule.Family == emit.FlashFragments && kind != maskKernel:
		a.fragments = newSubgroup(a)
	default:
		a.fragments = newPlain(a)
	}
	l := a.layout()
	a.rows = side{e: a.e, count: a.spec.Queries, block: l.rows, thread: func(i int) (scalar.Expr, int) { return l.row, l.rowAt(i) }}
	a.cols = side{e: a.e, count: a.spec.Keys, block: l.cols, thread: func(c int) (scalar.Expr, int) { return l.column, l.columnAt(c) }}
	a.heads = heads{e: a.e, dims: a.spec.Heads, share: a.spec.Share}
	a.registers = registers{e: a.e, l: l}
	a.visible = visibility{e: a.e, spec: &a.spec, byQuery: a.byQuery, rows: &a.rows, cols: &a.cols}
	if !a.byQuery {
		a.rows.count, a.cols.count = a.spec.Keys, a.spec.Queries
	}
	return a
}

// workgroups launches n workgroups and returns the number of the thread's.
func (a *kernel) workgroups(n int) (workgroup scalar.Expr) {
	workgroup, a.exists = a.e.BoundedGroup(n)
	a.begin()
	return a.e.Let("group", workgroup)
}

// launch returns the launch of the written kernel.
func (a *kernel) launch(name string) emit.Launch {
	l := a.e.Launch(name)
	if size := a.layout().subgroup; size > 0 {
		l.Kernel.Subgroup = [2]int{size, size}
	}
	return l
}

// columns returns the number of a thread's elements in a row of scores.
func (a *kernel) columns() int { return a.layout().columns(a.cols.block) }

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

// storeSums stores a thread's rows of accumulators as rows of a result.
func (a *kernel) storeSums(t *fusion.Tensor, head ir.Index, length int, value func(i, c int) scalar.Expr) {
	l := a.layout()
	a.e.When(a.exists, func() {
		col := l.column
		if !l.pairs {
			col = a.e.Let("column", col)
		}
		for i := range l.own {
			_, exists := a.rows.clamp(a.rows.position(i))
			a.e.When(exists, func() {
				root, offset := a.e.Partition.Place(t, slices.Concat(head, ir.Index{a.rows.position(i), col}))
				if a.storePairs(root, offset, col, length, func(c int) scalar.Expr { return scalar.Convert(value(i, c), t.DType) }) {
					return
				}
				to := a.e.Let("to", offset)
				for c := range l.columns(length) {
					on := l.columnAt(c)
					_, ok := withinBounds(scalar.Add(col, loop.Int(on)), length, length%l.width == 0)
					store := &loop.Store{Array: root.ID, At: scalar.Add(to, loop.Int(on)), Value: scalar.Convert(value(i, c), t.DType)}
					a.e.Add(emit.Guard(ok, []loop.Stmt{store})...)
				}
			})
		}
	})
}

// storePairs stores a thread's elements of a row, from column col on, as vectors of two, if the layout
// has pairs and they are aligned in memory. It reports whether it did.
func (a *kernel) storePairs(root *fusion.Tensor, offset, col scalar.Expr, length int, value func(c int) scalar.Expr) bool {
	l := a.layout()
	odd, known := a.e.Simplify(scalar.Mod(offset, loop.Int(2))).IntConst()
	if !l.pairs || !known || odd != 0 || root.Len()%2 != 0 || a.e.Partition.IsGuarded(root) {
		return false
	}
	a.e.Widths[root.ID] = 2
	to := a.e.Let("to", scalar.FloorDiv(offset, loop.Int(2)))
	for c := 0; c < l.columns(length); c += 2 {
		on := l.columnAt(c)
		_, ok := withinBounds(scalar.Add(col, loop.Int(on)), length, length%l.width == 0)
		at := scalar.Add(to, loop.Int(on/2))
		store := &loop.StoreVec{Array: root.ID, At: a.e.Simplify(at), Values: []scalar.Expr{value(c), value(c + 1)}}
		a.e.Add(emit.Guard(ok, []loop.Stmt{store})...)
	}
	return true
}

// storeRows stores a value of each row that all threads of the row have.
func (a *kernel) storeRows(t *fusion.Tensor, head ir.Index, value func(i int) scalar.Expr) {
	a.e.When(scalar.And(a.exists, a.layout().first), func() {
		for i := range a.layout().own {
			_, exists := a.rows.clamp(a.rows.position(i))
			at := append(slices.Clone(head), a.rows.position(i))
			a.e.When(exists, func() { a.e.Save(t, at, scalar.Convert(value(i), t.DType)) })
		}
	})
}

// query holds the values that all scores of a query share.
type query struct {
	first      scalar.Expr // first visible key; nil means 0
	end        scalar.Expr // end of the visible keys, exclusive
	lse, delta scalar.Expr // columns of stats, in backward kernels
}

// element is the score of a query and a key.
type element struct {
	score   scalar.Expr
	visible scalar.Expr // false where the key is masked
	// capped is the tanh of the soft cap, which determines the derivative; nil without a
	// cap.
	capped scalar.Expr
}

// scoreDerivative returns the derivative of a score by its product, without the scale, which is
// applied to the accumulators.
func (a *kernel) scoreDerivative(capped scalar.Expr) scalar.Expr {
	if capped == nil {
		return scalar.ConstF(ir.F32, 1)
	}
	return scalar.Sub(scalar.ConstF(ir.F32, 1), scalar.Mul(capped, capped))
}

// eachScore replaces the products of a fragment by f of their scores. queries has one entry for
// each row, or for each column if rows are keys.
func (a *kernel) eachScore(products fragment, queries []query, f func(i, c int, x element) scalar.Expr) {
	rows, rowsInMask := a.positions("row", &a.rows, products.rows, a.rows.position)
	cols, colsInMask := a.positions("column", &a.cols, products.columns, a.cols.position)
	maskDims := a.maskDims()
	for i := range rows {
		for c := range cols {
			of, key, query, masked := i, cols[c], rowsInMask[i], colsInMask[c]
			if !a.byQuery {
				of, key, query, masked = c, rows[i], masked, query
			}
			x := a.element(products.at(i, c), key, queries[of], a.heads.inMask(maskDims, query, masked))
			a.registers.assign(products, i, c, f(i, c, x))
		}
	}
}

// positions names a thread's positions along a side, and those clamped to the mask.
func (a *kernel) positions(prefix string, s *side, n int, position func(i int) scalar.Expr) (at, inMask []scalar.Expr) {
	for i := range n {
		pos := position(i)
		if !a.visible.unmasked || a.spec.Mask >= 0 {
			pos = a.e.Let(prefix, pos)
		}
		at, inMask = append(at, pos), append(inMask, pos)
		if inside, _ := s.clamp(pos); a.spec.Mask >= 0 && inside != pos {
			inMask[i] = a.e.Let("masked", inside)
		}
	}
	return at, inMask
}

// element applies scale, soft cap and mask to the product x with the key at a position.
func (a *kernel) element(x, key scalar.Expr, q query, maskAt ir.Index) element {
	e := element{score: x, visible: a.visible.of(key, q)}
	if !a.scaledLast() {
		e.score = scalar.Mul(x, scalar.ConstF(ir.F32, a.spec.Scale))
	}
	if a.spec.Softcap != 0 {
		e.capped = a.e.Let("t", scalar.Tanh(scalar.Mul(e.score, scalar.ConstF(ir.F32, 1/a.spec.Softcap))))
		e.score = scalar.Mul(e.capped, scalar.ConstF(ir.F32, a.spec.Softcap))
	}
	if a.spec.Mask < 0 || a.visible.unmasked && a.shownWhole {
		return e
	}
	mask := a.read(a.spec.Mask, maskAt)
	if mask.Type == ir.Bool {
		e.visible = scalar.And(e.visible, mask)
	} else {
		e.score = scalar.Add(e.score, scalar.Convert(mask, ir.F32))
	}
	return e
}

// floats returns variables of f32.
func floats(names []string) []scalar.Expr {
	out := make([]scalar.Expr, len(names))
	for i, name := range names {
		out[i] = scalar.FreeVar(name, ir.F32)
	}
	return out
}

// exponentScale is the factor from natural exponents to those of [attention.exponential]: log₂e
// where scores come from multiply-adds, since exponentials dominate there and a power of 2 is
// one instruction.
func (n *attention) exponentScale() float64 {
	if n.mma {
		return math.Log2E
	}
	return 1
}

// exponential returns the exponential of an exponent, in base 2 or e.
func (n *attention) exponential(x scalar.Expr) scalar.Expr {
	if n.mma {
		return scalar.Pow(scalar.ConstF(ir.F32, 2), x)
	}
	return scalar.Exp(x)
}

// scaledLast reports whether scores are the bare products and [attention.exponent] applies the
// scale: no operation lies between, and a positive scale keeps their order.
func (n *attention) scaledLast() bool {
	added := n.spec.Mask >= 0 && !n.m.Node.Input(n.spec.Mask).DType().IsBool()
	return n.mma && n.spec.Scale > 0 && n.spec.Softcap == 0 && !added
}

// exponent returns the exponent of a score for [attention.exponential].
func (n *attention) exponent(score scalar.Expr) scalar.Expr {
	if n.scaledLast() {
		return times(score, n.exponentScale()*n.spec.Scale)
	}
	return times(score, n.exponentScale())
}

// scaledScore returns a score with the scale applied.
func (n *attention) scaledScore(score scalar.Expr) scalar.Expr {
	if n.scaledLast() {
		return times(score, n.spec.Scale)
	}
	return score
}

// times multiplies by a number.
func times(x scalar.Expr, by float64) scalar.Expr {
	if by == 1 {
		return x
	}
	return scalar.Mul(x, scalar.ConstF(ir.F32, by))
}

// repeat runs body for 0, 1, … n-1; without a loop if n is 1.
func (a *kernel) repeat(prefix string, n int, body func(i scalar.Expr)) {
	if n == 1 {
		body(loop.Int(0))
		return
	}
	a.e.Times(prefix, n, body)
}

// columnBlocks loops over the blocks of columns in [lo, hi) that are visible to some of the
// current rows.
func (a *kernel) columnBlocks(lo, hi scalar.Expr, body func()) {
	lo, hi, whole := a.visible.blocks(lo, hi)
	if b := a.maskBounds(); emit.WithMma && (b.first != nil || b.end != nil) {
		lo, hi, whole = a.shown(b, lo, hi, whole)
		a.shownWhole = b.all
	}
	for i := range whole {
		whole[i] = a.e.Simplify(whole[i])
	}
	a.blocks(a.e.Simplify(lo), a.e.Simplify(hi), whole, body)
}

// withinBounds clamps a position below n, and returns the condition that it was.
func withinBounds(pos scalar.Expr, n int, always bool) (at, ok scalar.Expr) {
	if always {
		return pos, scalar.ConstBool(true)
	}
	return scalar.Min(pos, loop.Int(n-1)), scalar.Lt(pos, loop.Int(n))
}

// orZero returns x if ok, else 0.
func orZero(ok, x scalar.Expr) scalar.Expr { return scalar.Select(ok, x, scalar.ConstF(ir.F32, 0)) }

// sum returns the sum of its arguments.
func sum(first scalar.Expr, rest ...scalar.Expr) scalar.Expr {
	for _, x := range rest {
		first = scalar.Add(first, x)
	}
	return first
}

// finiteOrZero replaces -Inf, the maximum of a row without visible keys, by 0, so that
// subtracting it from scores does not give NaN. It keeps NaN.
func finiteOrZero(x scalar.Expr) scalar.Expr {
	none := scalar.Lt(x, scalar.ConstF(ir.F32, -math.MaxFloat32))
	return scalar.Select(none, scalar.ConstF(ir.F32, 0), x)
}
