package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// turnedRows is how many contracted positions neighbouring threads have of an operand that
// is turned on its way: a sector of memory each, and places in all banks.
const turnedRows = 8

// copies begins to copy the tiles of a step, of the last one again where there is none.
func (p *pipeline) copies(step scalar.Expr) {
	at := p.let("copied", scalar.Min(step, loop.Int(p.steps-1)), p.steps-1)
	stage := p.stage(step)
	k := scalar.Mul(scalar.Add(scalar.Mul(p.part, loop.Int(p.steps)), at), loop.Int(p.t.k))
	k = p.let("k", k, p.parts*p.steps*p.t.k-1)
	load := p.reader().Operand(p.c.Node)
	for i := range p.side {
		s := &p.side[i]
		count := s.copied()
		for v := range ceilDiv(s.tile*p.t.k/count, p.t.threads()) {
			id := scalar.Add(p.lane, loop.Int(v*p.t.threads()))
			kk, free := s.copyPlace(id)
			x := p.copy(s, load, scalar.Add(k, kk), free, count)
			to := scalar.Add(scalar.Mul(p.at(s, stage, kk, loop.Int(0)), loop.Int(width)), scalar.Mul(free, loop.Int(count)))
			x.To, x.ToAt = p.slot, p.Simplify(to)
			p.body = append(p.body, x)
		}
	}
	p.body = append(p.body, &loop.CopyCommit{})
}

// copied is how many elements of a side go at once: a vector, or one where the tile has
// neighbours along another axis than memory.
func (s *side) copied() int {
	if s.kFast {
		return 1
	}
	return width
}

// copyPlace is the contracted position of copy number id in the tile, and its number along
// the free positions.
func (s *side) copyPlace(id scalar.Expr) (k, free scalar.Expr) {
	if !s.kFast {
		return scalar.FloorDiv(id, loop.Int(s.tile/width)), scalar.Mod(id, loop.Int(s.tile/width))
	}
	low, rest := scalar.Mod(id, loop.Int(turnedRows)), scalar.FloorDiv(id, loop.Int(turnedRows))
	return scalar.Add(low, scalar.Mul(scalar.FloorDiv(rest, loop.Int(s.tile)), loop.Int(turnedRows))), scalar.Mod(rest, loop.Int(s.tile))
}

// copy is the copy of so many elements of a side. Beyond the free positions any will do,
// since nothing is made of them; beyond the contracted ones there are zeros.
func (p *pipeline) copy(s *side, load ir.Load, k, free scalar.Expr, count int) *loop.CopyAsync {
	var inside scalar.Expr
	if length := fusion.Product(p.c.K); p.parts*p.steps*p.t.k > length {
		inside = p.Simplify(scalar.Lt(k, loop.Int(length)))
		k = scalar.Min(k, loop.Int(length-1))
	}
	f := scalar.Add(scalar.FloorDiv(s.first, loop.Int(count)), free)
	if n := fusion.Product(s.free); n%s.tile != 0 {
		f = scalar.Min(f, loop.Int(n/count-1))
	}
	f = p.Simplify(scalar.Mul(f, loop.Int(count)))
	x := p.c.Factor(s.operand, p.batch, p.unflatten(f, s.free), p.unflatten(p.Simplify(k), p.c.K), load)
	from, ok := storedAt(ir.F32, p.Simplify(x))
	if !ok {
		panic("an operand does not lie as it was found to")
	}
	return &loop.CopyAsync{From: from.array, FromAt: p.Simplify(from.at), Count: count, Valid: both(from.valid, inside)}
}
