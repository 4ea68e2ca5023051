package scan

import (
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// padding is the number of elements after which workgroup memory has a pad. Pads avoid bank
// conflicts between threads whose elements are a power of two apart.
const padding = 32

// blockScanner is a workgroup that scans its rows tile by tile. Elements are loaded and stored
// coalesced through workgroup memory, where each thread scans contiguous elements.
type blockScanner struct {
	*emit.Emitter
	threadPosition
	p             *scan
	s             emit.Schedule
	cut           chunking
	threads, tile int         // per workgroup, and elements of a row per tile
	first, last   scalar.Expr // the first element of the workgroup's chunk of each row, and the end
	cells, scans  []int       // workgroup arrays, one per running value
}

// block scans chunks of rows.
func (p *scan) block(s emit.Schedule, cut chunking) emit.Launch {
	t := p.newBlock(s, cut)
	carry := t.Vars("carry", t.start())
	pass := func(from scalar.Expr) {
		t.loadTile(from)
		before, all := t.exclusive(t.ownTotal())
		if !cut.first {
			t.scanOwn(p.combine(carry, before))
			t.saveTile(from)
		}
		if cut.chunk > t.tile || cut.first {
			t.SetAll(carry, p.combine(carry, all))
		}
	}
	if cut.chunk <= t.tile {
		pass(t.first)
	} else {
		t.Loop("tile", t.first, t.last, t.tile, p.length-1, func(from scalar.Expr) {
			pass(from)
			t.Barrier()
		})
	}
	if cut.first {
		t.When(scalar.And(t.mine, scalar.Eq(t.lane, loop.Int(0))), func() { emit.SaveAll(t.Emitter, cut.totals, ir.Index{t.number, t.row}, carry) })
	}
	return t.Launch(p.name)
}

// start returns the initial running values of the chunk.
func (t *blockScanner) start() []scalar.Expr {
	switch {
	case t.cut.starts != nil:
		return emit.LoadAll(t.Emitter, t.cut.starts, ir.Index{t.number, t.row})
	case t.cut.gathers():
		_, all := t.exclusive(t.p.gather(t.Emitter, t.s, t.cut, t.threadPosition)())
		return all
	}
	return t.p.init()
}

func (p *scan) newBlock(s emit.Schedule, cut chunking) *blockScanner {
	threads := s.Lanes * s.Rows
	w := p.e.Sibling().WithThreads(threads)
	t := &blockScanner{Emitter: w, threadPosition: p.place(w, s, cut), p: p, s: s, cut: cut, threads: threads, tile: s.Lanes * s.Each}
	t.first = t.Let("first", scalar.Mul(t.number, loop.Int(cut.chunk)))
	t.last = t.Let("last", scalar.Min(scalar.Add(t.first, loop.Int(cut.chunk)), loop.Int(p.length)))
	n := threads * s.Each
	for _, a := range p.accs {
		t.cells = append(t.cells, t.Shared("cells"+t.Name(""), a.DType, 1, n+n/padding))
		t.scans = append(t.scans, t.Shared("scans"+t.Name(""), a.DType, 1, 2*threads))
	}
	return t
}

// cell is the padded index of element i of the tile.
func (t *blockScanner) cell(i scalar.Expr) scalar.Expr {
	return scalar.Add(i, scalar.FloorDiv(i, loop.Int(padding)))
}

func (t *blockScanner) load(slots []int, at scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(slots))
	for k, a := range t.p.accs {
		out[k] = scalar.LoadAt(slots[k], a.DType, at)
	}
	return out
}

func (t *blockScanner) put(slots []int, at scalar.Expr, values []scalar.Expr) {
	at = t.Let("at", at)
	for k := range t.p.accs {
		t.Emitter.Put(slots[k], at, values[k])
	}
}

