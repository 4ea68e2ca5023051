package scan

import (
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scan is a scan along the rows of a tensor. The elements of a row are stride apart; rows that
// start within one stride are adjacent.
type scan struct {
	e                  *emit.Emitter // of another kernel of the same group
	name               string
	accs               []ir.Accumulator
	combine            func(a, b []scalar.Expr) []scalar.Expr
	exclusive, reverse bool
	// rows is the number of rows, stride the distance between the elements of a row, and so the
	// number of adjacent rows.
	rows, stride, length int
	tensors              int // accessed by element and save
	// element returns the terms of element i of a row, kept the stores of its results, and save
	// writes these stores. Scans of the totals between kernels have no kept.
	element func(w *emit.Emitter, row, i scalar.Expr) []scalar.Expr
	kept    func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr) []emit.PendingStore
	save    func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr)
}

// scanOf returns the scan of a group, or nil where it has no elements.
func scanOf(e *emit.Emitter, g *fusion.Group) *scan {
	m := g.Members[0]
	n := m.Node
	l := n.Def().Lower.(*ir.PrefixLowering)
	dims, _ := n.Types()[0].Shape.Ints()
	axis := l.Axis(n)
	if fusion.Product(dims) == 0 {
		return nil
	}
	lines := append([]int{}, dims...)
	lines[axis] = 1
	place := func(w *emit.Emitter, row, i scalar.Expr) ir.Index {
		at := w.Unflatten(row, lines)
		if l.Reverse(n) {
			i = scalar.Sub(loop.Int(dims[axis]-1), i)
		}
		at[axis] = w.Simplify(i)
		return at
	}
	results := func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr) (stores []emit.PendingStore) {
		if l.Finish != nil {
			acc = l.Finish(n, acc)
		}
		at := place(w, row, i)
		for k, t := range m.Store {
			if t != nil {
				stores = append(stores, emit.PendingStore{Tensor: t, At: at, Value: acc[k]})
			}
		}
		return stores
	}
	return &scan{
		e: e, name: g.Name(), accs: l.Accumulators(n), exclusive: l.Exclusive(n), reverse: l.Reverse(n),
		rows: fusion.Product(lines), stride: fusion.Product(dims[axis+1:]), length: dims[axis],
		tensors: len(g.Reads()) + len(g.Writes()),
		combine: func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(n, a, b) },
		element: func(w *emit.Emitter, row, i scalar.Expr) []scalar.Expr {
			return l.Element(n, place(w, row, i), w.Reader().Operand(n))
		},
		kept: results,
		save: func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr) {
			w.Add(w.StoreAll(results(w, row, i, acc))...)
		},
	}
}

// launches splits rows into chunks over workgroups where the schedule says so: a
// reduce-then-scan. The first launch reduces each chunk to its total; the last scans each chunk
// from the exclusive prefix of its totals. Each workgroup combines the totals before its chunk
// itself, or, where that takes longer than a launch, a launch between scans them. No workgroup
// waits for another.
func (p *scan) launches(s emit.Schedule) []emit.Launch {
	cut := p.chunking(s)
	if cut.chunks == 1 {
		return []emit.Launch{p.kernel(s, cut)}
	}
	cut.totals = p.scratch("total", cut.chunks, p.rows)
	out := []emit.Launch{p.reduceChunks(s, cut)}
	if !p.gathers(s) {
		cut.starts = p.scratch("start", cut.chunks, p.rows)
		out = append(out, p.scanTotals(cut)...)
	}
	return append(out, p.kernel(s, cut))
}

// reduceChunks is the launch that reduces chunks to their totals.
func (p *scan) reduceChunks(s emit.Schedule, cut chunking) emit.Launch {
	first := *p
	first.name = p.name + "_totals"
	cut.first = true
	if s.Family != emit.SerialScan && p.commutative() {
		return first.totalCommutative(s, cut)
	}
	return first.kernel(s, cut)
}

// scanTotals scans the totals of chunks.
func (p *scan) scanTotals(cut chunking) []emit.Launch {
	starts := *p
	starts.name, starts.exclusive, starts.length, starts.stride, starts.tensors = p.name+"_starts", true, cut.chunks, p.rows, 2*len(p.accs)
	starts.kept = nil
	starts.element = func(w *emit.Emitter, row, i scalar.Expr) []scalar.Expr {
		return emit.LoadAll(w, cut.totals, ir.Index{i, row})
	}
	starts.save = func(w *emit.Emitter, row, i scalar.Expr, acc []scalar.Expr) {
		emit.SaveAll(w, cut.starts, ir.Index{i, row}, acc)
	}
	return starts.launches(space{&starts}.rule())
}

// scratch allocates memory for sets of running values.
func (p *scan) scratch(name string, dims ...int) []*fusion.Tensor {
	out := make([]*fusion.Tensor, len(p.accs))
	for i, a := range p.accs {
		out[i] = p.e.Partition.Scratch(name, a.DType, dims...)
	}
	return out
}

