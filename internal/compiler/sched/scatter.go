package sched

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
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

func scheduleScatter(g *fusion.Group, caps loop.Caps) []Launch {
	s := &scatterEmitter{fusion.RowScatterOf(g), g.Partition(), g, caps}
	if s.Out.Len() == 0 {
		return nil
	}
	var out []Launch
	if !s.InPlace() {
		out = append(out, s.copyOperand())
	}
	if s.Positions == 0 || s.Window == 0 {
		return out
	}
	switch unique := s.Lowering.Unique != nil && s.Lowering.Unique(s.Node); {
	case unique:
		return append(out, s.direct(func(*emitter, scalar.Expr, scalar.Expr) scalar.Expr { return scalar.ConstBool(true) }))
	case s.Few():
		return append(out, s.bySearch())
	case s.Lowering.Mode == ir.ScatterSet:
		return append(out, s.lastWriter()...)
	case s.hasAtomic():
		return append(out, s.byAtomics())
	}
	return append(out, s.bySort()...)
}

// writer begins a kernel with one thread per element.
func (s *scatterEmitter) writer() *emitter {
	w := newEmitter(s.p, s.caps).writer(min(s.caps.Invocations, mapThreads))
	w.long = s.g.Long()
	return w
}

func (s *scatterEmitter) load(w *emitter) ir.Load { return w.reader().Operand(s.Node) }

// copyOperand copies the operand to the result.
func (s *scatterEmitter) copyOperand() Launch {
	w := s.writer()
	w.threads(s.Out.Len(), func(i scalar.Expr) {
		at := w.unflatten(i, s.Out.Dims)
		w.save(s.Out, at, s.load(w)(0, at))
	})
	return w.launch(s.g.Name() + "_base")
}

// apply combines the combined updates of a row's element into it.
func (s *scatterEmitter) apply(w *emitter, row, x, updates scalar.Expr) {
	at := s.At(w.simplifier, row, x)
	old := s.load(w)(0, at)
	w.save(s.Out, at, scalar.Convert(s.Lowering.Mode.Combine(scalar.Convert(old, updates.Type), updates), s.Out.DType))
}

// updated returns an update in the type of the combination.
func (s *scatterEmitter) updated(w *emitter, i, x scalar.Expr) scalar.Expr {
	return scalar.Convert(s.Update(w.simplifier, i, x, s.load(w)), s.SumType())
}

// each launches a thread per element of the updates; f writes its work where the index is in
// range.
func (s *scatterEmitter) each(w *emitter, f func(i, x, row scalar.Expr)) {
	w.threads(s.Positions*s.Window, func(flat scalar.Expr) {
		i, x := w.let("position", scalar.FloorDiv(flat, loop.Int(s.Window))), w.let("x", scalar.Mod(flat, loop.Int(s.Window)))
		row, inside := s.Row(w.simplifier, i, s.load(w))
		row = w.let("row", row)
		w.when(inside, func() { f(i, x, row) })
	})
}

// direct applies each update that counts on its own: no other one has the same element.
func (s *scatterEmitter) direct(counts func(w *emitter, i, row scalar.Expr) scalar.Expr) Launch {
	w := s.writer()
	s.each(w, func(i, x, row scalar.Expr) {
		w.when(counts(w, i, row), func() { s.apply(w, row, x, s.updated(w, i, x)) })
	})
	return w.launch(s.g.Name())
}

