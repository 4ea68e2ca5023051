package indexed

import (
	"math"
	"math/bits"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scatterEmitter writes the kernels of a scatter, whose cost is linear in its operands: one
// that copies the operand, unless the scatter is in place, and those that update the rows that
// indices name. The order in which updates of an element are combined depends on the indices
// alone, unless the op allows unordered float addition.
type scatterEmitter struct {
	*fusion.RowScatter
	p    *fusion.Partition
	g    *fusion.Group
	caps loop.Caps
}

// Scatter returns the launches of a scatter.
func Scatter(g *fusion.Group, caps loop.Caps) []emit.Launch {
	s := &scatterEmitter{fusion.RowScatterOf(g), g.Partition(), g, caps}
	if s.Out.Len() == 0 {
		return nil
	}
	var out []emit.Launch
	if !s.InPlace() {
		out = append(out, s.copyOperand())
	}
	if s.Positions == 0 || s.Window == 0 {
		return out
	}
	switch unique := s.Lowering.Unique != nil && s.Lowering.Unique(s.Node); {
	case unique:
		return append(out, s.direct(func(*emit.Emitter, scalar.Expr, scalar.Expr) scalar.Expr { return scalar.ConstBool(true) }))
	case s.Few():
		return append(out, s.bySearch())
	case s.Lowering.Mode == ir.ScatterSet:
		return append(out, s.lastWriter()...)
	case s.hasAtomic():
		return append(out, s.byAtomics())
	case s.searchIsBrief():
		return append(out, s.bySearch())
	}
	return append(out, s.bySort()...)
}

// writer begins a kernel with one thread per element.
func (s *scatterEmitter) writer() *emit.Emitter {
	w := emit.New(s.p, s.caps).WithThreads(min(s.caps.Invocations, emit.GroupThreads))
	w.Long = s.g.Long()
	return w
}

func (s *scatterEmitter) load(w *emit.Emitter) ir.Load { return w.Reader().Operand(s.Node) }

// copyOperand copies the operand to the result.
func (s *scatterEmitter) copyOperand() emit.Launch {
	w := s.writer()
	if emit.WithMma && inVectors(s) && s.Out.Len()%emit.VectorWidth == 0 {
		copyVectors(s, emit.NewVectorizer(w))
		return w.Launch(s.g.Name() + "_base")
	}
	w.Threads(s.Out.Len(), func(i scalar.Expr) {
		at := w.Unflatten(i, s.Out.Dims)
		w.Save(s.Out, at, s.load(w)(0, at))
	})
	return w.Launch(s.g.Name() + "_base")
}

// copyVectors copies a vector by each thread.
func copyVectors(s *scatterEmitter, v *emit.Vectorizer) {
	v.Threads(s.Out.Len()/emit.VectorWidth, func(i scalar.Expr) {
		stores := make([]emit.PendingStore, emit.VectorWidth)
		for k := range stores {
			at := v.Unflatten(scalar.Add(scalar.Mul(i, loop.Int(emit.VectorWidth)), loop.Int(k)), s.Out.Dims)
			stores[k] = emit.PendingStore{Tensor: s.Out, At: at, Value: v.Simplify(s.load(v.Emitter)(0, at))}
		}
		v.ObserveStores(stores, len(stores))
		v.Decide()
		v.Store(stores, len(stores), emit.Always(len(stores)))
	})
}

// apply combines the combined updates of a row's element into it.
func (s *scatterEmitter) apply(w *emit.Emitter, row, x, updates scalar.Expr) {
	r := s.applied(w, row, x, updates)
	w.Save(r.Tensor, r.At, r.Value)
}

// applied is the store of [scatterEmitter.apply].
func (s *scatterEmitter) applied(w *emit.Emitter, row, x, updates scalar.Expr) emit.PendingStore {
	at := s.At(w.Simplifier, row, x)
	old := s.load(w)(0, at)
	return emit.PendingStore{Tensor: s.Out, At: at, Value: scalar.Convert(s.Lowering.Mode.Combine(scalar.Convert(old, updates.Type), updates), s.Out.DType)}
}

// updated returns an update in the type of the combination.
func (s *scatterEmitter) updated(w *emit.Emitter, i, x scalar.Expr) scalar.Expr {
	return scalar.Convert(s.Update(w.Simplifier, i, x, s.load(w)), s.SumType())
}

// each launches a thread for columns elements of the updates of a position, from element x on; f writes its work
// where the index is in range.
func (s *scatterEmitter) each(w *emit.Emitter, columns int, f func(i, x, row scalar.Expr)) {
	per := s.Window / columns
	w.Threads(s.Positions*per, func(flat scalar.Expr) {
		i, x := w.Let("position", scalar.FloorDiv(flat, loop.Int(per))), w.Let("x", scalar.Mod(flat, loop.Int(per)))
		x = scalar.Mul(x, loop.Int(columns))
		row, inside := s.Row(w.Simplifier, i, s.load(w))
		row = w.Let("row", row)
		w.When(inside, func() { f(i, x, row) })
	})
}

// direct applies each update that counts on its own: no other one has the same element.
func (s *scatterEmitter) direct(counts func(w *emit.Emitter, i, row scalar.Expr) scalar.Expr) emit.Launch {
	w := s.writer()
	if emit.WithMma && inVectors(s) && s.Window%emit.VectorWidth == 0 {
		v := emit.NewVectorizer(w)
		s.each(w, emit.VectorWidth, func(i, x, row scalar.Expr) {
			w.When(counts(w, i, row), func() { applyVector(s, v, row, x, i) })
		})
		return w.Launch(s.g.Name())
	}
	s.each(w, 1, func(i, x, row scalar.Expr) {
		w.When(counts(w, i, row), func() { s.apply(w, row, x, s.updated(w, i, x)) })
	})
	return w.Launch(s.g.Name())
}

// inVectors reports whether threads copy and update vectors where they can (H200: the rows that a prompt of 2,048
// tokens writes to a cache were stored at 880 GB/s by single bf16 elements).
func inVectors(s *scatterEmitter) bool { return s.caps.Dialect == dtype.CUDA }

// applyVector is [scatterEmitter.apply] of the updates of a vector of a row's elements, from x on, at position i.
func applyVector(s *scatterEmitter, v *emit.Vectorizer, row, x, i scalar.Expr) {
	stores := make([]emit.PendingStore, emit.VectorWidth)
	for k := range stores {
		at := scalar.Add(x, loop.Int(k))
		stores[k] = s.applied(v.Emitter, row, at, s.updated(v.Emitter, i, at))
		stores[k].Value = v.Simplify(emit.NarrowBranches(v.Simplify(stores[k].Value)))
	}
	v.ObserveWritten()
	v.ObserveStores(stores, len(stores))
	v.Decide()
	v.Store(stores, len(stores), emit.Always(len(stores)))
}

// searchIsBrief reports whether the search of all positions takes less than a launch on a device in software,
// where the workgroup memory and the barriers of a sort cost most. (SwiftShader compiles a sort of 256 in 0.7 s of
// processor time, the search in 0.04.)
func (s *scatterEmitter) searchIsBrief() bool {
	return emit.CostlyBarriers(s.caps) && float64(s.Positions)*float64(s.Positions)*float64(s.Window) <= emit.SmallProduct
}

// bySearch handles few positions by search: the first position of a row combines the updates of
// all positions of the row, in order.
func (s *scatterEmitter) bySearch() emit.Launch {
	w := s.writer()
	s.each(w, 1, func(i, x, row scalar.Expr) {
		same := func(j scalar.Expr) scalar.Expr {
			other, inside := s.Row(w.Simplifier, j, s.load(w))
			return scalar.And(inside, scalar.Eq(other, row))
		}
		first := w.Var("first", scalar.ConstBool(true))
		w.Loop("j", loop.Int(0), i, 1, s.Positions-1, func(j scalar.Expr) {
			w.When(same(j), func() { w.Set(first, scalar.ConstBool(false)) })
		})
		w.When(first, func() {
			acc := s.sum(w, s.updated(w, i, x), s.Positions)
			w.Loop("j", scalar.Add(i, loop.Int(1)), loop.Int(s.Positions), 1, s.Positions-1, func(j scalar.Expr) {
				acc.nextBlock(w, j)
				w.When(same(j), func() { w.Set(acc.block, s.Lowering.Mode.Combine(acc.block, s.updated(w, j, x))) })
			})
			s.apply(w, row, x, acc.value())
		})
	})
	return w.Launch(s.g.Name())
}

// hasAtomic reports whether to use atomic updates. Integer sums, minima and maxima do not
// depend on the order. Float sums do, and use atomics only where the op allows it and the cost
// model expects a gain.
func (s *scatterEmitter) hasAtomic() bool {
	switch s.Out.DType {
	case ir.I32, ir.U32:
		return s.Lowering.Mode != ir.ScatterMul
	case ir.F32:
		unordered := s.Lowering.Unordered != nil && s.Lowering.Unordered(s.Node)
		return unordered && s.Lowering.Mode == ir.ScatterAdd && s.caps.AtomicFloats != loop.NoAtomicFloats && s.atomicCost() < s.sortedCost()
	}
	return false
}

func (s *scatterEmitter) byAtomics() emit.Launch {
	op := map[ir.ScatterMode]scalar.Op{ir.ScatterAdd: scalar.OpAdd, ir.ScatterMin: scalar.OpMin, ir.ScatterMax: scalar.OpMax}[s.Lowering.Mode]
	w := s.writer()
	s.each(w, 1, func(i, x, row scalar.Expr) {
		w.Add(w.Atomic(op, s.Out, s.At(w.Simplifier, row, x), s.updated(w, i, x))...)
	})
	return w.Launch(s.g.Name())
}

// lastWriter lets the last position of a row set it: a table holds the number of that position
// plus one for each row, 0 for none.
func (s *scatterEmitter) lastWriter() []emit.Launch {
	table := s.p.Scratch("winners", ir.U32, s.Rows)
	clear := s.writer()
	clear.Threads(s.Rows, func(row scalar.Expr) { clear.Save(table, ir.Index{row}, emit.Word(0)) })
	number := func(i scalar.Expr) scalar.Expr { return scalar.Convert(scalar.Add(i, loop.Int(1)), ir.U32) }
	vote := s.writer()
	vote.Threads(s.Positions, func(i scalar.Expr) {
		row, inside := s.Row(vote.Simplifier, i, s.load(vote))
		vote.When(inside, func() { vote.Add(vote.Atomic(scalar.OpMax, table, ir.Index{row}, number(i))...) })
	})
	return []emit.Launch{
		clear.Launch(s.g.Name() + "_clear"), vote.Launch(s.g.Name() + "_vote"),
		s.direct(func(w *emit.Emitter, i, row scalar.Expr) scalar.Expr {
			return scalar.Eq(w.Load(table, ir.Index{row}), number(i))
		}),
	}
}

// bySort sorts the positions by row, unless they are sorted, and combines the updates of each run,
// chunk by chunk: a segmented reduction.
func (s *scatterEmitter) bySort() []emit.Launch {
	r := &runs{s: s, columns: s.columns()}
	r.chunk = s.chunkOf(s.Window / r.columns)
	r.chunks = emit.CeilDiv(s.Positions, r.chunk)
	var out []emit.Launch
	if s.Lowering.Sorted == nil || !s.Lowering.Sorted(s.Node) {
		r.row, r.from = s.p.Scratch("row", ir.U32, s.Positions), s.p.Scratch("from", ir.I32, s.Positions)
		sort := s.byRow()
		sort.save = func(w *emit.Emitter, _, i, from, key scalar.Expr) {
			w.Save(r.from, ir.Index{i}, from)
			w.Save(r.row, ir.Index{i}, key)
		}
		space := sortSpace{sort}
		out = space.Emit(space.Rule())
	}
	if r.chunks == 1 {
		return append(out, r.combine())
	}
	r.parts = s.p.Scratch("part", s.SumType(), chunkParts, r.chunks, s.Window)
	return append(out, r.combine(), r.join())
}

// byRow sorts positions by row, those out of range last.
func (s *scatterEmitter) byRow() *sorting {
	return &sorting{
		p: s.p, caps: s.caps, name: s.g.Name() + "_sort", rows: 1, length: s.Positions, first: s.Positions,
		keyType: ir.U32, bits: bits.Len(uint(s.Rows)),
		key: func(e *emit.Emitter, _, i scalar.Expr) scalar.Expr {
			return s.rowKey(e, i)
		},
	}
}

// rowKey returns the row of a position, the number of rows if it is out of range.
func (s *scatterEmitter) rowKey(w *emit.Emitter, i scalar.Expr) scalar.Expr {
	row, inside := s.RowScatter.Row(w.Simplifier, i, s.load(w))
	return scalar.Convert(scalar.Select(inside, row, loop.Int(s.Rows)), ir.U32)
}

// additionCycles are those between two atomic additions to one element: 16,384
// rows added to one took 168 µs, 10 ns each (H200, CUDA).
const additionCycles = 17

// eulerGamma is the limit of the harmonic sum 1/1 + … + 1/n minus ln n.
const eulerGamma = 0.5772156649

// maxUpdates estimates the updates of the most updated row. Indices are known only at run time;
// typical ones are words, whose k-th most frequent is 1/k as frequent as the first (Zipf's
// law).
func (s *scatterEmitter) maxUpdates() float64 {
	return min(1, 1/(math.Log(float64(s.Rows))+eulerGamma)) * float64(s.Positions)
}

// traffic is the memory traffic: updates read, updated rows read and written.
func (s *scatterEmitter) traffic() hardware.Work {
	positions, rows, size := float64(s.Positions), float64(min(s.Positions, s.Rows)), s.Out.DType.Size()
	return hardware.Work{
		Bytes:         (positions + 2*rows) * float64(s.Window*size),
		Sectors:       3 * positions * float64(emit.CeilDiv(s.Window, emit.SectorElements)*hardware.SectorBytes),
		Threads:       s.Positions * s.Window,
		BytesInFlight: size,
	}
}

// atomicCost estimates the nanoseconds of atomic additions: the memory traffic, or the
// serialised additions to the most updated row. Of concurrent compare-and-exchanges one
// succeeds, and the others retry after a load's latency: up to some 1,000 of them, where 48 µs
// were measured and 42 for sorting (H200, WebGPU; 21 and 35 for 512, 123 and 56 for 2,048).
func (s *scatterEmitter) atomicCost() float64 {
	d := s.caps.Profile()
	each := additionCycles / d.Clock
	if s.caps.AtomicFloats == loop.ExchangedFloats {
		each = d.Latency
	}
	return max(s.traffic().Time(d), d.Launch+each*s.maxUpdates())
}

// sortedCost estimates the nanoseconds of [scatterEmitter.bySort]. For each position of a chunk
// a thread waits for the index and then for the update. Chunks are not shorter than those that it was measured with.
func (s *scatterEmitter) sortedCost() float64 {
	d, threads := s.caps.Profile(), s.Window/s.columns()
	chunk := min(max(s.chunkOf(threads), maxShortest), s.Positions)
	chunks := emit.CeilDiv(s.Positions, chunk)
	waves := d.Waves(emit.CeilDiv(chunks*threads, emit.GroupThreads), emit.GroupThreads)
	combine := d.Launch + max(s.traffic().Bytes/d.Bandwidth(), 2*d.Latency*waves*float64(chunk))
	cost := sortSpace{s.byRow()}.Candidates()[0].Cost + combine
	if chunks > 1 {
		cost += d.Launch + d.Latency*float64(bits.Len(uint(s.Positions))) // to find the ends of runs
	}
	return cost
}

// runs is the segmented reduction of updates sorted by row. A run is the positions of one row.
// Chunks split the sorted positions; a run within a chunk is combined and applied there, a run
// across chunks stores a partial result in each, which are joined afterwards.
type runs struct {
	s *scatterEmitter
	// row and from are sorted: rows, past the last one if out of range, and positions. They are nil
	// where the positions are sorted.
	row, from     *fusion.Tensor
	chunk, chunks int
	columns       int            // adjacent elements of a row that a thread combines
	parts         *fusion.Tensor // partial results by kind, chunk and element of the row
}

// columns returns the number of adjacent elements of a row that a thread combines. Several share the
// work for a position: its row, its place before sorting and the branches between runs (H200: 400,000 rows of 32
// elements took 27 instead of 41 µs by two). Four are loaded and stored as vectors (18 to 22 instead of 22 to 29 µs).
// One is left where the threads would not fill the device.
func (s *scatterEmitter) columns() int {
	if !emit.WithMma || s.caps.Dialect != dtype.CUDA {
		return 1
	}
	for _, n := range []int{emit.VectorWidth, pair} {
		if s.Window%n == 0 && s.Positions*s.Window/n >= columnSteps*s.caps.Profile().Resident() {
			return n
		}
	}
	return 1
}

// columnSteps is the number of positions of a thread that combines several columns, if threads fill the device.
const (
	pair        = 2
	columnSteps = 4
)

// chunkOf returns the number of positions per thread, of n that each update an element by window threads: about
// √n/4. With a single run a thread walks a chunk and then one walks the partial results of all
// chunks, which at √n are equally many; shorter chunks keep more threads busy where there are many
// runs. They are shorter still where the device's threads are not all busy: each waits for a row,
// then for its update. The shortest hold several runs of the mean length, which are then applied without
// partial results.
func (s *scatterEmitter) chunkOf(window int) int {
	const (
		minChunk = 8
		runs     = 4
	)
	n := s.Positions
	longest := emit.PowerOfTwo(n) >> (bits.Len(uint(n))/2 + 2)
	shortest := max(minChunk, min(maxShortest, emit.PowerOfTwo(emit.CeilDiv(runs*n, s.Rows))))
	return max(shortest, min(longest, emit.PowerOfTwo(emit.CeilDiv(n*window, s.caps.Profile().ScatterThreads))))
}

// maxShortest is the maximum number of positions of the shortest chunk.
const maxShortest = 32

// rowAt returns the row of the sorted position i.
func (r *runs) rowAt(w *emit.Emitter, i scalar.Expr) scalar.Expr {
	if r.row == nil {
		return r.s.rowKey(w, i)
	}
	return w.Load(r.row, ir.Index{i})
}

// positionAt returns the position that the sorted position i was before.
func (r *runs) positionAt(w *emit.Emitter, i scalar.Expr) scalar.Expr {
	if r.from == nil {
		return i
	}
	return w.Load(r.from, ir.Index{i})
}

// each launches a thread per chunk and group of columns of a row; x is the first column.
func (r *runs) each(w *emit.Emitter, columns int, f func(chunk, x, from, to scalar.Expr)) {
	threads := r.s.Window / columns
	w.Threads(r.chunks*threads, func(flat scalar.Expr) {
		chunk, x := w.Let("chunk", scalar.FloorDiv(flat, loop.Int(threads))), scalar.Mul(scalar.Mod(flat, loop.Int(threads)), loop.Int(columns))
		if columns < emit.VectorWidth { // else that it divides x must be seen
			x = w.Let("x", x)
		}
		from := w.Let("from", scalar.Mul(chunk, loop.Int(r.chunk)))
		f(chunk, x, from, w.Let("to", scalar.Min(scalar.Add(from, loop.Int(r.chunk)), loop.Int(r.s.Positions))))
	})
}

// neighbours returns the rows of the positions before and after a chunk, or a row that no
// position has.
func (r *runs) neighbours(w *emit.Emitter, from, to scalar.Expr) (before, after scalar.Expr) {
	none, last := emit.Word(r.s.Rows+1), loop.Int(r.s.Positions-1)
	before = scalar.Select(scalar.Gt(from, loop.Int(0)), r.rowAt(w, scalar.Max(scalar.Sub(from, loop.Int(1)), loop.Int(0))), none)
	after = scalar.Select(scalar.Lt(to, loop.Int(r.s.Positions)), r.rowAt(w, scalar.Min(to, last)), none)
	return w.Let("before", before), w.Let("after", after)
}

// ahead is the number of sorted positions whose updates a thread loads before it combines the first:
// each waits for its position, then for its update.
const ahead = 4

// near is one of the next sorted positions, its row and the updates of its columns.
type near struct {
	at, row scalar.Expr
	updates []scalar.Expr
}

// loadAhead writes the loads of the next positions from i on, then those of their updates.
func (r *runs) loadAhead(v *emit.Vectorizer, i, x scalar.Expr) (next []near) {
	for k := range ahead {
		at := scalar.Add(i, loop.Int(k))
		from := at
		if !r.whole() {
			from = v.Let("near", scalar.Min(from, loop.Int(r.s.Positions-1)))
		}
		n := near{at: at, row: v.Let("next", r.rowAt(v.Emitter, from))}
		position := v.Let("position", r.positionAt(v.Emitter, from))
		for c := range r.columns {
			n.updates = append(n.updates, r.s.updated(v.Emitter, position, scalar.Add(x, loop.Int(c))))
		}
		if r.columns < emit.VectorWidth {
			n.updates = v.LetAll("update", n.updates)
		}
		next = append(next, n)
	}
	if emit.WithMma && r.columns == emit.VectorWidth {
		r.loadVectors(v, next)
	}
	return next
}

// loadVectors writes the loads of updates by vectors, where they can be.
func (r *runs) loadVectors(v *emit.Vectorizer, next []near) {
	for _, n := range next {
		for c, x := range n.updates {
			n.updates[c] = v.Simplify(x)
		}
		v.Observe(n.updates...)
	}
	v.Decide()
	for _, n := range next {
		v.Load(n.updates)
		v.Add(v.NameAll(n.updates)...) // what columns share, such as a weight of the position, is computed once
	}
}

// whole reports whether all chunks are whole steps.
func (r *runs) whole() bool { return r.s.Positions%ahead == 0 }

// combine combines the runs of each chunk.
func (r *runs) combine() emit.Launch {
	v := emit.NewVectorizer(r.s.writer())
	w := v.Emitter
	r.each(w, r.columns, func(chunk, x, from, to scalar.Expr) {
		run := &run{chunk: chunk, x: x}
		run.before, run.after = r.neighbours(w, from, to)
		run.row = w.Var("row", r.rowAt(w, from))
		for range r.columns {
			run.sums = append(run.sums, r.s.sum(w, r.s.Neutral(), r.chunk))
		}
		v.ObserveWritten()
		r.observe(v, run)
		w.Loop("i", from, to, ahead, r.s.Positions-1, func(i scalar.Expr) {
			for _, next := range r.loadAhead(v, i, x) {
				exists := scalar.ConstBool(true)
				if !r.whole() {
					exists = scalar.Lt(next.at, to)
				}
				w.When(exists, func() { r.step(v, next, run) })
			}
		})
		r.endRun(v, run)
	})
	return w.Launch(r.s.g.Name() + "_rows")
}

// run is the run that a thread combines: its row and the combinations of its columns, from column x
// on, in a chunk between the rows before and after.
type run struct {
	chunk, x, row, before, after scalar.Expr
	sums                         []*runSum
}

// step combines the updates of a position: into the run, or after its end into that of the next row.
func (r *runs) step(v *emit.Vectorizer, next near, run *run) {
	w := v.Emitter
	w.When(scalar.Ne(next.row, run.row), func() {
		r.endRun(v, run)
		w.Set(run.row, next.row)
		for _, acc := range run.sums {
			acc.clear(w)
		}
	})
	for _, acc := range run.sums {
		acc.nextBlock(w, next.at)
	}
	w.When(scalar.Lt(next.row, emit.Word(r.s.Rows)), func() {
		for c, acc := range run.sums {
			w.Set(acc.block, r.s.Lowering.Mode.Combine(acc.block, next.updates[c]))
		}
	})
}

// adds reports whether updates are f32 sums, whose rounding depends on the order.
func (s *scatterEmitter) adds() bool {
	return s.Lowering.Mode == ir.ScatterAdd && s.SumType() == ir.F32
}

// runSum is the running combination of a run: that of the current block of positions, and, for
// f32 sums of several blocks, the sum of the blocks before.
type runSum struct{ block, before, neutral scalar.Expr }

// sum begins a combination of up to a number of updates.
func (s *scatterEmitter) sum(w *emit.Emitter, first scalar.Expr, updates int) *runSum {
	sum := &runSum{block: w.Var("acc", first), neutral: s.Neutral()}
	if s.adds() && updates > fusion.SumBlockLen {
		sum.before = w.Var("blocks", sum.neutral)
	}
	return sum
}

// nextBlock begins a new block at the block's first position.
func (s *runSum) nextBlock(w *emit.Emitter, i scalar.Expr) {
	if s.before == nil {
		return
	}
	w.When(scalar.Eq(scalar.Rem(i, loop.Int(fusion.SumBlockLen)), loop.Int(0)), func() {
		w.Set(s.before, scalar.Add(s.before, s.block))
		w.Set(s.block, s.neutral)
	})
}

func (s *runSum) value() scalar.Expr {
	if s.before == nil {
		return s.block
	}
	return scalar.Add(s.before, s.block)
}

func (s *runSum) clear(w *emit.Emitter) {
	w.Set(s.block, s.neutral)
	if s.before != nil {
		w.Set(s.before, s.neutral)
	}
}

// The partial results of a chunk: of a run that began before it, and of a run that begins in it
// and continues after it.
const (
	laterPart = iota
	firstPart
	chunkParts
)

// endRun applies a run, or stores its partial result.
func (r *runs) endRun(v *emit.Vectorizer, run *run) {
	apply := func() { r.store(v, r.applied(v, run)) }
	v.When(scalar.Lt(run.row, emit.Word(r.s.Rows)), func() {
		if r.chunks == 1 {
			apply()
			return
		}
		began, goesOn := scalar.Eq(run.row, run.before), scalar.Eq(run.row, run.after)
		v.Choose(scalar.Or(began, goesOn), func() {
			part := scalar.Select(began, loop.Int(laterPart), loop.Int(firstPart))
			r.store(v, r.partial(part, run))
		}, apply)
	})
}

// applied are the stores of a run that is within its chunk.
func (r *runs) applied(v *emit.Vectorizer, run *run) []emit.PendingStore {
	var sums []scalar.Expr
	for _, acc := range run.sums {
		sums = append(sums, acc.value())
	}
	return appliedTo(r, v, run.row, run.x, sums)
}

// appliedTo are the stores of the sums of adjacent columns, from x on, to a row.
func appliedTo(r *runs, v *emit.Vectorizer, row, x scalar.Expr, sums []scalar.Expr) (stores []emit.PendingStore) {
	row = scalar.Convert(row, ir.I32)
	if emit.WithMma && r.columns == emit.VectorWidth {
		name := v.Name("at")
		v.Add(&loop.Let{Name: name, Value: row})
		row = scalar.NewVar(name, ir.I32, 0, int64(r.s.Rows-1))
	}
	for c, sum := range sums {
		stores = append(stores, r.s.applied(v.Emitter, row, scalar.Add(x, loop.Int(c)), sum))
	}
	return stores
}

// partial are the stores of the partial result of a run that crosses an end of its chunk.
func (r *runs) partial(part scalar.Expr, run *run) (stores []emit.PendingStore) {
	for c, acc := range run.sums {
		stores = append(stores, emit.PendingStore{Tensor: r.parts, At: ir.Index{part, run.chunk, scalar.Add(run.x, loop.Int(c))}, Value: acc.value()})
	}
	return stores
}

// observe shows a vectorizer the stores of runs.
func (r *runs) observe(v *emit.Vectorizer, run *run) {
	if !emit.WithMma || r.columns < emit.VectorWidth {
		return
	}
	var stores []emit.PendingStore
	v.Nested(func() { stores = r.applied(v, run) }) // which are written where a run ends
	observeStores(r, v, stores)
	if r.chunks > 1 {
		v.ObserveStores(r.partial(loop.Int(laterPart), run), r.columns)
	}
}

// observeStores shows a vectorizer the stores of adjacent columns.
func observeStores(r *runs, v *emit.Vectorizer, stores []emit.PendingStore) {
	if !emit.WithMma || r.columns < emit.VectorWidth {
		return
	}
	for i := range stores {
		stores[i].Value = v.Simplify(stores[i].Value)
	}
	v.ObserveStores(stores, r.columns)
}

// store stores the results of adjacent columns.
func (r *runs) store(v *emit.Vectorizer, stores []emit.PendingStore) {
	if emit.WithMma && r.columns == emit.VectorWidth {
		v.Store(stores, r.columns, emit.Always(r.columns))
		return
	}
	for _, s := range stores {
		v.Save(s.Tensor, s.At, s.Value)
	}
}

// join combines the partial results of a run, in order, in the thread of the chunk in which it
// begins.
func (r *runs) join() emit.Launch {
	v := emit.NewVectorizer(r.s.writer())
	w := v.Emitter
	r.each(w, r.columns, func(chunk, x, from, to scalar.Expr) {
		before, after := r.neighbours(w, from, to)
		row := w.Let("row", r.rowAt(w, scalar.Sub(to, loop.Int(1))))
		begins := scalar.And(scalar.Ne(row, before), scalar.Eq(row, after))
		w.When(scalar.And(begins, scalar.Lt(row, emit.Word(r.s.Rows))), func() {
			sums := w.Vars("acc", partials(r, v, firstPart, chunk, x))
			next := scalar.Add(chunk, loop.Int(1))
			last := r.lastChunk(w, row, to, next)
			r.add(v, sums, x, next, scalar.Add(last, loop.Int(1)))
			stores := appliedTo(r, v, row, x, sums)
			observeStores(r, v, stores)
			v.Decide()
			r.store(v, stores)
		})
	})
	return w.Launch(r.s.g.Name() + "_join")
}

// partials returns the partial results of a chunk's run for adjacent columns.
func partials(r *runs, v *emit.Vectorizer, part int, chunk, x scalar.Expr) []scalar.Expr {
	loads := make([]scalar.Expr, r.columns)
	for c := range loads {
		loads[c] = v.Emitter.Load(r.parts, ir.Index{loop.Int(part), chunk, scalar.Add(x, loop.Int(c))})
	}
	if emit.WithMma && r.columns == emit.VectorWidth {
		v.Observe(loads...)
		v.Decide()
		v.Load(loads)
	}
	return loads
}

// partBlock is the number of terms of each level of blocked f32 summation.
const partBlock = 16

// add combines the partial results of chunks from to below to into sums; f32 sums go by blocks
// of blocks, to bound the rounding error.
func (r *runs) add(v *emit.Vectorizer, sums []scalar.Expr, x, from, to scalar.Expr) {
	if r.chunks <= partBlock || !r.s.adds() {
		v.Loop("later", from, to, 1, r.chunks-1, func(later scalar.Expr) {
			for c, term := range partials(r, v, laterPart, later, x) {
				v.Set(sums[c], r.s.Lowering.Mode.Combine(sums[c], term))
			}
		})
		return
	}
	r.addBlocks(v, sums, x, from, to, partBlock*partBlock)
}

// addBlocks sums partial results in blocks of size, each in smaller blocks.
func (r *runs) addBlocks(v *emit.Vectorizer, sums []scalar.Expr, x, from, to scalar.Expr, size int) {
	v.Loop("later", from, to, size, r.chunks-1, func(first scalar.Expr) {
		var terms []scalar.Expr
		if size == 1 {
			terms = partials(r, v, laterPart, first, x)
		} else {
			terms = v.Vars("sum", slices.Repeat([]scalar.Expr{r.s.Neutral()}, r.columns))
			r.addBlocks(v, terms, x, first, v.Let("end", scalar.Min(scalar.Add(first, loop.Int(size)), to)), size/partBlock)
		}
		for c, term := range terms {
			v.Set(sums[c], scalar.Add(sums[c], term))
		}
	})
}

// lastChunk returns the chunk in which a run ends that continues in the chunk next, whose first
// position is from. Usually it is next; otherwise a search finds it.
func (r *runs) lastChunk(w *emit.Emitter, row, from, next scalar.Expr) scalar.Expr {
	last := w.Var("last", next)
	end := scalar.Min(scalar.Add(from, loop.Int(r.chunk-1)), loop.Int(r.s.Positions-1))
	w.When(scalar.Eq(r.rowAt(w, end), row), func() {
		w.Set(last, scalar.FloorDiv(scalar.Sub(r.endOf(w, row, from), loop.Int(1)), loop.Int(r.chunk)))
	})
	return last
}

// endOf returns the end of a run by binary search from a position on.
func (r *runs) endOf(w *emit.Emitter, row, from scalar.Expr) scalar.Expr {
	low, high := w.Var("low", from), w.Var("high", scalar.Convert(loop.Int(r.s.Positions), from.Type))
	w.Times("halving", bits.Len(uint(r.s.Positions)), func(scalar.Expr) {
		middle := w.Let("middle", scalar.FloorDiv(scalar.Add(low, high), loop.Int(2)))
		w.When(scalar.Lt(low, high), func() {
			w.Choose(scalar.Eq(r.rowAt(w, middle), row),
				func() { w.Set(low, scalar.Add(middle, loop.Int(1))) },
				func() { w.Set(high, middle) })
		})
	})
	return low
}