// coalesced writes f for the elements of the tile that begins at from, with neighbouring
// threads on neighbouring elements.
func (t *blockScanner) coalesced(from scalar.Expr, f func(number, row, i, inside scalar.Expr)) {
	t.Times("each", t.s.Each, func(each scalar.Expr) {
		number := t.Let("number", scalar.Add(scalar.Mul(each, loop.Int(t.threads)), t.local))
		row := t.Let("row", scalar.Add(t.firstRow, scalar.FloorDiv(number, loop.Int(t.tile))))
		i := t.Let("i", scalar.Add(from, scalar.Mod(number, loop.Int(t.tile))))
		inside := scalar.And(scalar.Lt(row, loop.Int(t.p.rows)), scalar.Lt(i, t.last))
		f(number, t.Let("near_row", scalar.Min(row, loop.Int(t.p.rows-1))), t.Let("near", scalar.Min(i, loop.Int(t.p.length-1))), inside)
	})
}

// loadTile loads the terms of a tile into workgroup memory.
func (t *blockScanner) loadTile(from scalar.Expr) {
	t.coalesced(from, func(number, row, i, inside scalar.Expr) {
		values := t.p.element(t.Emitter, row, i)
		for k, a := range t.p.accs {
			values[k] = scalar.Select(inside, values[k], a.Init)
		}
		t.put(t.cells, t.cell(number), values)
	})
	t.Barrier()
}

// own writes f for the thread's own contiguous elements.
func (t *blockScanner) own(f func(at scalar.Expr)) {
	first := t.Let("own", scalar.Mul(t.local, loop.Int(t.s.Each)))
	t.Times("each", t.s.Each, func(each scalar.Expr) { f(t.Let("cell", t.cell(scalar.Add(first, each)))) })
}

// ownTotal returns the total of the thread's own elements.
func (t *blockScanner) ownTotal() []scalar.Expr {
	sum := t.Vars("sum", t.p.init())
	t.own(func(at scalar.Expr) { t.SetAll(sum, t.p.combine(sum, t.load(t.cells, at))) })
	return sum
}

// exclusive returns the exclusive scan over the threads of a row and the total of all, by
// recursive doubling with double buffering.
func (t *blockScanner) exclusive(own []scalar.Expr) (before, all []scalar.Expr) {
	half := 0
	at := func(i scalar.Expr) scalar.Expr { return scalar.Add(loop.Int(half*t.threads), i) }
	t.put(t.scans, at(t.local), own)
	t.Barrier()
	for reach := 1; reach < t.s.Lanes; reach *= 2 {
		near := t.LetAll("near", t.load(t.scans, at(t.local)))
		far := t.LetAll("far", t.load(t.scans, at(scalar.Max(scalar.Sub(t.local, loop.Int(reach)), loop.Int(0)))))
		sum := t.p.combine(far, near)
		for k := range sum {
			sum[k] = scalar.Select(scalar.Ge(t.lane, loop.Int(reach)), sum[k], near[k])
		}
		half = 1 - half
		t.put(t.scans, at(t.local), sum)
		t.Barrier()
	}
	before = t.load(t.scans, at(scalar.Max(scalar.Sub(t.local, loop.Int(1)), loop.Int(0))))
	for k, a := range t.p.accs {
		before[k] = scalar.Select(scalar.Gt(t.lane, loop.Int(0)), before[k], a.Init)
	}
	end := scalar.Add(scalar.Sub(t.local, t.lane), loop.Int(t.s.Lanes-1))
	return t.LetAll("before", before), t.LetAll("all", t.load(t.scans, at(end)))
}

// scanOwn replaces the terms of the thread's own elements by their scan.
func (t *blockScanner) scanOwn(start []scalar.Expr) {
	running := t.Vars("running", start)
	t.own(func(at scalar.Expr) {
		next := t.LetAll("next", t.p.combine(running, t.load(t.cells, at)))
		kept := next
		if t.p.exclusive {
			kept = running
		}
		for k := range t.p.accs {
			t.Emitter.Put(t.cells[k], at, kept[k])
		}
		t.SetAll(running, next)
	})
	t.Barrier()
}

// saveTile stores the results of a tile.
func (t *blockScanner) saveTile(from scalar.Expr) {
	t.coalesced(from, func(number, row, i, inside scalar.Expr) {
		t.When(scalar.And(t.exists, inside), func() { t.p.save(t.Emitter, row, i, t.load(t.cells, t.cell(number))) })
	})
}
