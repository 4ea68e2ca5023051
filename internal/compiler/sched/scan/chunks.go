package scan

import (
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
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
func (p *scan) place(w *emit.Emitter, s emit.Schedule, cut chunking) place {
	at := place{local: loop.LocalID(0, s.Lanes*s.Rows)}
	workgroup, exists := w.BoundedGroup(emit.CeilDiv(p.rows, s.Rows) * cut.chunks)
	at.lane = w.Let("lane", scalar.Mod(at.local, loop.Int(s.Lanes)))
	row := scalar.Mul(scalar.FloorDiv(workgroup, loop.Int(cut.chunks)), loop.Int(s.Rows))
	row = w.Let("at", scalar.Add(row, scalar.FloorDiv(at.local, loop.Int(s.Lanes))))
	at.row = w.Let("row", scalar.Min(row, loop.Int(p.rows-1)))
	at.mine = w.Let("mine", scalar.And(exists, scalar.Lt(row, loop.Int(p.rows))))
	at.number = w.Let("chunk", cut.number(scalar.Mod(workgroup, loop.Int(cut.chunks))))
	return at
}

// maxGathered is the maximum number of totals that a thread gathers: all loads are in flight at
// once.
const maxGathered = 16

// gathers reports whether workgroups combine the totals of the chunks before theirs. Each total
// is then read once for every later chunk, from the cache; otherwise a launch scans the totals.
func (p *scan) gathers(s emit.Schedule) bool {
	if s.Family == emit.SerialScan || p.chunking(s).chunks > maxGathered*s.Lanes || s.Family == emit.RegisterScan && !p.fitsPartials(s.Lanes*s.Rows, s.Each/emit.VectorWidth+1) {
		return false
	}
	d, apart, gathering := p.e.Caps.Profile(), p.work(s), p.work(s)
	gathering.Sectors += p.gatheredBytes(s)
	return gathering.Time(d) <= apart.Time(d)+d.Launch
}

// gatheredBytes is the bytes of totals that workgroups read: half of the totals each.
func (p *scan) gatheredBytes(s emit.Schedule) float64 {
	cut := p.chunking(s)
	return float64(p.rows) * float64(cut.chunks) * float64(cut.chunks) / 2 * float64(p.accBytes())
}

// gather loads a thread's share of the totals before its chunk; combined returns their
// combination. A thread's totals are contiguous, to keep the order across threads; if the
// combination commutes, they are interleaved for coalescing.
func (p *scan) gather(w *emit.Emitter, s emit.Schedule, cut chunking, at place) (combined func() []scalar.Expr) {
	unit := 1
	if cut.chunks > s.Lanes && p.rows == 1 && cut.chunks%emit.VectorWidth == 0 {
		unit = emit.VectorWidth
	}
	units := emit.CeilDiv(cut.chunks, s.Lanes*unit)
	own, step := scalar.Mul(at.lane, loop.Int(units)), 1
	if p.commutative() {
		own, step = at.lane, s.Lanes
	}
	var totals, before []scalar.Expr // before: whether a total is of an earlier chunk
	m := emit.NewVectorizer(w)
	for i := range units {
		first := w.Let("gather", scalar.Add(own, loop.Int(i*step)))
		var theirs, values []scalar.Expr
		for j := range unit {
			number := scalar.Add(scalar.Mul(first, loop.Int(unit)), loop.Int(j))
			theirs = append(theirs, emit.LoadAll(w, cut.totals, ir.Index{number, at.row})...)
			values = append(values, p.init()...)
			before = append(before, scalar.Lt(number, at.number))
		}
		m.Observe(theirs...)
		m.Decide()
		values = w.Vars("total", values)
		w.When(before[i*unit], func() {
			m.Load(theirs)
			w.SetAll(values, theirs)
		})
		totals = append(totals, values...)
	}
	return func() []scalar.Expr {
		n := len(p.accs)
		for i, is := range before {
			if i%unit > 0 { // a vector may extend past the last earlier chunk
				copy(totals[i*n:], emit.Choose(is, totals[i*n:][:n], p.init()))
			}
		}
		return p.combineAll(w, totals)
	}
}

// chunkTotals is a workgroup that reduces a chunk whose elements commute: each thread combines
// interleaved elements, and one tree combines the threads.
type chunkTotals struct {
	*emit.Vectorizer
	place
	p     *scan
	s     emit.Schedule
	cut   chunking
	unit  int // contiguous elements per thread
	slots []int
}

// treeRadix is the number of threads whose totals one thread combines per barrier: 256 threads
// take two rounds.
const treeRadix = 16

func (p *scan) totalCommutative(s emit.Schedule, cut chunking) emit.Launch {
	w := p.e.Sibling().WithThreads(s.Lanes * s.Rows)
	t := &chunkTotals{Vectorizer: emit.NewVectorizer(w), place: p.place(w, s, cut), p: p, s: s, cut: cut, unit: 1}
	if s.Family == emit.RegisterScan {
		t.unit = emit.VectorWidth
	}
	for _, a := range p.accs {
		t.slots = append(t.slots, t.Shared("totals"+t.Name(""), a.DType, 1, s.Lanes*s.Rows))
	}
	total := t.Vars("total", p.init())
	t.combine(t.Let("from", scalar.Mul(t.number, loop.Int(cut.chunk/t.unit))), total)
	t.reduce(total)
	t.When(scalar.And(t.mine, scalar.Eq(t.lane, loop.Int(0))), func() { emit.SaveAll(w, cut.totals, ir.Index{t.number, t.row}, total) })
	return t.Launch(p.name)
}

// combine reduces the thread's elements of the chunk that begins at unit from.
func (t *chunkTotals) combine(from scalar.Expr, total []scalar.Expr) {
	tile := t.s.Lanes * t.s.Each
	if t.cut.chunk <= tile {
		t.tile(from, total)
		return
	}
	to := t.Let("to", scalar.Min(scalar.Add(from, loop.Int(t.cut.chunk/t.unit)), loop.Int(t.p.length/t.unit)))
	t.Loop("tile", from, to, tile/t.unit, t.p.length/t.unit-1, func(at scalar.Expr) { t.tile(at, total) })
}

// tile combines the thread's elements of a tile into a total.
func (t *chunkTotals) tile(from scalar.Expr, total []scalar.Expr) {
	units, whole := t.p.length/t.unit, t.cut.whole(t.p, t.s)
	var values []scalar.Expr
	for i := range t.s.Each / t.unit {
		unit, inside := t.Let("unit", scalar.Add(from, scalar.Add(t.lane, loop.Int(i*t.s.Lanes)))), t.mine
		if !whole {
			inside = t.Let("inside", scalar.And(t.mine, scalar.Lt(unit, loop.Int(units))))
			unit = t.Let("near", scalar.Min(unit, loop.Int(units-1)))
		}
		for j := range t.unit {
			x := t.p.element(t.Emitter, t.row, scalar.Add(scalar.Mul(unit, loop.Int(t.unit)), loop.Int(j)))
			if inside.Op != scalar.OpConst {
				x = emit.Choose(inside, x, t.p.init())
			}
			values = append(values, x...)
		}
	}
	t.Observe(values...)
	t.Decide()
	t.Load(values)
	t.SetAll(total, t.p.combineAll(t.Emitter, append(total, t.LetAll("x", values)...)))
}

// reduce combines the totals of a row's threads in its first thread.
func (t *chunkTotals) reduce(total []scalar.Expr) {
	for n := t.s.Lanes; n > 1; {
		rest := emit.CeilDiv(n, treeRadix)
		t.When(scalar.Lt(t.lane, loop.Int(n)), func() { t.p.storeSets(t.Emitter, t.slots, t.local, [][]scalar.Expr{total}) })
		t.Barrier()
		t.When(scalar.Lt(t.lane, loop.Int(rest)), func() {
			sum := total
			for other := rest; other < n; other += rest {
				theirs := t.p.loadSets(t.Emitter, t.slots, scalar.Add(t.local, loop.Int(other)), 1)
				sum = t.LetAll("sum", t.p.combine(sum, theirs[0]))
			}
			t.SetAll(total, sum)
		})
		n = rest
	}
}
