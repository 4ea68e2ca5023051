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
func (p *scan) place(w *emitter, s Schedule, cut chunking) place {
	at := place{local: loop.LocalID(0, s.Lanes*s.Rows)}
	workgroup, exists := w.boundedGroup(ceilDiv(p.rows, s.Rows) * cut.chunks)
	at.lane = w.let("lane", scalar.Mod(at.local, loop.Int(s.Lanes)))
	row := scalar.Mul(scalar.FloorDiv(workgroup, loop.Int(cut.chunks)), loop.Int(s.Rows))
	row = w.let("at", scalar.Add(row, scalar.FloorDiv(at.local, loop.Int(s.Lanes))))
	at.row = w.let("row", scalar.Min(row, loop.Int(p.rows-1)))
	at.mine = w.let("mine", scalar.And(exists, scalar.Lt(row, loop.Int(p.rows))))
	at.number = w.let("chunk", cut.number(scalar.Mod(workgroup, loop.Int(cut.chunks))))
	return at
}

// maxGathered is the maximum number of totals that a thread gathers: all loads are in flight at
// once.
const maxGathered = 16

// gathers reports whether workgroups combine the totals of the chunks before theirs. Each total
// is then read once for every later chunk, from the cache; otherwise a launch scans the totals.
func (p *scan) gathers(s Schedule) bool {
	if s.Family == SerialScan || p.chunking(s).chunks > maxGathered*s.Lanes || s.Family == RegisterScan && !p.fitsPartials(s.Lanes*s.Rows, s.Each/width+1) {
		return false
	}
	d, apart, gathering := p.e.caps.Profile(), p.work(s), p.work(s)
	gathering.Sectors += p.gatheredBytes(s)
	return gathering.Time(d) <= apart.Time(d)+d.Launch
}

// gatheredBytes is the bytes of totals that workgroups read: half of the totals each.
func (p *scan) gatheredBytes(s Schedule) float64 {
	cut := p.chunking(s)
	return float64(p.rows) * float64(cut.chunks) * float64(cut.chunks) / 2 * float64(p.accBytes())
}

// gather loads a thread's share of the totals before its chunk; combined returns their
// combination. A thread's totals are contiguous, to keep the order across threads; if the
// combination commutes, they are interleaved for coalescing.
func (p *scan) gather(w *emitter, s Schedule, cut chunking, at place) (combined func() []scalar.Expr) {
	unit := 1
	if cut.chunks > s.Lanes && p.rows == 1 && cut.chunks%width == 0 {
		unit = width
	}
	units := ceilDiv(cut.chunks, s.Lanes*unit)
	own, step := scalar.Mul(at.lane, loop.Int(units)), 1
	if p.commutative() {
		own, step = at.lane, s.Lanes
	}
	var totals, before []scalar.Expr // before: whether a total is of an earlier chunk
	m := newVectorizer(w)
	for i := range units {
		first := w.let("gather", scalar.Add(own, loop.Int(i*step)))
		var theirs, values []scalar.Expr
		for j := range unit {
			number := scalar.Add(scalar.Mul(first, loop.Int(unit)), loop.Int(j))
			theirs = append(theirs, loadAll(w, cut.totals, ir.Index{number, at.row})...)
			values = append(values, p.init()...)
			before = append(before, scalar.Lt(number, at.number))
		}
		m.observe(theirs...)
		m.decide()
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
		return p.combineAll(w, totals)
	}
}

// chunkTotals is a workgroup that reduces a chunk whose elements commute: each thread combines
// interleaved elements, and one tree combines the threads.
type chunkTotals struct {
	*vectorizer
	place
	p     *scan
	s     Schedule
	cut   chunking
	unit  int // contiguous elements per thread
	slots []int
}

// treeRadix is the number of threads whose totals one thread combines per barrier: 256 threads
// take two rounds.
const treeRadix = 16

func (p *scan) totalCommutative(s Schedule, cut chunking) Launch {
	w := p.e.sibling().writer(s.Lanes * s.Rows)
	t := &chunkTotals{vectorizer: newVectorizer(w), place: p.place(w, s, cut), p: p, s: s, cut: cut, unit: 1}
	if s.Family == RegisterScan {
		t.unit = width
	}
	for _, a := range p.accs {
		t.slots = append(t.slots, t.shared("totals"+t.name(""), a.DType, 1, s.Lanes*s.Rows))
	}
	total := t.vars("total", p.init())
	t.combine(t.let("from", scalar.Mul(t.number, loop.Int(cut.chunk/t.unit))), total)
	t.reduce(total)
	t.when(scalar.And(t.mine, scalar.Eq(t.lane, loop.Int(0))), func() { saveAll(w, cut.totals, ir.Index{t.number, t.row}, total) })
	return t.launch(p.name)
}

// combine reduces the thread's elements of the chunk that begins at unit from.
func (t *chunkTotals) combine(from scalar.Expr, total []scalar.Expr) {
	tile := t.s.Lanes * t.s.Each
	if t.cut.chunk <= tile {
		t.tile(from, total)
		return
	}
	to := t.let("to", scalar.Min(scalar.Add(from, loop.Int(t.cut.chunk/t.unit)), loop.Int(t.p.length/t.unit)))
	t.loop("tile", from, to, tile/t.unit, t.p.length/t.unit-1, func(at scalar.Expr) { t.tile(at, total) })
}

// tile combines the thread's elements of a tile into a total.
func (t *chunkTotals) tile(from scalar.Expr, total []scalar.Expr) {
	units, whole := t.p.length/t.unit, t.cut.whole(t.p, t.s)
	var values []scalar.Expr
	for i := range t.s.Each / t.unit {
		unit, inside := t.let("unit", scalar.Add(from, scalar.Add(t.lane, loop.Int(i*t.s.Lanes)))), t.mine
		if !whole {
			inside = t.let("inside", scalar.And(t.mine, scalar.Lt(unit, loop.Int(units))))
			unit = t.let("near", scalar.Min(unit, loop.Int(units-1)))
		}
		for j := range t.unit {
			x := t.p.element(t.emitter, t.row, scalar.Add(scalar.Mul(unit, loop.Int(t.unit)), loop.Int(j)))
			if inside.Op != scalar.OpConst {
				x = choose(inside, x, t.p.init())
			}
			values = append(values, x...)
		}
	}
	t.observe(values...)
	t.decide()
	t.load(values)
	t.setAll(total, t.p.combineAll(t.emitter, append(total, t.letAll("x", values)...)))
}

// reduce combines the totals of a row's threads in its first thread.
func (t *chunkTotals) reduce(total []scalar.Expr) {
	for n := t.s.Lanes; n > 1; {
		rest := ceilDiv(n, treeRadix)
		t.when(scalar.Lt(t.lane, loop.Int(n)), func() { t.p.storeSets(t.emitter, t.slots, t.local, [][]scalar.Expr{total}) })
		t.barrier()
		t.when(scalar.Lt(t.lane, loop.Int(rest)), func() {
			sum := total
			for other := rest; other < n; other += rest {
				theirs := t.p.loadSets(t.emitter, t.slots, scalar.Add(t.local, loop.Int(other)), 1)
				sum = t.letAll("sum", t.p.combine(sum, theirs[0]))
			}
			t.setAll(total, sum)
		})
		n = rest
	}
}
