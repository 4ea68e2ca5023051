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

// scatterEmitter writes the kernels of a scatter that costs what it reads and
// writes: one that fills or copies the whole result, unless that lies where the
// operand does, and those that change the rows that updates name. Which updates
// meet, and in which order, depends on the indices alone, never on which thread
// comes first, but where the op lets floats be added in any order.
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
		return append(out, s.direct(func(*writer, scalar.Expr, scalar.Expr) scalar.Expr { return scalar.ConstBool(true) }))
	case s.Few():
		return append(out, s.few())
	case s.Lowering.Mode == ir.ScatterSet:
		return append(out, s.winners()...)
	case s.hasAtomic():
		return append(out, s.atomic())
	}
	return append(out, s.sorted()...)
}

// writer begins a kernel with a thread for each of many elements.
func (s *scatterEmitter) writer() *writer {
	w := newWriter(s.p, s.caps, min(s.caps.Invocations, mapThreads))
	w.long = s.g.Long()
	return w
}

func (s *scatterEmitter) load(w *writer) ir.Load { return w.reader().Operand(s.Node) }

// copyOperand begins the result as what the operand is.
func (s *scatterEmitter) copyOperand() Launch {
	w := s.writer()
	w.threads(s.Out.Len(), func(i scalar.Expr) {
		at := w.unflatten(i, s.Out.Dims)
		w.save(s.Out, at, s.load(w)(0, at))
	})
	return w.launch(s.g.Name() + "_base")
}

// apply stores a row's element after updates, which are combined already.
func (s *scatterEmitter) apply(w *writer, row, x, updates scalar.Expr) {
	at := s.At(w.Simplifier, row, x)
	old := s.load(w)(0, at)
	w.save(s.Out, at, scalar.Convert(s.Lowering.Mode.Combine(scalar.Convert(old, updates.Type), updates), s.Out.DType))
}

// updated returns an update in the type that updates are combined in.
func (s *scatterEmitter) updated(w *writer, i, x scalar.Expr) scalar.Expr {
	return scalar.Convert(s.Update(w.Simplifier, i, x, s.load(w)), s.SumType())
}

// each lays out a thread for each element of the updates, and writes what f does
// where it has a row.
func (s *scatterEmitter) each(w *writer, f func(i, x, row scalar.Expr)) {
	w.threads(s.Positions*s.Window, func(flat scalar.Expr) {
		i, x := w.let("position", scalar.FloorDiv(flat, loop.Int(s.Window))), w.let("x", scalar.Mod(flat, loop.Int(s.Window)))
		row, inside := s.Row(w.Simplifier, i, s.load(w))
		row = w.let("row", row)
		w.when(inside, func() { f(i, x, row) })
	})
}

// direct applies each update that counts by itself: no other falls on its
// element.
func (s *scatterEmitter) direct(counts func(w *writer, i, row scalar.Expr) scalar.Expr) Launch {
	w := s.writer()
	s.each(w, func(i, x, row scalar.Expr) {
		w.when(counts(w, i, row), func() { s.apply(w, row, x, s.updated(w, i, x)) })
	})
	return w.launch(s.g.Name())
}

