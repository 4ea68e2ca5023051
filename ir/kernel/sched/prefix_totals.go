package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// prefixTotals is a workgroup that leaves what chunks come to whose elements may be combined
// in any order: each thread combines its own of a chunk, whatever lies between them, and
// those of several chunks meet together.
type prefixTotals struct {
	*mover
	place
	p      *prefix
	s      Schedule
	of     span
	unit   int // elements that a thread has side by side
	chunks int // that meet together
	slots  []int
}

// meetAtOnce is how many threads' totals one thread combines after a barrier: those of 256
// meet in two rounds.
const meetAtOnce = 16

func (p *prefix) totalInAnyOrder(s Schedule, of span) Launch {
	w := p.e.another().writer(s.Lanes * s.Rows)
	t := &prefixTotals{mover: newMover(w), place: p.place(w, s, of), p: p, s: s, of: of, unit: 1, chunks: width}
	if s.Family == Strips {
		t.unit = width
	}
	for of.gang%t.chunks != 0 {
		t.chunks /= 2
	}
	for _, a := range p.accs {
		t.slots = append(t.slots, t.shared("totals"+t.name(""), a.DType, t.chunks, s.Lanes*s.Rows))
	}
	if t.chunks == of.gang {
		t.turn(loop.Int(0), nil)
	} else {
		carry := t.vars("carry", p.init())
		t.loop("in_gang", loop.Int(0), loop.Int(of.gang), t.chunks, of.gang-1, func(first scalar.Expr) {
			t.turn(first, carry)
			t.barrier()
		})
	}
	return t.launch(p.name)
}

// turn goes through the next chunks of the gang. carry is what those before come to, nil
// where there are none.
func (t *prefixTotals) turn(first scalar.Expr, carry []scalar.Expr) {
	totals := make([][]scalar.Expr, t.chunks)
	for c := range totals {
		totals[c] = t.vars("total", t.p.init())
		chunk := scalar.Add(scalar.Mul(t.gang, loop.Int(t.of.gang)), scalar.Add(first, loop.Int(c)))
		t.combine(t.let("from", scalar.Mul(chunk, loop.Int(t.of.chunk/t.unit))), totals[c])
	}
	t.meet(totals)
	t.when(scalar.And(t.mine, scalar.Eq(t.lane, loop.Int(0))), func() {
		upTo := carry
		for c, total := range totals {
			if upTo != nil {
				total = t.letAll("up_to", t.p.combine(upTo, total))
			}
			upTo = total
			saveAll(t.writer, t.of.totals, ir.Index{scalar.Add(first, loop.Int(c)), t.gang, t.row}, total)
		}
		if carry != nil {
			t.setAll(carry, upTo)
		}
	})
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
func (t *prefixTotals) meet(totals [][]scalar.Expr) {
	for n := t.s.Lanes; n > 1; {
		rest := ceilDiv(n, meetAtOnce)
		t.when(scalar.Lt(t.lane, loop.Int(n)), func() { t.p.leave(t.writer, t.slots, t.local, totals) })
		t.barrier()
		t.when(scalar.Lt(t.lane, loop.Int(rest)), func() {
			sums := totals
			for other := rest; other < n; other += rest {
				sums = t.combineAll(sums, t.p.told(t.writer, t.slots, scalar.Add(t.local, loop.Int(other)), t.chunks))
			}
			for c := range totals {
				t.setAll(totals[c], sums[c])
			}
		})
		n = rest
	}
}

// combineAll combines sets of running values one by one.
func (t *prefixTotals) combineAll(a, b [][]scalar.Expr) [][]scalar.Expr {
	out := make([][]scalar.Expr, len(a))
	for i := range a {
		out[i] = t.letAll("sum", t.p.combine(a[i], b[i]))
	}
	return out
}
