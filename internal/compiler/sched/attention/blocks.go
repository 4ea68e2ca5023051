package attention

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// side is one axis of the scores: queries or keys.
type side struct {
	e     *emit.Emitter
	count int         // all positions
	block int         // positions of a block
	first scalar.Expr // first position of the current block
	// thread returns the offset of a thread's i-th row or column from first.
	thread func(i int) (origin scalar.Expr, offset int)
}

func (s *side) blocks() int { return emit.CeilDiv(s.count, s.block) }

// setBlock sets the current block.
func (s *side) setBlock(block scalar.Expr) {
	s.first = s.e.Let("first", scalar.Mul(block, loop.Int(s.block)))
}

// position returns the position of a thread's i-th row or column.
func (s *side) position(i int) scalar.Expr {
	origin, offset := s.thread(i)
	return sum(s.first, origin, loop.Int(offset))
}

// clamp clamps a position, and returns the condition that it was in range.
func (s *side) clamp(pos scalar.Expr) (at, ok scalar.Expr) {
	return withinBounds(pos, s.count, s.count%s.block == 0)
}

// heads is the heads that a workgroup computes. Share neighbouring heads of the queries share one
// of the keys and values.
type heads struct {
	e          *emit.Emitter
	dims       []int    // numbers of the queries' heads
	share      int      // divides the last of dims
	query, key ir.Index // the current heads
}

// set sets the current head of the queries, and that of the keys that it shares.
func (h *heads) set(head scalar.Expr) {
	h.query = h.e.Unflatten(head, h.dims)
	for i, x := range h.query {
		h.query[i] = h.e.Let("head", x)
	}
	h.key = slices.Clone(h.query)
	if last := len(h.key) - 1; last >= 0 {
		h.key[last] = h.e.Let("key_head", scalar.FloorDiv(h.key[last], loop.Int(h.share)))
	}
}

// setKey sets the current head of the keys.
func (h *heads) setKey(head scalar.Expr) {
	dims := slices.Clone(h.dims)
	if last := len(dims) - 1; last >= 0 {
		dims[last] /= h.share
	}
	h.key = h.e.Unflatten(head, dims)
	for i, x := range h.key {
		h.key[i] = h.e.Let("key_head", x)
	}
}

// setSharing sets the current head of the queries to number n of those that share the current head
// of the keys.
func (h *heads) setSharing(n scalar.Expr) {
	h.query = slices.Clone(h.key)
	if last := len(h.key) - 1; last >= 0 {
		head := scalar.Add(scalar.Mul(h.key[last], loop.Int(h.share)), n)
		h.query[last] = h.e.Let("head", head)
	}
}

// of returns the current head of an operand.
func (h *heads) of(operand int) ir.Index {
	if operand == keyOperand || operand == valueOperand {
		return h.key
	}
	return h.query
}

// inMask returns the index into a mask of dims, which broadcasts to the scores, for a score of the
// current head.
func (h *heads) inMask(dims []int, row, col scalar.Expr) ir.Index {
	all := slices.Concat(h.query, ir.Index{row, col})
	at := all[len(all)-len(dims):]
	for i, d := range dims {
		if d == 1 {
			at[i] = loop.Int(0)
		}
	}
	return at
}

// visibility is which keys a query attends to by their positions: those in range, no later ones
// if it is causal, and none before the window.
type visibility struct {
	e          *emit.Emitter
	spec       *ir.Attend
	byQuery    bool // the rows are queries
	rows, cols *side
	unmasked   bool // no score of the current block is masked by its position
}

// end names the exclusive end of the keys visible to the query at a position of s.
func (v *visibility) end(s *side, at scalar.Expr) scalar.Expr {
	limit := loop.Int(v.spec.Keys)
	if v.unmasked {
		return limit
	}
	if v.spec.Causal {
		limit = scalar.Min(scalar.Max(scalar.Add(at, loop.Int(v.spec.Keys-v.spec.Queries+1)), loop.Int(0)), limit)
	}
	if _, ok := s.clamp(at); ok.Op != scalar.OpConst {
		limit = scalar.Select(ok, limit, loop.Int(0))
	}
	if limit.Op == scalar.OpConst {
		return limit
	}
	return v.e.Let("limit", limit)
}