// few is for positions that can be looked through: the first one that names a
// row combines the updates of all that do, in their order.
func (s *scatterEmitter) few() Launch {
	w := s.writer()
	s.each(w, func(i, x, row scalar.Expr) {
		same := func(j scalar.Expr) scalar.Expr {
			other, inside := s.Row(w.Simplifier, j, s.load(w))
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

// hasAtomic reports whether devices combine such updates at once, whoever comes
// first: an integer's sum, smallest and largest are the same in any order. A float's sum
// is not, and is taken so only where that is asked for, and expected to be faster.
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

func (s *scatterEmitter) atomic() Launch {
	op := map[ir.ScatterMode]scalar.Op{ir.ScatterAdd: scalar.OpAdd, ir.ScatterMin: scalar.OpMin, ir.ScatterMax: scalar.OpMax}[s.Lowering.Mode]
	w := s.writer()
	s.each(w, func(i, x, row scalar.Expr) {
		w.add(w.atomic(op, s.Out, s.At(w.Simplifier, row, x), s.updated(w, i, x))...)
	})
	return w.launch(s.g.Name())
}

// winners lets the last position that names a row set it: a table has its number
// plus one for each row, 0 where there is none.
func (s *scatterEmitter) winners() []Launch {
	table := s.p.Scratch("winners", ir.U32, s.Rows)
	clear := s.writer()
	clear.threads(s.Rows, func(row scalar.Expr) { clear.save(table, ir.Index{row}, word(0)) })
	number := func(i scalar.Expr) scalar.Expr { return scalar.Convert(scalar.Add(i, loop.Int(1)), ir.U32) }
	vote := s.writer()
	vote.threads(s.Positions, func(i scalar.Expr) {
		row, inside := s.Row(vote.Simplifier, i, s.load(vote))
		vote.when(inside, func() { vote.add(vote.atomic(scalar.OpMax, table, ir.Index{row}, number(i))...) })
	})
	return []Launch{
		clear.launch(s.g.Name() + "_clear"), vote.launch(s.g.Name() + "_vote"),
		s.direct(func(w *writer, i, row scalar.Expr) scalar.Expr {
			return scalar.Eq(w.emitter.load(table, ir.Index{row}), number(i))
		}),
	}
}

// sorted brings positions of one row side by side, and combines their updates
// chunk by chunk.
func (s *scatterEmitter) sorted() []Launch {
	r := &runs{
		scatterEmitter: s,
		row:            s.p.Scratch("row", ir.U32, s.Positions),
		from:           s.p.Scratch("from", ir.I32, s.Positions),
		chunk:          chunkOf(s.Positions),
	}
	r.chunks = ceilDiv(s.Positions, r.chunk)
	sort := s.byRow()
	sort.save = func(w *writer, _, i, from, key scalar.Expr) {
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

// byRow sorts positions by the row that they go to, those with none last.
func (s *scatterEmitter) byRow() *sorting {
	return &sorting{
		p: s.p, caps: s.caps, name: s.g.Name() + "_sort", rows: 1, length: s.Positions,
		keyType: ir.U32, bits: bits.Len(uint(s.Rows)),
		key: func(e *emitter, _, i scalar.Expr) scalar.Expr {
			row, inside := s.RowScatter.Row(e.Simplifier, i, e.reader().Operand(s.Node))
			return scalar.Convert(scalar.Select(inside, row, loop.Int(s.Rows)), ir.U32)
		},
	}
}

// additionTime is how many nanoseconds pass between two additions to one element by an
// instruction: 16,384 rows added to one took 168 µs (H200, CUDA).
const additionTime = 10.0

// eulerGamma is by how much the sum of 1/1 to 1/n exceeds the logarithm of n.
const eulerGamma = 0.5772156649

// heaviest is how many updates the row of most is expected to have. Indices are known
// only when a graph runs; those that rows are often gathered by are words, of which the
// k-th most frequent one comes 1/k as often as the first (Zipf's law).
func (s *scatterEmitter) heaviest() float64 {
	return min(1, 1/(math.Log(float64(s.Rows))+eulerGamma)) * float64(s.Positions)
}

// moved is what is read of updates, and read and written of the rows that they change.
func (s *scatterEmitter) moved() hardware.Work {
	positions, rows, size := float64(s.Positions), float64(min(s.Positions, s.Rows)), s.Out.DType.Size()
	return hardware.Work{
		Bytes:    (positions + 2*rows) * float64(s.Window*size),
		Sectors:  3 * positions * float64(ceilDiv(s.Window, sectorElements)*hardware.SectorBytes),
		Threads:  s.Positions * s.Window,
		UnderWay: size,
	}
}

// atomicCost estimates the nanoseconds of atomic additions: of all that is moved, or of
// those to the row of most updates, which wait for each other. Of exchanges that are tried
// at the same time one succeeds, and the others know of it as late as a load would: by that
// words are exchanged up to some 1,000 of them, where 48 µs were measured for it and 42 for
// sorting (H200, WebGPU; 21 and 35 for 512, 123 and 56 for 2,048).
func (s *scatterEmitter) atomicCost() float64 {
	d, each := s.caps.Profile(), additionTime
	if s.caps.AtomicFloats == loop.ExchangedFloats {
		each = d.Latency
	}
	return max(s.moved().Time(d), d.Launch+each*s.heaviest())
}

// sortedCost estimates the nanoseconds of the launches of [scatterEmitter.sorted]. For
// each position of a chunk a thread waits for its place and then for the update.
func (s *scatterEmitter) sortedCost() float64 {
	d, chunk := s.caps.Profile(), min(chunkOf(s.Positions), s.Positions)
	chunks := ceilDiv(s.Positions, chunk)
	waves := d.Waves(ceilDiv(chunks*s.Window, mapThreads), mapThreads)
	combine := d.Launch + max(s.moved().Bytes/d.Bandwidth(), 2*d.Latency*waves*float64(chunk))
	cost := sortWays{s.byRow()}.candidates()[0].Cost + combine
	if chunks > 1 {
		cost += d.Launch + d.Latency*float64(bits.Len(uint(s.Positions))) // to find where runs end
	}
	return cost
}
