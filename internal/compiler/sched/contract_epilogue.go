package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxDirectOps is the maximum number of unrolled epilogue operations of a thread, over all its
// accumulators.
const maxDirectOps = 128

// storeDirect stores the accumulators of a thread from its registers, one by one. Vector stores
// would make the driver keep accumulators in adjacent registers: products of 4096 ran at 35
// TFLOP/s with them and at 41 without (H200, WebGPU). In CUDA scalar stores cost 2 %.
func (te *tileEmitter) storeDirect(result resultStores) {
	var body []loop.Stmt
	for i := range te.t.rm {
		row := te.freePosition(&te.side[0], i)
		var inRow []loop.Stmt
		for j := range te.t.rn {
			column := te.freePosition(&te.side[1], j)
			at := te.out.point(te.freeAt(&te.side[0], row), te.freeAt(&te.side[1], column))
			stores := te.storeAll(result(scalar.FreeVar(te.acc(i*te.t.rn+j), ir.F32), at))
			inRow = append(inRow, te.guardFree(&te.side[1], column, stores)...)
		}
		body = append(body, te.guardFree(&te.side[0], row, inRow)...)
	}
	te.body = append(te.body, guard(te.valid, body)...)
}

// storeStaged stores the accumulators through workgroup memory, in rounds of as many rows as fit.
// Each thread then computes the epilogue of four neighbouring results at a time, in a loop, and
// stores are coalesced.
func (te *tileEmitter) storeStaged(result resultStores) {
	rows := te.roundRows()
	rounds := te.t.m / rows
	outer := append(te.body, &loop.Barrier{})
	te.body = nil
	round := loop.Int(0)
	name := te.name("round")
	if rounds > 1 {
		round = scalar.NewVar(name, ir.I32, 0, int64(rounds-1))
	}
	te.stageRound(round, rows)
	te.body = append(te.body, &loop.Barrier{})
	te.storeRound(round, rows, result)
	if rounds > 1 {
		te.body = append(te.body, &loop.Barrier{})
		te.body = []loop.Stmt{&loop.For{Var: name, Start: loop.Int(0), End: loop.Int(rounds), Step: loop.Int(1), Body: te.body}}
	}
	te.body = append(outer, te.body...)
}

// roundRows returns the number of tile rows that workgroup memory holds in a round: some
// registers of all threads, or of some threads.
func (te *tileEmitter) roundRows() int {
	rows := 4 * te.t.m / te.t.rm
	for rows*te.t.n*4 > te.t.sharedBytes() {
		rows /= 2
	}
	return rows
}

// stageRound stores the accumulators of a round's rows into workgroup memory. A thread has four
// neighbouring rows in each of its register groups.
func (te *tileEmitter) stageRound(round scalar.Expr, rows int) {
	s, c := &te.side[0], &te.side[1]
	perGroup := te.t.m / te.t.rm / (rows / 4) // rounds for a group of registers
	local := te.let("local", scalar.Mul(scalar.Mod(s.thread, loop.Int(rows/4)), loop.Int(4)), rows-4)
	var groups [][]loop.Stmt
	for first := 0; first < te.t.rm; first += 4 {
		var stores []loop.Stmt
		for i := first; i < first+4; i++ {
			for j := 0; j < te.t.rn; j += 4 {
				at := scalar.Mul(scalar.Add(local, loop.Int(i%4)), loop.Int(te.t.n/4))
				at = scalar.Add(at, scalar.Add(c.thread, loop.Int(j*te.t.n/te.t.rn/4)))
				stores = append(stores, &loop.StoreVec{Array: te.slot, At: te.Simplify(at), Values: te.accs(i, j)})
			}
		}
		groups = append(groups, stores)
	}
	slices.Reverse(groups)
	body := groups[0]
	for i, stores := range groups[1:] {
		last := (len(groups) - 1 - i) * perGroup // the first round of the groups after this one
		body = []loop.Stmt{&loop.If{Cond: scalar.Lt(round, loop.Int(last)), Then: stores, Else: body}}
	}
	mine := scalar.Eq(scalar.FloorDiv(s.thread, loop.Int(rows/4)), scalar.Mod(round, loop.Int(perGroup)))
	te.body = append(te.body, guard(te.Simplify(mine), body)...)
}

// accs returns the accumulators of row i and the four columns from j on.
func (te *tileEmitter) accs(i, j int) []scalar.Expr {
	out := make([]scalar.Expr, 4)
	for k := range out {
		out[k] = scalar.FreeVar(te.acc(i*te.t.rn+j+k), ir.F32)
	}
	return out
}

// storeRound computes and stores the results of the rows in workgroup memory.
func (te *tileEmitter) storeRound(round scalar.Expr, rows int, result resultStores) {
	s, c := &te.side[0], &te.side[1]
	across, threads := te.t.n/4, te.t.threads()
	name := te.name("at")
	at := scalar.NewVar(name, ir.I32, 0, int64(rows*across-1))
	outer := te.body
	te.body = nil
	sums := make([]scalar.Expr, 4)
	names := make([]string, 4)
	for j := range names {
		names[j] = te.name("sum")
		sums[j] = scalar.FreeVar(names[j], ir.F32)
	}
	te.body = append(te.body, &loop.LoadVec{Names: names, Array: te.slot, At: at})
	row := scalar.Add(s.first, scalar.Add(scalar.Mul(round, loop.Int(rows)), scalar.FloorDiv(at, loop.Int(across))))
	column := scalar.Add(scalar.FloorDiv(c.first, loop.Int(4)), scalar.Mod(at, loop.Int(across)))
	te.storeQuad(sumQuad{sums, te.let("row", row, te.lastFree(s)), scalar.Mul(te.let("column", column, te.lastFree(c)/4), loop.Int(4))}, result)
	each := &loop.For{Var: name, Start: te.lane, End: loop.Int(rows * across), Step: loop.Int(threads), Body: te.body}
	te.body = append(outer, each)
}