// chunking is how a kernel splits rows.
type chunking struct {
	chunk, chunks int  // elements per chunk, and chunks per row
	first         bool // the kernel stores totals only
	// totals are the totals by chunk and row, starts their exclusive scan, nil where workgroups
	// gather it.
	totals, starts []*fusion.Tensor
}

// chunking returns the chunks of a schedule: whole tiles, or the row.
func (p *scan) chunking(s emit.Schedule) chunking {
	tile := s.Lanes * s.Each
	tiles := emit.CeilDiv(p.length, tile)
	share := emit.CeilDiv(tiles, s.Split)
	if share == tiles {
		return chunking{chunk: p.length, chunks: 1}
	}
	return chunking{chunk: share * tile, chunks: emit.CeilDiv(tiles, share)}
}

// gathers reports whether workgroups combine the totals before their chunk themselves.
func (s chunking) gathers() bool { return s.totals != nil && !s.first && s.starts == nil }

// number maps a workgroup's number to its chunk of the row. The second pass runs in reverse,
// since the chunks that were read last are in the cache.
func (s chunking) number(i scalar.Expr) scalar.Expr {
	if s.first || s.totals == nil {
		return i
	}
	return scalar.Sub(loop.Int(s.chunks-1), i)
}

// whole reports whether workgroups have whole tiles of a schedule only.
func (s chunking) whole(p *scan, by emit.Schedule) bool {
	return p.length == s.chunk*s.chunks && s.chunk%(by.Lanes*by.Each) == 0
}

// commutative reports whether elements may be combined in any order.
func (p *scan) commutative() bool {
	a, b := make([]scalar.Expr, len(p.accs)), make([]scalar.Expr, len(p.accs))
	for i, acc := range p.accs {
		a[i], b[i] = scalar.FreeVar("a"+strconv.Itoa(i), acc.DType), scalar.FreeVar("b"+strconv.Itoa(i), acc.DType)
	}
	return emit.Commutes(p.combine(a, b))
}

func (p *scan) kernel(s emit.Schedule, cut chunking) emit.Launch {
	switch s.Family {
	case emit.SerialScan:
		return p.serial(s, cut)
	case emit.RegisterScan:
		return p.register(s, cut)
	}
	return p.block(s, cut)
}

// init returns the initial running values.
func (p *scan) init() []scalar.Expr {
	out := make([]scalar.Expr, len(p.accs))
	for i, a := range p.accs {
		out[i] = a.Init
	}
	return out
}

// combineAll combines sets of running values in order.
func (p *scan) combineAll(w *emit.Emitter, values []scalar.Expr) []scalar.Expr {
	n := len(p.accs)
	all := values[:n]
	for i := n; i < len(values); i += n {
		all = w.LetAll("sum", p.combine(all, values[i:i+n]))
	}
	return all
}

// threadPosition is the position of a thread among the rows of a scan.
type threadPosition struct {
	local, lane scalar.Expr // the thread's index in the workgroup's first axis, and in its row
	column      scalar.Expr // the row's index in the workgroup
	firstRow    scalar.Expr // of the workgroup
	exists      scalar.Expr // the workgroup exists
	row, mine   scalar.Expr // the thread's row, clamped, and whether it exists
	number      scalar.Expr // of the workgroup's chunk in the row
}

// place computes the position in workgroups of Rows rows with Lanes threads each. Neighbouring
// threads share a row, and so do neighbouring workgroups; in a serial scan they have adjacent rows.
func (p *scan) place(w *emit.Emitter, s emit.Schedule, cut chunking) threadPosition {
	var at threadPosition
	groups := emit.CeilDiv(p.rows, s.Rows)
	workgroup, exists := w.BoundedGroup(groups * cut.chunks)
	group, number := scalar.FloorDiv(workgroup, loop.Int(cut.chunks)), scalar.Mod(workgroup, loop.Int(cut.chunks))
	if s.Family == emit.SerialScan {
		at.local, at.lane = loop.LocalID(0, s.Rows), loop.LocalID(1, s.Lanes)
		at.column = at.local
		group, number = scalar.Mod(workgroup, loop.Int(groups)), scalar.FloorDiv(workgroup, loop.Int(groups))
	} else {
		at.local = loop.LocalID(0, s.Lanes*s.Rows)
		at.lane = w.Let("lane", scalar.Mod(at.local, loop.Int(s.Lanes)))
		at.column = scalar.FloorDiv(at.local, loop.Int(s.Lanes))
	}
	at.exists, at.firstRow = exists, w.Let("first_row", scalar.Mul(group, loop.Int(s.Rows)))
	row := w.Let("at", scalar.Add(at.firstRow, at.column))
	at.row = w.Let("row", scalar.Min(row, loop.Int(p.rows-1)))
	at.mine = w.Let("mine", scalar.And(exists, scalar.Lt(row, loop.Int(p.rows))))
	at.number = w.Let("chunk", cut.number(number))
	return at
}

// maxGathered is the maximum number of totals that a thread gathers: all loads are in flight at
// once.
const maxGathered = 16