// first names the first key visible to the query at a position, or returns nil without a window.
func (v *visibility) first(at scalar.Expr) scalar.Expr {
	if v.unmasked || v.spec.Window == 0 {
		return nil
	}
	return v.e.Let("first_seen", scalar.Add(at, loop.Int(v.spec.Keys-v.spec.Queries-v.spec.Window+1)))
}

// of returns the condition that the key at a position is visible to a query.
func (v *visibility) of(key scalar.Expr, q query) scalar.Expr {
	if v.unmasked {
		return scalar.ConstBool(true)
	}
	visible := v.e.Simplify(scalar.Lt(key, q.end))
	if q.first != nil {
		visible = v.e.Simplify(scalar.And(visible, scalar.Ge(key, q.first)))
	}
	return visible
}

// blocks narrows [lo, hi) to the blocks of columns that are visible to some of the current rows.
// Those in [whole[0], whole[1]) are visible to all.
func (v *visibility) blocks(lo, hi scalar.Expr) (first, end scalar.Expr, whole [2]scalar.Expr) {
	rows, cols := v.rows, v.cols
	later := v.spec.Keys - v.spec.Queries // query i is at the position of key i + later
	block := loop.Int(cols.block)
	whole = [2]scalar.Expr{lo, scalar.Min(hi, loop.Int(cols.count/cols.block))}
	if v.spec.Causal && v.byQuery {
		seen := scalar.Max(scalar.Add(rows.first, loop.Int(rows.block+later)), loop.Int(0))
		hi = scalar.Min(hi, scalar.FloorDiv(scalar.Add(seen, loop.Int(cols.block-1)), block))
		byAll := scalar.Max(scalar.Add(rows.first, loop.Int(later+1)), loop.Int(0))
		whole[1] = scalar.Min(whole[1], scalar.FloorDiv(byAll, block))
	}
	if v.spec.Causal && !v.byQuery {
		seeing := scalar.Max(scalar.Sub(rows.first, loop.Int(later)), loop.Int(0))
		lo = scalar.Max(lo, scalar.FloorDiv(seeing, block))
		all := scalar.Max(scalar.Add(rows.first, loop.Int(rows.block-1-later+cols.block-1)), loop.Int(0))
		whole[0] = scalar.Max(lo, scalar.FloorDiv(all, block))
	}
	if v.spec.Window > 0 {
		return v.windowBlocks(lo, hi, whole)
	}
	return lo, hi, whole
}

// windowBlocks narrows [lo, hi) to the blocks that the window leaves visible to some of the
// current rows, and whole to those visible to all.
func (v *visibility) windowBlocks(lo, hi scalar.Expr, whole [2]scalar.Expr) (first, end scalar.Expr, inner [2]scalar.Expr) {
	later, block := v.spec.Keys-v.spec.Queries, loop.Int(v.cols.block)
	from := func(offset int) scalar.Expr {
		return scalar.Max(scalar.Add(v.rows.first, loop.Int(offset)), loop.Int(0))
	}
	up := v.cols.block - 1 // rounds a quotient up
	if v.byQuery {
		hidden := later - v.spec.Window + 1 // query i does not attend to the keys before i + hidden
		lo = scalar.Max(lo, scalar.FloorDiv(from(hidden), block))
		byAll := scalar.FloorDiv(from(hidden+v.rows.block-1+up), block)
		return lo, hi, [2]scalar.Expr{scalar.Max(lo, byAll), whole[1]}
	}
	seeing := v.spec.Window - later // queries from j + seeing on do not attend to key j
	hi = scalar.Min(hi, scalar.FloorDiv(from(seeing+v.rows.block-1+up), block))
	return lo, hi, [2]scalar.Expr{whole[0], scalar.Min(whole[1], scalar.FloorDiv(from(seeing), block))}
}
