package sched

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// query is what the scores of a query have in common.
type query struct {
	first      scalar.Expr // first visible key; nil means 0
	end        scalar.Expr // end of the visible keys, exclusive
	lse, delta scalar.Expr // columns of stats, in backward kernels
}

// visibleEnd names the exclusive end of the keys visible to the query at a position.
func (a *attender) visibleEnd(s *attendSide, at scalar.Expr) scalar.Expr {
	limit := loop.Int(a.Keys)
	if a.unmasked {
		return limit
	}
	if a.Causal {
		limit = scalar.Min(scalar.Max(scalar.Add(at, loop.Int(a.Keys-a.Queries+1)), loop.Int(0)), limit)
	}
	if _, ok := s.clamp(at); ok.Op != scalar.OpConst {
		limit = scalar.Select(ok, limit, loop.Int(0))
	}
	if limit.Op == scalar.OpConst {
		return limit
	}
	return a.let("limit", limit)
}

// firstVisible names the first key visible to the query at a position, or returns nil without a
// window.
func (a *attender) firstVisible(at scalar.Expr) scalar.Expr {
	if a.unmasked || a.Window == 0 {
		return nil
	}
	return a.let("first_seen", scalar.Add(at, loop.Int(a.Keys-a.Queries-a.Window+1)))
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
func (a *attender) scoreDerivative(capped scalar.Expr) scalar.Expr {
	if capped == nil {
		return scalar.ConstF(ir.F32, 1)
	}
	return scalar.Sub(scalar.ConstF(ir.F32, 1), scalar.Mul(capped, capped))
}

// eachScore replaces the products of a fragment by f of their scores. queries has one entry for
// each row, or for each column if rows are keys.
func (a *attender) eachScore(products fragment, queries []query, f func(i, c int, x element) scalar.Expr) {
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
func (a *attender) positions(prefix string, s *attendSide, n int, position func(i int) scalar.Expr) (at, inMask []scalar.Expr) {
	for i := range n {
		pos := position(i)
		if !a.unmasked || a.Mask >= 0 {
			pos = a.let(prefix, pos)
		}
		at, inMask = append(at, pos), append(inMask, pos)
		if inside, _ := s.clamp(pos); a.Mask >= 0 && inside != pos {
			inMask[i] = a.let("masked", inside)
		}
	}
	return at, inMask
}

// element applies scale, soft cap and mask to the product x with the key at a position.
func (a *attender) element(x, key scalar.Expr, q query, maskAt ir.Index) element {
	e := element{score: x, visible: scalar.ConstBool(true)}
	if !a.unmasked {
		e.visible = a.Simplify(scalar.Lt(key, q.end))
		if q.first != nil {
			e.visible = a.Simplify(scalar.And(e.visible, scalar.Ge(key, q.first)))
		}
	}
	if !a.scaledLast() {
		e.score = scalar.Mul(x, scalar.ConstF(ir.F32, a.Scale))
	}
	if a.Softcap != 0 {
		e.capped = a.let("t", scalar.Tanh(scalar.Mul(e.score, scalar.ConstF(ir.F32, 1/a.Softcap))))
		e.score = scalar.Mul(e.capped, scalar.ConstF(ir.F32, a.Softcap))
	}
	if a.Mask < 0 {
		return e
	}
	mask := a.read(a.Mask, maskAt)
	if mask.Type == ir.Bool {
		e.visible = scalar.And(e.visible, mask)
	} else {
		e.score = scalar.Add(e.score, scalar.Convert(mask, ir.F32))
	}
	return e
}

// maskAt returns the index into the mask for a score of the current head.
func (a *attender) maskAt(row, col scalar.Expr) ir.Index {
	if a.Mask < 0 {
		return nil
	}
	dims, _ := a.m.Node.Input(a.Mask).Shape().Ints()
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
	added := n.Mask >= 0 && !n.m.Node.Input(n.Mask).DType().IsBool()
	return n.mma && n.Scale > 0 && n.Softcap == 0 && !added
}

// exponent returns the exponent of a score for [attention.exponential].
func (n *attention) exponent(score scalar.Expr) scalar.Expr {
	if n.scaledLast() {
		return times(score, n.exponentScale()*n.Scale)
	}
	return times(score, n.exponentScale())
}

// scaledScore returns a score with the scale applied.
func (n *attention) scaledScore(score scalar.Expr) scalar.Expr {
	if n.scaledLast() {
		return times(score, n.Scale)
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

// attendSide is one axis of the scores: queries or keys.
type attendSide struct {
	count int         // all positions
	block int         // positions of a block
	first scalar.Expr // first position of the current block
}

func (s *attendSide) blocks() int { return ceilDiv(s.count, s.block) }

// setBlock sets the current block of a side.
func (a *attender) setBlock(s *attendSide, block scalar.Expr) {
	s.first = a.let("first", scalar.Mul(block, loop.Int(s.block)))
}

// clamp clamps a position, and returns the condition that it was in range.
func (s *attendSide) clamp(pos scalar.Expr) (at, ok scalar.Expr) {
	return withinBounds(pos, s.count, s.count%s.block == 0)
}

// setHead sets the current head of the queries, and of the keys that they share.
func (a *attender) setHead(head scalar.Expr) {
	a.queryHead = a.unflatten(head, a.Heads)
	for i, h := range a.queryHead {
		a.queryHead[i] = a.let("head", h)
	}
	a.keyHead = slices.Clone(a.queryHead)
	if last := len(a.keyHead) - 1; last >= 0 {
		a.keyHead[last] = a.let("key_head", scalar.FloorDiv(a.keyHead[last], loop.Int(a.Share)))
	}
}

// head returns the current head of an operand.
func (a *attender) head(operand int) ir.Index {
	if operand == a.k().operand || operand == a.v().operand {
		return a.keyHead
	}
	return a.queryHead
}

// repeat runs body for 0, 1, … n-1; without a loop if n is 1.
func (a *attender) repeat(prefix string, n int, body func(i scalar.Expr)) {
	if n == 1 {
		body(loop.Int(0))
		return
	}
	a.times(prefix, n, body)
}

// columnBlocks loops over the blocks of columns in [lo, hi) that are not masked for all of the
// current rows by causality or the window.
func (a *attender) columnBlocks(lo, hi scalar.Expr, body func()) {
	later := a.Keys - a.Queries // query i is at the position of key i + later
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
	if a.Window > 0 {
		lo, hi, whole = a.windowBlocks(lo, hi, whole)
	}
	for i := range whole {
		whole[i] = a.Simplify(whole[i])
	}
	a.blocks(a.Simplify(lo), a.Simplify(hi), whole, body)
}

// windowBlocks narrows [lo, hi) to the blocks that the window leaves visible to some of the
// current rows, and whole to those visible to all.
func (a *attender) windowBlocks(lo, hi scalar.Expr, whole [2]scalar.Expr) (first, end scalar.Expr, inner [2]scalar.Expr) {
	later, block := a.Keys-a.Queries, loop.Int(a.cols.block)
	from := func(offset int) scalar.Expr {
		return scalar.Max(scalar.Add(a.rows.first, loop.Int(offset)), loop.Int(0))
	}
	up := a.cols.block - 1 // rounds a quotient up
	if a.byQuery {
		hidden := later - a.Window + 1 // query i does not attend to the keys before i + hidden
		lo = scalar.Max(lo, scalar.FloorDiv(from(hidden), block))
		byAll := scalar.FloorDiv(from(hidden+a.rows.block-1+up), block)
		return lo, hi, [2]scalar.Expr{scalar.Max(lo, byAll), whole[1]}
	}
	seeing := a.Window - later // queries from j + seeing on do not attend to key j
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