// gathers reports whether workgroups combine the totals of the chunks before theirs. Each total
// is then read once for every later chunk, from the cache; otherwise a launch scans the totals.
func (p *scan) gathers(s emit.Schedule) bool {
	if s.Family == emit.SerialScan || p.chunking(s).chunks > maxGathered*s.Lanes || s.Family == emit.RegisterScan && !(space{p}).fitsPartials(s.Lanes*s.Rows, s.Each/emit.VectorWidth+1) {
		return false
	}
	d, work := p.e.Caps.Profile(), space{p}.work(s)
	scanned := work.Time(d) + d.Launch // by a launch of its own
	work.Sectors += p.gatheredBytes(s)
	return work.Time(d) <= scanned
}

// gatheredBytes is the bytes of totals that workgroups read: half of the totals each.
func (p *scan) gatheredBytes(s emit.Schedule) float64 {
	cut := p.chunking(s)
	return float64(p.rows) * float64(cut.chunks) * float64(cut.chunks) / 2 * float64(p.accBytes())
}

// gather loads a thread's share of the totals before its chunk; combined returns their
// combination. A thread's totals are contiguous, to keep the order across threads; if the
// combination commutes, they are interleaved for coalescing.
func (p *scan) gather(w *emit.Emitter, s emit.Schedule, cut chunking, at threadPosition) (combined func() []scalar.Expr) {
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
	v *emit.Vectorizer
	threadPosition
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
	t := &chunkTotals{v: emit.NewVectorizer(w), threadPosition: p.place(w, s, cut), p: p, s: s, cut: cut, unit: 1}
	if s.Family == emit.RegisterScan {
		t.unit = emit.VectorWidth
	}
	for _, a := range p.accs {
		t.slots = append(t.slots, t.v.Shared("totals"+t.v.Name(""), a.DType, 1, s.Lanes*s.Rows))
	}
	total := t.v.Vars("total", p.init())
	t.combine(t.v.Let("from", scalar.Mul(t.number, loop.Int(cut.chunk/t.unit))), total)
	t.reduce(total)
	t.v.When(scalar.And(t.mine, scalar.Eq(t.lane, loop.Int(0))), func() { emit.SaveAll(w, cut.totals, ir.Index{t.number, t.row}, total) })
	return t.v.Launch(p.name)
}

// combine reduces the thread's elements of the chunk that begins at unit from.
func (t *chunkTotals) combine(from scalar.Expr, total []scalar.Expr) {
	tile := t.s.Lanes * t.s.Each
	if t.cut.chunk <= tile {
		t.tile(from, total)
		return
	}
	to := t.v.Let("to", scalar.Min(scalar.Add(from, loop.Int(t.cut.chunk/t.unit)), loop.Int(t.p.length/t.unit)))
	t.v.Loop("tile", from, to, tile/t.unit, t.p.length/t.unit-1, func(at scalar.Expr) { t.tile(at, total) })
}

// tile combines the thread's elements of a tile into a total.
func (t *chunkTotals) tile(from scalar.Expr, total []scalar.Expr) {
	units, whole := t.p.length/t.unit, t.cut.whole(t.p, t.s)
	var values []scalar.Expr
	for i := range t.s.Each / t.unit {
		unit, inside := t.v.Let("unit", scalar.Add(from, scalar.Add(t.lane, loop.Int(i*t.s.Lanes)))), t.mine
		if !whole {
			inside = t.v.Let("inside", scalar.And(t.mine, scalar.Lt(unit, loop.Int(units))))
			unit = t.v.Let("near", scalar.Min(unit, loop.Int(units-1)))
		}
		for j := range t.unit {
			x := t.p.element(t.v.Emitter, t.row, scalar.Add(scalar.Mul(unit, loop.Int(t.unit)), loop.Int(j)))
			if inside.Op != scalar.OpConst {
				x = emit.Choose(inside, x, t.p.init())
			}
			values = append(values, x...)
		}
	}
	t.v.Observe(values...)
	t.v.Decide()
	t.v.Load(values)
	t.v.SetAll(total, t.p.combineAll(t.v.Emitter, append(total, t.v.LetAll("x", values)...)))
}

// reduce combines the totals of a row's threads in its first thread.
func (t *chunkTotals) reduce(total []scalar.Expr) {
	for n := t.s.Lanes; n > 1; {
		rest := emit.CeilDiv(n, treeRadix)
		t.v.When(scalar.Lt(t.lane, loop.Int(n)), func() { t.p.storeSets(t.v.Emitter, t.slots, t.local, [][]scalar.Expr{total}) })
		t.v.Barrier()
		t.v.When(scalar.Lt(t.lane, loop.Int(rest)), func() {
			sum := total
			for other := rest; other < n; other += rest {
				theirs := t.p.loadSets(t.v.Emitter, t.slots, scalar.Add(t.local, loop.Int(other)), 1)
				sum = t.v.LetAll("sum", t.p.combine(sum, theirs[0]))
			}
			t.v.SetAll(total, sum)
		})
		n = rest
	}
}
