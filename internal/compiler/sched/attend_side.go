package sched

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// attendSide is what goes along one side of the scores: queries or keys.
type attendSide struct {
	count int         // of them
	block int         // of a tile
	first scalar.Expr // of the block at hand
}

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
	if a.Window > 0 {
		lo, hi, whole = a.windowBlocks(lo, hi, whole)
	}
	for i := range whole {
		whole[i] = a.Simplify(whole[i])
	}
	a.blocks(a.Simplify(lo), a.Simplify(hi), whole, body)
}

// windowBlocks leaves out the blocks of columns that the window hides from all the
// rows at hand, or from which it hides all of them, and takes from the whole ones
// those that it hides from some.
func (a *attender) windowBlocks(lo, hi scalar.Expr, whole [2]scalar.Expr) (first, end scalar.Expr, inner [2]scalar.Expr) {
	later, block := a.Keys-a.Queries, loop.Int(a.cols.block)
	from := func(offset int) scalar.Expr {
		return scalar.Max(scalar.Add(a.rows.first, loop.Int(offset)), loop.Int(0))
	}
	up := a.cols.block - 1 // rounds a quotient up
	if a.byQuery {
		hidden := later - a.Window + 1 // query i does not see the keys before i + hidden
		lo = scalar.Max(lo, scalar.FloorDiv(from(hidden), block))
		byAll := scalar.FloorDiv(from(hidden+a.rows.block-1+up), block)
		return lo, hi, [2]scalar.Expr{scalar.Max(lo, byAll), whole[1]}
	}
	seeing := a.Window - later // key j is not seen by queries from j + seeing on
	hi = scalar.Min(hi, scalar.FloorDiv(from(seeing+a.rows.block-1+up), block))
	return lo, hi, [2]scalar.Expr{whole[0], scalar.Min(whole[1], scalar.FloorDiv(from(seeing), block))}
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

// zeroForNone keeps what is subtracted from scores that are all -Inf from
// making NaN of them. A NaN stays.
func zeroForNone(x scalar.Expr) scalar.Expr {
	none := scalar.Lt(x, scalar.ConstF(ir.F32, -math.MaxFloat32))
	return scalar.Select(none, scalar.ConstF(ir.F32, 0), x)
}
