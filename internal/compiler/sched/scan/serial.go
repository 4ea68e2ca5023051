package scan

import (
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// serialScanner is a workgroup that scans adjacent rows, each shared by a few threads: per
// iteration a thread loads contiguous elements of its row and combines them, and the threads of
// the row exchange their totals.
type serialScanner struct {
	*emit.Emitter
	threadPosition
	p      *scan
	s      emit.Schedule
	cut    chunking
	to     scalar.Expr // the end of the chunk
	totals []int       // workgroup arrays, one per running value
	carry  []scalar.Expr
}

// serial scans chunks of adjacent rows.
func (p *scan) serial(s emit.Schedule, cut chunking) emit.Launch {
	t := p.newSerial(s, cut)
	init := p.init()
	if cut.starts != nil {
		init = emit.LoadAll(t.Emitter, cut.starts, ir.Index{t.number, t.row})
	}
	t.carry = t.Vars("carry", init)
	from := t.Let("from", scalar.Mul(t.number, loop.Int(cut.chunk)))
	t.to = t.Let("to", scalar.Min(scalar.Add(from, loop.Int(cut.chunk)), loop.Int(p.length)))
	t.Loop("tile", from, t.to, s.Lanes*s.Each, p.length-1, t.tile)
	if cut.first {
		t.When(scalar.And(t.mine, scalar.Eq(t.lane, loop.Int(0))), func() {
			emit.SaveAll(t.Emitter, cut.totals, ir.Index{t.number, t.row}, t.carry)
		})
	}
	return t.Launch(p.name)
}

func (p *scan) newSerial(s emit.Schedule, cut chunking) *serialScanner {
	w := p.e.Sibling().WithThreads(1)
	w.Workgroup = [3]int{s.Rows, s.Lanes, 1}
	t := &serialScanner{Emitter: w, threadPosition: p.place(w, s, cut), p: p, s: s, cut: cut}
	for _, a := range p.accs {
		if s.Lanes > 1 {
			t.totals = append(t.totals, t.Shared("totals"+t.Name(""), a.DType, 1, s.Lanes*s.Rows))
		}
	}
	return t
}

// tile scans the tile of each row that begins at tile.
func (t *serialScanner) tile(tile scalar.Expr) {
	first := t.Let("first", scalar.Add(tile, scalar.Mul(t.lane, loop.Int(t.s.Each))))
	elements := make([]serialElement, t.s.Each)
	for e := range elements {
		elements[e] = t.loadElement(scalar.Add(first, loop.Int(e)))
	}
	before, all := t.exclusive(elements)
	if !t.cut.first {
		t.saveScan(before, elements)
	}
	t.SetAll(t.carry, t.p.combine(t.carry, all))
}

// serialElement is an element of a thread: its index, clamped to the row, whether it is in the
// chunk, and its terms.
type serialElement struct {
	at, inside scalar.Expr
	values     []scalar.Expr
}

// loadElement loads element i of the row.
func (t *serialScanner) loadElement(i scalar.Expr) serialElement {
	x := serialElement{i, t.mine, nil}
	if tile := t.s.Lanes * t.s.Each; tile > 1 && (t.p.length != t.cut.chunk*t.cut.chunks || t.cut.chunk%tile != 0) {
		x.at, x.inside = scalar.Min(i, loop.Int(t.p.length-1)), t.Let("inside", scalar.And(t.mine, scalar.Lt(i, t.to)))
	}
	if x.inside.Op == scalar.OpConst {
		x.values = t.LetAll("x", t.p.element(t.Emitter, t.row, x.at))
		return x
	}
	x.values = t.Vars("x", t.p.init())
	t.When(x.inside, func() { t.SetAll(x.values, t.p.element(t.Emitter, t.row, x.at)) })
	return x
}

// exclusive returns the exclusive scan over the threads of the row, and the total of all.
func (t *serialScanner) exclusive(elements []serialElement) (before, all []scalar.Expr) {
	own := elements[0].values
	for _, x := range elements[1:] {
		own = t.LetAll("own", t.p.combine(own, x.values))
	}
	if t.s.Lanes == 1 {
		return t.p.init(), own
	}
	at := func(lane scalar.Expr) scalar.Expr { return scalar.Add(scalar.Mul(lane, loop.Int(t.s.Rows)), t.column) }
	for k, slot := range t.totals {
		t.Put(slot, at(t.lane), own[k])
	}
	t.Barrier()
	before, all = t.p.init(), t.p.init()
	for lane := range t.s.Lanes {
		theirs := make([]scalar.Expr, len(t.totals))
		for k, a := range t.p.accs {
			theirs[k] = scalar.LoadAt(t.totals[k], a.DType, at(loop.Int(lane)))
		}
		theirs = t.LetAll("theirs", theirs)
		next := t.p.combine(before, theirs)
		for k := range next {
			next[k] = scalar.Select(scalar.Lt(loop.Int(lane), t.lane), next[k], before[k])
		}
		before, all = t.LetAll("before", next), t.LetAll("all", t.p.combine(all, theirs))
	}
	t.Barrier()
	return before, all
}

// saveScan stores the scan of the thread's elements.
func (t *serialScanner) saveScan(before []scalar.Expr, elements []serialElement) {
	running := t.carry
	if t.s.Lanes > 1 {
		running = t.LetAll("running", t.p.combine(t.carry, before))
	}
	for _, x := range elements {
		next := t.LetAll("next", t.p.combine(running, x.values))
		kept := next
		if t.p.exclusive {
			kept = running
		}
		t.When(x.inside, func() { t.p.save(t.Emitter, t.row, x.at, kept) })
		running = next
	}
}
