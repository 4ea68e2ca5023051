package attention

import (
	"math"
	"slices"
	"strconv"

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

// kernelKind is what a kernel of attention computes.
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
	*emit.Emitter
	*attention
	fragments
	kind       kernelKind
	read       ir.Load
	exists     scalar.Expr // false in workgroups beyond the last
	rows, cols side
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

func (n *attention) q() matrix { return matrix{0, n.spec.Depth} }

func (n *attention) k() matrix { return matrix{1, n.spec.Depth} }

func (n *attention) v() matrix { return matrix{2, n.spec.Width} }

func (n *attention) dout() matrix { return matrix{5, n.spec.Width} }

// newKernel returns the emitter of a kernel.
func (n *attention) newKernel(kind kernelKind) *kernel {
	a := &kernel{Emitter: emit.New(n.p, n.caps), attention: n, kind: kind, byQuery: kind != keysKernel}
	a.read = a.Reader().Operand(n.m.Node)
	switch {
	case emit.WithMma && n.mma && kind != maskKernel:
		a.fragments = newMma(a)
	case emit.WithMma && n.schedule.Family == emit.FlashFragments && kind != maskKernel:
		a.fragments = newSubgroup(a)
	default:
		a.fragments = newPlain(a)
	}
	l := a.layout()
	a.rows = side{count: a.spec.Queries, block: l.rows}
	a.cols = side{count: a.spec.Keys, block: l.cols}
	if !a.byQuery {
		a.rows.count, a.cols.count = a.spec.Keys, a.spec.Queries
	}
	return a
}

// workgroups launches n workgroups and returns the number of the thread's.
func (a *kernel) workgroups(n int) (workgroup scalar.Expr) {
	workgroup, a.exists = a.BoundedGroup(n)
	a.begin()
	return a.Let("group", workgroup)
}

// launch returns the launch of the written kernel.
func (a *kernel) launch(name string) emit.Launch {
	l := a.Emitter.Launch(name)
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

// fragment is a table in the registers of a workgroup: rows × columns elements in each thread.
type fragment struct {
	name          string
	rows, columns int
}

// zeros declares a fragment of a table with rows of length elements.
func (a *kernel) zeros(prefix string, length int) fragment {
	l := a.layout()
	f := fragment{a.Name(prefix), l.own, l.columns(length)}
	f.each(func(i, c int) { a.Add(&loop.Var{Name: f.register(i, c), Init: scalar.ConstF(ir.F32, 0)}) })
	return f
}

// accumulators declares a fragment of accumulators over all blocks.
func (a *kernel) accumulators(prefix string, length int) fragment {
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
func (a *kernel) assign(f fragment, i, c int, x scalar.Expr) {
	a.Add(&loop.Assign{Name: f.register(i, c), Value: x})
}

// vars declares a variable for each row of a thread.
func (a *kernel) vars(prefix string, init scalar.Expr) []string {
	out := make([]string, a.layout().own)
	for i := range out {
		out[i] = a.Name(prefix)
		a.Add(&loop.Var{Name: out[i], Init: init})
	}
	return out
}

// row returns the position of a thread's row i.
func (a *kernel) row(i int) scalar.Expr {
	return sum(a.rows.first, a.layout().row, loop.Int(a.layout().rowAt(i)))
}

// column returns the position of a thread's column c.
func (a *kernel) column(c int) scalar.Expr {
	return sum(a.cols.first, a.layout().column, loop.Int(a.layout().columnAt(c)))
}

// storeSums stores a thread's rows of accumulators as rows of a result.
func (a *kernel) storeSums(t *fusion.Tensor, head ir.Index, length int, value func(i, c int) scalar.Expr) {
	l := a.layout()
	a.When(a.exists, func() {
		col := l.column
		if !l.pairs {
			col = a.Let("column", col)
		}
		for i := range l.own {
			_, exists := a.rows.clamp(a.row(i))
			a.When(exists, func() {
				root, offset := a.Emitter.Partition.Place(t, slices.Concat(head, ir.Index{a.row(i), col}))
				if a.storePairs(root, offset, l.columns(length), func(c int) scalar.Expr { return scalar.Convert(value(i, c), t.DType) }) {
					return
				}
				to := a.Let("to", offset)
				for c := range l.columns(length) {
					on := l.columnAt(c)
					_, ok := withinBounds(scalar.Add(col, loop.Int(on)), length, length%l.width == 0)
					store := &loop.Store{Array: root.ID, At: scalar.Add(to, loop.Int(on)), Value: scalar.Convert(value(i, c), t.DType)}
					a.Add(emit.Guard(ok, []loop.Stmt{store})...)
				}
			})
		}
	})
}

// storePairs stores a thread's elements of a row as vectors of two, if the layout has pairs and
// they are aligned in memory. It reports whether it did.
func (a *kernel) storePairs(root *fusion.Tensor, offset scalar.Expr, columns int, value func(c int) scalar.Expr) bool {
	odd, known := a.Simplify(scalar.Mod(offset, loop.Int(2))).IntConst()
	if !a.layout().pairs || !known || odd != 0 || root.Len()%2 != 0 || a.Emitter.Partition.IsGuarded(root) {
		return false
	}
	a.Widths[root.ID] = 2
	to := a.Let("to", scalar.FloorDiv(offset, loop.Int(2)))
	for c := 0; c < columns; c += 2 {
		at := scalar.Add(to, loop.Int(a.layout().columnAt(c)/2))
		a.Add(&loop.StoreVec{Array: root.ID, At: a.Simplify(at), Values: []scalar.Expr{value(c), value(c + 1)}})
	}
	return true
}

// storeRows stores a value of each row that all threads of the row have.
func (a *kernel) storeRows(t *fusion.Tensor, head ir.Index, value func(i int) scalar.Expr) {
	a.When(scalar.And(a.exists, a.layout().first), func() {
		for i := range a.layout().own {
			_, exists := a.rows.clamp(a.row(i))
			at := append(slices.Clone(head), a.row(i))
			a.When(exists, func() { a.Save(t, at, scalar.Convert(value(i), t.DType)) })
		}
	})
}

// query is what the scores of a query have in common.
type query struct {
	first      scalar.Expr // first visible key; nil means 0
	end        scalar.Expr // end of the visible keys, exclusive
	lse, delta scalar.Expr // columns of stats, in backward kernels
}

// visibleEnd names the exclusive end of the keys visible to the query at a position.
func (a *kernel) visibleEnd(s *side, at scalar.Expr) scalar.Expr {
	limit := loop.Int(a.spec.Keys)
	if a.unmasked {
		return limit
	}
	if a.spec.Causal {
		limit = scalar.Min(scalar.Max(scalar.Add(at, loop.Int(a.spec.Keys-a.spec.Queries+1)), loop.Int(0)), limit)
	}
	if _, ok := s.clamp(at); ok.Op != scalar.OpConst {
		limit = scalar.Select(ok, limit, loop.Int(0))
	}
	if limit.Op == scalar.OpConst {
		return limit
	}
	return a.Let("limit", limit)
}

// firstVisible names the first key visible to the query at a position, or returns nil without a
// window.
func (a *kernel) firstVisible(at scalar.Expr) scalar.Expr {
	if a.unmasked || a.spec.Window == 0 {
		return nil
	}
	return a.Let("first_seen", scalar.Add(at, loop.Int(a.spec.Keys-a.spec.Queries-a.spec.Window+1)))
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
	rows, rowsInMask := a.positions("row", &a.rows, products.rows, a.row)
	cols, colsInMask := a.positions("column", &a.cols, products.columns, a.column)
	for i := range rows {
		for c := range cols {
			of, key, query, masked := i, cols[c], rowsInMask[i], colsInMask[c]
			if !a.byQuery {
				of, key, query, masked = c, rows[i], masked, query
			}
			x := a.element(products.at(i, c), key, queries[of], a.maskAt(query, masked))
			a.assign(products, i, c, f(i, c, x))
		}
	}
}

// positions names a thread's positions along a side, and those clamped to the mask.
func (a *kernel) positions(prefix string, s *side, n int, position func(i int) scalar.Expr) (at, inMask []scalar.Expr) {
	for i := range n {
		pos := position(i)
		if !a.unmasked || a.spec.Mask >= 0 {
			pos = a.Let(prefix, pos)
		}
		at, inMask = append(at, pos), append(inMask, pos)
		if inside, _ := s.clamp(pos); a.spec.Mask >= 0 && inside != pos {
			inMask[i] = a.Let("masked", inside)
		}
	}
	return at, inMask
}

// element applies scale, soft cap and mask to the product x with the key at a position.
func (a *kernel) element(x, key scalar.Expr, q query, maskAt ir.Index) element {
	e := element{score: x, visible: scalar.ConstBool(true)}
	if !a.unmasked {
		e.visible = a.Simplify(scalar.Lt(key, q.end))
		if q.first != nil {
			e.visible = a.Simplify(scalar.And(e.visible, scalar.Ge(key, q.first)))
		}
	}
	if !a.scaledLast() {
		e.score = scalar.Mul(x, scalar.ConstF(ir.F32, a.spec.Scale))
	}
	if a.spec.Softcap != 0 {
		e.capped = a.Let("t", scalar.Tanh(scalar.Mul(e.score, scalar.ConstF(ir.F32, 1/a.spec.Softcap))))
		e.score = scalar.Mul(e.capped, scalar.ConstF(ir.F32, a.spec.Softcap))
	}
	if a.spec.Mask < 0 {
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

// maskAt returns the index into the mask for a score of the current head.
func (a *kernel) maskAt(row, col scalar.Expr) ir.Index {
	if a.spec.Mask < 0 {
		return nil
	}
	dims, _ := a.m.Node.Input(a.spec.Mask).Shape().Ints()
	all := slices.Concat(a.queryHead, ir.Index{row, col})
	at := all[len(all)-len(dims):]
	for i, d := range dims {
		if d == 1 {
			at[i] = loop.Int(0)
		}
	}
	return at
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

// side is one axis of the scores: queries or keys.
type side struct {
	count int         // all positions
	block int         // positions of a block
	first scalar.Expr // first position of the current block
}

func (s *side) blocks() int { return emit.CeilDiv(s.count, s.block) }

// setBlock sets the current block of a side.
func (a *kernel) setBlock(s *side, block scalar.Expr) {
	s.first = a.Let("first", scalar.Mul(block, loop.Int(s.block)))
}

// clamp clamps a position, and returns the condition that it was in range.
func (s *side) clamp(pos scalar.Expr) (at, ok scalar.Expr) {
	return withinBounds(pos, s.count, s.count%s.block == 0)
}

// setHead sets the current head of the queries, and of the keys that they share.
func (a *kernel) setHead(head scalar.Expr) {
	a.queryHead = a.Unflatten(head, a.spec.Heads)
	for i, h := range a.queryHead {
		a.queryHead[i] = a.Let("head", h)
	}
	a.keyHead = slices.Clone(a.queryHead)
	if last := len(a.keyHead) - 1; last >= 0 {
		a.keyHead[last] = a.Let("key_head", scalar.FloorDiv(a.keyHead[last], loop.Int(a.spec.Share)))
	}
}

// head returns the current head of an operand.
func (a *kernel) head(operand int) ir.Index {
	if operand == a.k().operand || operand == a.v().operand {
		return a.keyHead
	}
	return a.queryHead
}

// repeat runs body for 0, 1, … n-1; without a loop if n is 1.
func (a *kernel) repeat(prefix string, n int, body func(i scalar.Expr)) {
	if n == 1 {
		body(loop.Int(0))
		return
	}
	a.Times(prefix, n, body)
}

// columnBlocks loops over the blocks of columns in [lo, hi) that are not masked for all of the
// current rows by causality or the window.
func (a *kernel) columnBlocks(lo, hi scalar.Expr, body func()) {
	later := a.spec.Keys - a.spec.Queries // query i is at the position of key i + later
	block := loop.Int(a.cols.block)
	whole := [2]scalar.Expr{lo, scalar.Min(hi, loop.Int(a.cols.count/a.cols.block))}
	if a.spec.Causal && a.byQuery {
		seen := scalar.Max(scalar.Add(a.rows.first, loop.Int(a.rows.block+later)), loop.Int(0))
		hi = scalar.Min(hi, scalar.FloorDiv(scalar.Add(seen, loop.Int(a.cols.block-1)), block))
		byAll := scalar.Max(scalar.Add(a.rows.first, loop.Int(later+1)), loop.Int(0))
		whole[1] = scalar.Min(whole[1], scalar.FloorDiv(byAll, block))
	}
	if a.spec.Causal && !a.byQuery {
		seeing := scalar.Max(scalar.Sub(a.rows.first, loop.Int(later)), loop.Int(0))
		lo = scalar.Max(lo, scalar.FloorDiv(seeing, block))
		all := scalar.Max(scalar.Add(a.rows.first, loop.Int(a.rows.block-1-later+a.cols.block-1)), loop.Int(0))
		whole[0] = scalar.Max(lo, scalar.FloorDiv(all, block))
	}
	if a.spec.Window > 0 {
		lo, hi, whole = a.windowBlocks(lo, hi, whole)
	}
	for i := range whole {
		whole[i] = a.Simplify(whole[i])
	}
	a.blocks(a.Simplify(lo), a.Simplify(hi), whole, body)
}

// windowBlocks narrows [lo, hi) to the blocks that the window leaves visible to some of the
// current rows, and whole to those visible to all.
func (a *kernel) windowBlocks(lo, hi scalar.Expr, whole [2]scalar.Expr) (first, end scalar.Expr, inner [2]scalar.Expr) {
	later, block := a.spec.Keys-a.spec.Queries, loop.Int(a.cols.block)
	from := func(offset int) scalar.Expr {
		return scalar.Max(scalar.Add(a.rows.first, loop.Int(offset)), loop.Int(0))
	}
	up := a.cols.block - 1 // rounds a quotient up
	if a.byQuery {
		hidden := later - a.spec.Window + 1 // query i does not attend to the keys before i + hidden
		lo = scalar.Max(lo, scalar.FloorDiv(from(hidden), block))
		byAll := scalar.FloorDiv(from(hidden+a.rows.block-1+up), block)
		return lo, hi, [2]scalar.Expr{scalar.Max(lo, byAll), whole[1]}
	}
	seeing := a.spec.Window - later // queries from j + seeing on do not attend to key j
	hi = scalar.Min(hi, scalar.FloorDiv(from(seeing+a.rows.block-1+up), block))
	return lo, hi, [2]scalar.Expr{whole[0], scalar.Min(whole[1], scalar.FloorDiv(from(seeing), block))}
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
