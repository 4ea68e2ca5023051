package sched

import (
	"math/bits"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// runs is the segmented reduction of updates sorted by row. A run is the positions of one row.
// Chunks split the sorted positions; a run within a chunk is combined and applied there, a run
// across chunks stores a partial result in each, which are joined afterwards.
type runs struct {
	*scatterEmitter
	row, from     *fusion.Tensor // sorted: rows, past the last one if out of range, and positions
	chunk, chunks int
	parts         *fusion.Tensor // partial results by kind, chunk and element of the row
}

// chunkOf returns the number of positions per thread, of n: about √n/4. With a single run a
// thread walks a chunk and then one walks the partial results of all chunks, which at √n are
// equally many; shorter chunks keep more threads busy where there are many runs.
func chunkOf(n int) int { return max(32, powerOfTwo(n)>>(bits.Len(uint(n))/2+2)) }

// rowAt returns the row of the sorted position i.
func (r *runs) rowAt(w *emitter, i scalar.Expr) scalar.Expr { return w.load(r.row, ir.Index{i}) }

// each launches a thread per chunk and element of a row.
func (r *runs) each(w *emitter, f func(chunk, x, from, to scalar.Expr)) {
	w.threads(r.chunks*r.Window, func(flat scalar.Expr) {
		chunk, x := w.let("chunk", scalar.FloorDiv(flat, loop.Int(r.Window))), w.let("x", scalar.Mod(flat, loop.Int(r.Window)))
		from := w.let("from", scalar.Mul(chunk, loop.Int(r.chunk)))
		f(chunk, x, from, w.let("to", scalar.Min(scalar.Add(from, loop.Int(r.chunk)), loop.Int(r.Positions))))
	})
}

// neighbours returns the rows of the positions before and after a chunk, or a row that no
// position has.
func (r *runs) neighbours(w *emitter, from, to scalar.Expr) (before, after scalar.Expr) {
	none, last := word(r.Rows+1), loop.Int(r.Positions-1)
	before = scalar.Select(scalar.Gt(from, loop.Int(0)), r.rowAt(w, scalar.Max(scalar.Sub(from, loop.Int(1)), loop.Int(0))), none)
	after = scalar.Select(scalar.Lt(to, loop.Int(r.Positions)), r.rowAt(w, scalar.Min(to, last)), none)
	return w.let("before", before), w.let("after", after)
}

// combine combines the runs of each chunk.
func (r *runs) combine() Launch {
	w := r.writer()
	r.each(w, func(chunk, x, from, to scalar.Expr) {
		before, after := r.neighbours(w, from, to)
		row := w.variable("row", r.rowAt(w, from))
		acc := r.sum(w)
		end := func() { r.endRun(w, chunk, x, row, acc.value(), before, after) }
		w.loop("i", from, to, 1, r.Positions-1, func(i scalar.Expr) {
			next := w.let("next", r.rowAt(w, i))
			w.when(scalar.Ne(next, row), func() {
				end()
				w.set(row, next)
				acc.clear(w)
			})
			acc.nextBlock(w, i)
			w.when(scalar.Lt(next, word(r.Rows)), func() {
				position := w.let("position", w.load(r.from, ir.Index{i}))
				w.set(acc.block, r.Lowering.Mode.Combine(acc.block, r.updated(w, position, x)))
			})
		})
		end()
	})
	return w.launch(r.g.Name() + "_rows")
}

// adds reports whether updates are f32 sums, whose rounding depends on the order.
func (r *runs) adds() bool { return r.Lowering.Mode == ir.ScatterAdd && r.SumType() == ir.F32 }

// runSum is the running combination of a run: that of the current block of positions, and, for
// f32 sums in chunks of several blocks, the sum of the blocks before.
type runSum struct{ block, before, neutral scalar.Expr }

func (r *runs) sum(w *emitter) *runSum {
	s := &runSum{block: w.variable("acc", r.Neutral()), neutral: r.Neutral()}
	if r.adds() && r.chunk > fusion.SumBlockLen {
		s.before = w.variable("blocks", s.neutral)
	}
	return s
}

// nextBlock begins a new block at the block's first position.
func (s *runSum) nextBlock(w *emitter, i scalar.Expr) {
	if s.before == nil {
		return
	}
	w.when(scalar.Eq(scalar.Rem(i, loop.Int(fusion.SumBlockLen)), loop.Int(0)), func() {
		w.set(s.before, scalar.Add(s.before, s.block))
		w.set(s.block, s.neutral)
	})
}

func (s *runSum) value() scalar.Expr {
	if s.before == nil {
		return s.block
	}
	return scalar.Add(s.before, s.block)
}

func (s *runSum) clear(w *emitter) {
	w.set(s.block, s.neutral)
	if s.before != nil {
		w.set(s.before, s.neutral)
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
func (r *runs) endRun(w *emitter, chunk, x, row, acc, before, after scalar.Expr) {
	w.when(scalar.Lt(row, word(r.Rows)), func() {
		if r.chunks == 1 {
			r.apply(w, scalar.Convert(row, ir.I32), x, acc)
			return
		}
		began, goesOn := scalar.Eq(row, before), scalar.Eq(row, after)
		w.choose(scalar.Or(began, goesOn), func() {
			part := scalar.Select(began, loop.Int(laterPart), loop.Int(firstPart))
			w.save(r.parts, ir.Index{part, chunk, x}, acc)
		}, func() { r.apply(w, scalar.Convert(row, ir.I32), x, acc) })
	})
}

// join combines the partial results of a run, in order, in the thread of the chunk in which it
// begins.
func (r *runs) join() Launch {
	w := r.writer()
	r.each(w, func(chunk, x, from, to scalar.Expr) {
		before, after := r.neighbours(w, from, to)
		row := w.let("row", r.rowAt(w, scalar.Sub(to, loop.Int(1))))
		begins := scalar.And(scalar.Ne(row, before), scalar.Eq(row, after))
		w.when(scalar.And(begins, scalar.Lt(row, word(r.Rows))), func() {
			last := scalar.FloorDiv(scalar.Sub(r.endOf(w, row, to), loop.Int(1)), loop.Int(r.chunk))
			acc := w.variable("acc", w.load(r.parts, ir.Index{loop.Int(firstPart), chunk, x}))
			next := scalar.Add(chunk, loop.Int(1))
			r.add(w, acc, x, next, scalar.Add(w.let("last", last), loop.Int(1)))
			r.apply(w, scalar.Convert(row, ir.I32), x, acc)
		})
	})
	return w.launch(r.g.Name() + "_join")
}

// partBlock is the number of terms of each level of blocked f32 summation.
const partBlock = 16

// add combines the partial results of chunks from to below to into acc; f32 sums go by blocks
// of blocks, to bound the rounding error.
func (r *runs) add(w *emitter, acc, x, from, to scalar.Expr) {
	if r.chunks <= partBlock || !r.adds() {
		w.loop("later", from, to, 1, r.chunks-1, func(later scalar.Expr) {
			w.set(acc, r.Lowering.Mode.Combine(acc, w.load(r.parts, ir.Index{loop.Int(laterPart), later, x})))
		})
		return
	}
	r.addBlocks(w, acc, x, from, to, partBlock*partBlock)
}

// addBlocks sums partial results in blocks of size, each in smaller blocks.
func (r *runs) addBlocks(w *emitter, acc, x, from, to scalar.Expr, size int) {
	w.loop("later", from, to, size, r.chunks-1, func(first scalar.Expr) {
		if size == 1 {
			w.set(acc, scalar.Add(acc, w.load(r.parts, ir.Index{loop.Int(laterPart), first, x})))
			return
		}
		block := w.variable("sum", r.Neutral())
		r.addBlocks(w, block, x, first, w.let("end", scalar.Min(scalar.Add(first, loop.Int(size)), to)), size/partBlock)
		w.set(acc, scalar.Add(acc, block))
	})
}

// endOf returns the end of a run by binary search from a position on.
func (r *runs) endOf(w *emitter, row, from scalar.Expr) scalar.Expr {
	low, high := w.variable("low", from), w.variable("high", scalar.Convert(loop.Int(r.Positions), from.Type))
	w.times("halving", bits.Len(uint(r.Positions)), func(scalar.Expr) {
		middle := w.let("middle", scalar.FloorDiv(scalar.Add(low, high), loop.Int(2)))
		w.when(scalar.Lt(low, high), func() {
			w.choose(scalar.Eq(r.rowAt(w, middle), row),
				func() { w.set(low, scalar.Add(middle, loop.Int(1))) },
				func() { w.set(high, middle) })
		})
	})
	return low
}