// lastFree returns the last free position of the tiles of a side.
func (te *tileEmitter) lastFree(s *side) int {
	return ceilDiv(fusion.Product(s.free), s.tile)*s.tile - 1
}

// epilogue computes the epilogue of a contraction group, for one batch position.
type epilogue struct {
	*emitter
	g     *fusion.Group
	c     *fusion.Contraction
	batch ir.Index
}

// point returns the outer coordinates of the group for a result.
func (r *epilogue) point(m, n ir.Index) ir.Index {
	at := make(ir.Index, len(r.g.Outer))
	for axis, e := range r.c.Out(r.batch, m, n) {
		if c := r.g.Members[0].Coord[axis]; c >= 0 {
			at[c] = e
		}
	}
	return at
}

// stores computes the epilogue of the sum acc in registers and returns the values to store.
func (r *epilogue) stores(acc scalar.Expr, at ir.Index) []pendingStore {
	n := r.g.Members[0].Node
	rd := r.reader()
	rd.Given = map[ir.Value]scalar.Expr{n.Result(0): scalar.Convert(acc, n.Types()[0].DType)}
	return r.values(r.g, rd, at)
}

// sumQuad is the sums of four neighbouring columns of a row. The first column is a multiple of
// four.
type sumQuad struct {
	sums        []scalar.Expr
	row, column scalar.Expr
}

// storeQuad computes and stores the results of four sums, with vector loads and stores where
// the elements of four columns are adjacent in memory.
func (te *tileEmitter) storeQuad(f sumQuad, result resultStores) {
	rows, columns := &te.side[0], &te.side[1]
	m := newVectorizer(te.emitter)
	m.observeWritten(te.body)
	stores := te.quadStores(f, result)
	for _, s := range stores {
		m.observe(s.value)
	}
	m.observeStores(stores, 4)
	m.decide()
	exists := all(4)
	for j := range exists {
		if columns.ragged() {
			exists[j] = scalar.Lt(scalar.Add(f.column, loop.Int(j)), loop.Int(fusion.Product(columns.free)))
		}
	}
	then := m.nested(func() { m.store(stores, 4, exists) })
	te.body = append(te.body, guard(te.valid, te.guardFree(rows, f.row, te.guardFree(columns, f.column, then)))...)
}

// quadStores returns the stores of four sums, tensor by tensor.
func (te *tileEmitter) quadStores(f sumQuad, result resultStores) []pendingStore {
	each := make([][]pendingStore, len(f.sums))
	for j, sum := range f.sums {
		each[j] = result(sum, te.out.point(te.freeAt(&te.side[0], f.row), te.columnAt(f.column, j)))
	}
	return byTensor(each)
}

// ragged reports whether of four neighbouring positions of a side some can be in range and
// others not.
func (s *side) ragged() bool {
	n := fusion.Product(s.free)
	return n%s.tile != 0 && n%4 != 0
}

// columnAt returns the coordinates of the column behind places after first, clamped to the last.
func (te *tileEmitter) columnAt(first scalar.Expr, behind int) ir.Index {
	s := &te.side[1]
	at := scalar.Add(first, loop.Int(behind))
	if s.ragged() {
		at = scalar.Min(at, loop.Int(fusion.Product(s.free)-1))
	}
	return te.unflatten(te.Simplify(at), s.free)
}

// maxPartials is the maximum number of parts that addPartials reads at once: 64 registers for
// four results.
const maxPartials = 16

// addPartials returns the launch that adds up the split-K partial sums in order, four
// neighbouring results per thread, and computes the epilogue. It returns false if some access is
// not by vectors, if there are more than maxPartials parts, or if there are so few results that
// several threads should share one.
func addPartials(e *emitter, g *fusion.Group, c *fusion.Contraction, parts int, partial *fusion.Tensor) (l Launch, ok bool) {
	n := fusion.Product(g.Outer)
	if n%width != 0 || n/width < fullThreads(e.caps) || parts > maxPartials {
		return Launch{}, false
	}
	m := newVectorizer(e.sibling().writer(mapThreads))
	r := epilogue{emitter: m.emitter, g: g, c: c}
	m.threads(n/width, func(i scalar.Expr) {
		each := make([][]pendingStore, width)
		for j := range each {
			at := m.unflatten(scalar.Add(scalar.Mul(i, loop.Int(width)), loop.Int(j)), g.Outer)
			sum := m.emitter.load(partial, append(ir.Index{loop.Int(0)}, at...))
			for p := 1; p < parts; p++ {
				sum = scalar.Add(sum, m.emitter.load(partial, append(ir.Index{loop.Int(p)}, at...)))
			}
			each[j] = r.stores(sum, at)
		}
		stores := byTensor(each)
		for _, s := range stores {
			m.observe(s.value)
		}
		m.observeStores(stores, width)
		m.decide()
		m.store(stores, width, all(width))
	})
	return m.launch(g.Name()), len(m.scalars) == 0
}

// byTensor transposes the stores of neighbouring points, each[point][tensor], to tensor-major
// order.
func byTensor(each [][]pendingStore) (stores []pendingStore) {
	for i := range each[0] {
		for _, own := range each {
			stores = append(stores, own[i])
		}
	}
	return stores
}