// bySearch handles few positions by search: the first position of a row combines the updates of
// all positions of the row, in order.
func (s *scatterEmitter) bySearch() Launch {
	w := s.writer()
	s.each(w, func(i, x, row scalar.Expr) {
		same := func(j scalar.Expr) scalar.Expr {
			other, inside := s.Row(w.simplifier, j, s.load(w))
			return scalar.And(inside, scalar.Eq(other, row))
		}
		first := w.variable("first", scalar.ConstBool(true))
		w.loop("j", loop.Int(0), i, 1, s.Positions-1, func(j scalar.Expr) {
			w.when(same(j), func() { w.set(first, scalar.ConstBool(false)) })
		})
		w.when(first, func() {
			acc := w.variable("acc", s.updated(w, i, x))
			w.loop("j", scalar.Add(i, loop.Int(1)), loop.Int(s.Positions), 1, s.Positions-1, func(j scalar.Expr) {
				w.when(same(j), func() { w.set(acc, s.Lowering.Mode.Combine(acc, s.updated(w, j, x))) })
			})
			s.apply(w, row, x, acc)
		})
	})
	return w.launch(s.g.Name())
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

func (s *scatterEmitter) byAtomics() Launch {
	op := map[ir.ScatterMode]scalar.Op{ir.ScatterAdd: scalar.OpAdd, ir.ScatterMin: scalar.OpMin, ir.ScatterMax: scalar.OpMax}[s.Lowering.Mode]
	w := s.writer()
	s.each(w, func(i, x, row scalar.Expr) {
		w.add(w.atomic(op, s.Out, s.At(w.simplifier, row, x), s.updated(w, i, x))...)
	})
	return w.launch(s.g.Name())
}

// lastWriter lets the last position of a row set it: a table holds the number of that position
// plus one for each row, 0 for none.
func (s *scatterEmitter) lastWriter() []Launch {
	table := s.p.Scratch("winners", ir.U32, s.Rows)
	clear := s.writer()
	clear.threads(s.Rows, func(row scalar.Expr) { clear.save(table, ir.Index{row}, word(0)) })
	number := func(i scalar.Expr) scalar.Expr { return scalar.Convert(scalar.Add(i, loop.Int(1)), ir.U32) }
	vote := s.writer()
	vote.threads(s.Positions, func(i scalar.Expr) {
		row, inside := s.Row(vote.simplifier, i, s.load(vote))
		vote.when(inside, func() { vote.add(vote.atomic(scalar.OpMax, table, ir.Index{row}, number(i))...) })
	})
	return []Launch{
		clear.launch(s.g.Name() + "_clear"), vote.launch(s.g.Name() + "_vote"),
		s.direct(func(w *emitter, i, row scalar.Expr) scalar.Expr {
			return scalar.Eq(w.load(table, ir.Index{row}), number(i))
		}),
	}
}

// bySort sorts the positions by row and combines the updates of each run, chunk by chunk: a
// segmented reduction.
func (s *scatterEmitter) bySort() []Launch {
	r := &runs{
		scatterEmitter: s,
		row:            s.p.Scratch("row", ir.U32, s.Positions),
		from:           s.p.Scratch("from", ir.I32, s.Positions),
		chunk:          chunkOf(s.Positions),
	}
	r.chunks = ceilDiv(s.Positions, r.chunk)
	sort := s.byRow()
	sort.save = func(w *emitter, _, i, from, key scalar.Expr) {
		w.save(r.from, ir.Index{i}, from)
		w.save(r.row, ir.Index{i}, key)
	}
	out := sort.launches()
	if r.chunks == 1 {
		return append(out, r.combine())
	}
	r.parts = s.p.Scratch("part", s.SumType(), chunkParts, r.chunks, s.Window)
	return append(out, r.combine(), r.join())
}

// byRow sorts positions by row, those out of range last.
func (s *scatterEmitter) byRow() *sorting {
	return &sorting{
		p: s.p, caps: s.caps, name: s.g.Name() + "_sort", rows: 1, length: s.Positions,
		keyType: ir.U32, bits: bits.Len(uint(s.Rows)),
		key: func(e *emitter, _, i scalar.Expr) scalar.Expr {
			row, inside := s.RowScatter.Row(e.simplifier, i, e.reader().Operand(s.Node))
			return scalar.Convert(scalar.Select(inside, row, loop.Int(s.Rows)), ir.U32)
		},
	}
}

// additionTime is the time in nanoseconds between two atomic additions to one element: 16,384
// rows added to one took 168 µs (H200, CUDA).
const additionTime = 10.0

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
		Sectors:       3 * positions * float64(ceilDiv(s.Window, sectorElements)*hardware.SectorBytes),
		Threads:       s.Positions * s.Window,
		BytesInFlight: size,
	}
}

// atomicCost estimates the nanoseconds of atomic additions: the memory traffic, or the
// serialised additions to the most updated row. Of concurrent compare-and-exchanges one
// succeeds, and the others retry after a load's latency: up to some 1,000 of them, where 48 µs
// were measured and 42 for sorting (H200, WebGPU; 21 and 35 for 512, 123 and 56 for 2,048).
func (s *scatterEmitter) atomicCost() float64 {
	d, each := s.caps.Profile(), additionTime
	if s.caps.AtomicFloats == loop.ExchangedFloats {
		each = d.Latency
	}
	return max(s.traffic().Time(d), d.Launch+each*s.maxUpdates())
}

// sortedCost estimates the nanoseconds of [scatterEmitter.bySort]. For each position of a chunk
// a thread waits for the index and then for the update.
func (s *scatterEmitter) sortedCost() float64 {
	d, chunk := s.caps.Profile(), min(chunkOf(s.Positions), s.Positions)
	chunks := ceilDiv(s.Positions, chunk)
	waves := d.Waves(ceilDiv(chunks*s.Window, mapThreads), mapThreads)
	combine := d.Launch + max(s.traffic().Bytes/d.Bandwidth(), 2*d.Latency*waves*float64(chunk))
	cost := sortSpace{s.byRow()}.candidates()[0].Cost + combine
	if chunks > 1 {
		cost += d.Launch + d.Latency*float64(bits.Len(uint(s.Positions))) // to find the ends of runs
	}
	return cost
}
