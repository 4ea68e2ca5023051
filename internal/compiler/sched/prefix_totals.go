package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// prefixTotals is a workgroup that leaves what a chunk comes to whose elements may be combined
// in any order: each thread combines its own, whatever lies between them, and they meet once.
type prefixTotals struct {
	*mover
	place
	p     *prefix
	s     Schedule
	of    span
	unit  int // elements that a thread has side by side
	slots []int
}

// meetAtOnce is how many threads' totals one thread combines after a barrier: those of 256
// meet in two rounds.
const meetAtOnce = 16

func (p *prefix) totalInAnyOrder(s Schedule, of span) Launch {
	w := p.e.another().writer(s.Lanes * s.Rows)
	t := &prefixTotals{mover: newMover(w), place: p.place(w, s, of), p: p, s: s, of: of, unit: 1}
	if s.Family == Strips {
		t.unit = width
	}
	for _, a := range p.accs {
		t.slots = append(t.slots, t.shared("totals"+t.name(""), a.DType, 1, s.Lanes*s.Rows))
	}
	total := t.vars("total", p.init())
	t.combine(t.let("from", scalar.Mul(t.number, loop.Int(of.chunk/t.unit))), total)
	t.meet(total)
	t.when(scalar.And(t.mine, scalar.Eq(t.lane, loop.Int(0))), func() { saveAll(w, of.totals, ir.Index{t.number, t.row}, total) })
	return t.launch(p.name)
}

// combine sets a total to what the thread's elements come to of the chunk that begins at a
// unit.
func (t *prefixTotals) combine(from scalar.Expr, total []scalar.Expr) {
	tile := t.s.Lanes * t.s.Each
	if t.of.chunk <= tile {
		t.tile(from, total)
		return
	}
	to := t.let("to", scalar.Min(scalar.Add(from, loop.Int(t.of.chunk/t.unit)), loop.Int(t.p.length/t.unit)))
	t.loop("tile", from, to, tile/t.unit, t.p.length/t.unit-1, func(at scalar.Expr) { t.tile(at, total) })
}

// tile adds the thread's elements of a tile to a total.
func (t *prefixTotals) tile(from scalar.Expr, total []scalar.Expr) {
	units, whole := t.p.length/t.unit, t.of.whole(t.p, t.s)
	var values []scalar.Expr
	for i := range t.s.Each / t.unit {
		unit, inside := t.let("unit", scalar.Add(from, scalar.Add(t.lane, loop.Int(i*t.s.Lanes)))), t.mine
		if !whole {
			inside = t.let("inside", scalar.And(t.mine, scalar.Lt(unit, loop.Int(units))))
			unit = t.let("near", scalar.Min(unit, loop.Int(units-1)))
		}
		for j := range t.unit {
			x := t.p.element(t.writer, t.row, scalar.Add(scalar.Mul(unit, loop.Int(t.unit)), loop.Int(j)))
			if inside.Op != scalar.OpConst {
				x = choose(inside, x, t.p.init())
			}
			values = append(values, x...)
		}
	}
	t.see(values...)
	t.settle()
	t.load(values)
	t.setAll(total, t.p.inTurn(t.writer, append(total, t.letAll("x", values)...)))
}

// meet combines the totals of a row's threads in the first of them.
func (t *prefixTotals) meet(total []scalar.Expr) {
	for n := t.s.Lanes; n > 1; {
		rest := ceilDiv(n, meetAtOnce)
		t.when(scalar.Lt(t.lane, loop.Int(n)), func() { t.p.leave(t.writer, t.slots, t.local, [][]scalar.Expr{total}) })
		t.barrier()
		t.when(scalar.Lt(t.lane, loop.Int(rest)), func() {
			sum := total
			for other := rest; other < n; other += rest {
				theirs := t.p.told(t.writer, t.slots, scalar.Add(t.local, loop.Int(other)), 1)
				sum = t.letAll("sum", t.p.combine(sum, theirs[0]))
			}
			t.setAll(total, sum)
		})
		n = rest
	}
}
