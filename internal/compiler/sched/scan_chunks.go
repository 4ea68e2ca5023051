package sched

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// place is the position of a thread whose neighbours share its row.
type place struct {
	local, lane scalar.Expr // the thread's index in the workgroup and in the row
	row, mine   scalar.Expr // the thread's row, and whether it exists
	number      scalar.Expr // of the workgroup's chunk in the row
}

// place computes the position in workgroups of Rows rows with Lanes threads each.
func (p *prefix) place(w *writer, s Schedule, of span) place {
	at := place{local: loop.LocalID(0, s.Lanes*s.Rows)}
	workgroup, exists := w.boundedGroup(ceilDiv(p.rows, s.Rows) * of.chunks)
	at.lane = w.let("lane", scalar.Mod(at.local, loop.Int(s.Lanes)))
	row := scalar.Mul(scalar.FloorDiv(workgroup, loop.Int(of.chunks)), loop.Int(s.Rows))
	row = w.let("at", scalar.Add(row, scalar.FloorDiv(at.local, loop.Int(s.Lanes))))
	at.row = w.let("row", scalar.Min(row, loop.Int(p.rows-1)))
	at.mine = w.let("mine", scalar.And(exists, scalar.Lt(row, loop.Int(p.rows))))
	at.number = w.let("chunk", of.number(scalar.Mod(workgroup, loop.Int(of.chunks))))
	return at
}

// maxGathered is the maximum number of totals that a thread gathers: all loads are in flight at
// once.
const mostGathered = 16

// gathers reports whether workgroups combine the totals of the chunks before theirs. Each total
// is then read once for every later chunk, from the cache; otherwise a launch scans the totals.
func (p *prefix) gathers(s Schedule) bool {
	if s.Family == Lines || p.span(s).chunks > mostGathered*s.Lanes || s.Family == Strips && !p.meets(s.Lanes*s.Rows, s.Each/width+1) {
		return false
	}
	d, apart, gathering := p.e.caps.Profile(), p.work(s), p.work(s)
	gathering.Sectors += p.gatheredBytes(s)
	return gathering.Time(d) <= apart.Time(d)+d.Launch
}

// gatheredBytes is the bytes of totals that workgroups read: half of the totals each.
func (p *prefix) gatheredBytes(s Schedule) float64 {
	of := p.span(s)
	return float64(p.rows) * float64(of.chunks) * float64(of.chunks) / 2 * float64(p.accBytes())
}

// gather loads a thread's share of the totals before its chunk; combined returns their
// combination. A thread's totals are contiguous, to keep the order across threads; if the
// combination commutes, they are interleaved for coalescing.
func (p *prefix) gather(w *writer, s Schedule, of span, at place) (combined func() []scalar.Expr) {
	unit := 1
	if of.chunks > s.Lanes && p.rows == 1 && of.chunks%width == 0 {
		unit = width
	}
	units := ceilDiv(of.chunks, s.Lanes*unit)
	own, step := scalar.Mul(at.lane, loop.Int(units)), 1
	if p.anyOrder() {
		own, step = at.lane, s.Lanes
	}
	var totals, before []scalar.Expr // before: whether a total is of an earlier chunk
	m := newMover(w)
	for i := range units {
		first := w.let("gather", scalar.Add(own, loop.Int(i*step)))
		var theirs, values []scalar.Expr
		for j := range unit {
			number := scalar.Add(scalar.Mul(first, loop.Int(unit)), loop.Int(j))
			theirs = append(theirs, loadAll(w, of.totals, ir.Index{number, at.row})...)
			values = append(values, p.init()...)
			before = append(before, scalar.Lt(number, at.number))
		}
		m.see(theirs...)
		m.settle()
		values = w.vars("total", values)
		w.when(before[i*unit], func() {
			m.load(theirs)
			w.setAll(values, theirs)
		})
		totals = append(totals, values...)
	}
	return func() []scalar.Expr {
		n := len(p.accs)
		for i, is := range before {
			if i%unit > 0 { // a vector may extend past the last earlier chunk
				copy(totals[i*n:], choose(is, totals[i*n:][:n], p.init()))
			}
		}
		return p.inTurn(w, totals)
	}
}

// chunkTotals is a workgroup that reduces a chunk whose elements commute: each thread combines
// interleaved elements, and one tree combines the threads.
type prefixTotals struct {
	*mover
	place
	p     *prefix
	s     Schedule
	of    span
	unit  int // contiguous elements per thread
	slots []int
}

// treeRadix is the number of threads whose totals one thread combines per barrier: 256 threads
// take two rounds.
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

// combine reduces the thread's elements of the chunk that begins at unit from.
func (t *prefixTotals) combine(from scalar.Expr, total []scalar.Expr) {
	tile := t.s.Lanes * t.s.Each
	if t.of.chunk <= tile {
		t.tile(from, total)
		return
	}
	to := t.let("to", scalar.Min(scalar.Add(from, loop.Int(t.of.chunk/t.unit)), loop.Int(t.p.length/t.unit)))
	t.loop("tile", from, to, tile/t.unit, t.p.length/t.unit-1, func(at scalar.Expr) { t.tile(at, total) })
}

// tile combines the thread's elements of a tile into a total.
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

// reduce combines the totals of a row's threads in its first thread.
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
