package sched

import (
	"math/bits"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// runs combines the updates of positions that were sorted by row. A run is what
// names one row. Chunks cut the sorted positions; a run that lies in one chunk is
// combined and applied there, one that goes on over several leaves a part in
// each, which are joined after.
type runs struct {
	*scatterEmitter
	row, from     *fusion.Tensor // sorted: rows, beyond the last where there is none, and positions
	chunk, chunks int
	parts         *fusion.Tensor // by kind, chunk and element of the row
}

// chunkOf returns how many positions of n a thread combines: about a quarter of √n. Where
// one run is all there is, a thread goes through a chunk and then one through the parts of
// all chunks; at √n they would be equally many, but shorter chunks keep more threads busy
// where there are many runs.
func chunkOf(n int) int { return max(32, powerOfTwo(n)>>(bits.Len(uint(n))/2+2)) }

// rowAt returns the row of the sorted position i.
func (r *runs) rowAt(w *writer, i scalar.Expr) scalar.Expr { return w.load(r.row, ir.Index{i}) }

// each lays out a thread for each chunk and element of a row.
func (r *runs) each(w *writer, f func(chunk, x, from, to scalar.Expr)) {
	w.threads(r.chunks*r.Window, func(flat scalar.Expr) {
		chunk, x := w.let("chunk", scalar.FloorDiv(flat, loop.Int(r.Window))), w.let("x", scalar.Mod(flat, loop.Int(r.Window)))
		from := w.let("from", scalar.Mul(chunk, loop.Int(r.chunk)))
		f(chunk, x, from, w.let("to", scalar.Min(scalar.Add(from, loop.Int(r.chunk)), loop.Int(r.Positions))))
	})
}

// before and after are the rows of the positions around a chunk, one that no
// position has where there is none.
func (r *runs) around(w *writer, from, to scalar.Expr) (before, after scalar.Expr) {
	none, last := word(r.Rows+1), loop.Int(r.Positions-1)
	before = scalar.Select(scalar.Gt(from, loop.Int(0)), r.rowAt(w, scalar.Max(scalar.Sub(from, loop.Int(1)), loop.Int(0))), none)
	after = scalar.Select(scalar.Lt(to, loop.Int(r.Positions)), r.rowAt(w, scalar.Min(to, last)), none)
	return w.let("before", before), w.let("after", after)
}

// combine walks along each chunk.
func (r *runs) combine() Launch {
	w := r.writer()
	r.each(w, func(chunk, x, from, to scalar.Expr) {
		before, after := r.around(w, from, to)
		row := w.variable("row", r.rowAt(w, from))
		acc := r.sum(w)
		end := func() { r.end(w, chunk, x, row, acc.value(), before, after) }
		w.loop("i", from, to, 1, r.Positions-1, func(i scalar.Expr) {
			next := w.let("next", r.rowAt(w, i))
			w.when(scalar.Ne(next, row), func() {
				end()
				w.set(row, next)
				acc.clear(w)
			})
			acc.turn(w, i)
			w.when(scalar.Lt(next, word(r.Rows)), func() {
				position := w.let("position", w.load(r.from, ir.Index{i}))
				w.set(acc.block, r.Lowering.Mode.Combine(acc.block, r.updated(w, position, x)))
			})
		})
		end()
	})
	return w.launch(r.g.Name() + "_rows")
}

// adds reports whether updates are added up in f32, where the order matters most.
func (r *runs) adds() bool { return r.Lowering.Mode == ir.ScatterAdd && r.SumType() == ir.F32 }

// runSum is what the updates of a run come to: those of a block of positions, and where
// chunks are of several and f32 is added up, the blocks before.
type runSum struct{ block, before, neutral scalar.Expr }

func (r *runs) sum(w *writer) *runSum {
	s := &runSum{block: w.variable("acc", r.Neutral()), neutral: r.Neutral()}
	if r.adds() && r.chunk > fusion.SumBlock {
		s.before = w.variable("blocks", s.neutral)
	}
	return s
}

// turn begins another block at the position where there is one.
func (s *runSum) turn(w *writer, i scalar.Expr) {
	if s.before == nil {
		return
	}
	w.when(scalar.Eq(scalar.Rem(i, loop.Int(fusion.SumBlock)), loop.Int(0)), func() {
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

func (s *runSum) clear(w *writer) {
	w.set(s.block, s.neutral)
	if s.before != nil {
		w.set(s.before, s.neutral)
	}
}

// The parts that a chunk may have: of a run that began before it, and of one
// that begins in it and goes on after it.
const (
	laterPart = iota
	firstPart
	chunkParts
)

// end applies a run, or keeps its part.
func (r *runs) end(w *writer, chunk, x, row, acc, before, after scalar.Expr) {
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

// join lets the chunk in which a run begins add up its parts, in order.
func (r *runs) join() Launch {
	w := r.writer()
	r.each(w, func(chunk, x, from, to scalar.Expr) {
		before, after := r.around(w, from, to)
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

// partBlock is how many parts of f32 are added one after the other, and then sums of so many.
const partBlock = 16

// add combines later parts from one chunk to below another into a variable: sums of f32 by
// blocks of blocks, which lose fewer digits.
func (r *runs) add(w *writer, acc, x, from, to scalar.Expr) {
	if r.chunks <= partBlock || !r.adds() {
		w.loop("later", from, to, 1, r.chunks-1, func(later scalar.Expr) {
			w.set(acc, r.Lowering.Mode.Combine(acc, w.load(r.parts, ir.Index{loop.Int(laterPart), later, x})))
		})
		return
	}
	r.addBlocks(w, acc, x, from, to, partBlock*partBlock)
}

// addBlocks adds parts by blocks of a size, each of smaller ones.
func (r *runs) addBlocks(w *writer, acc, x, from, to scalar.Expr, size int) {
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

// endOf returns the first sorted position from one on that has another row, by
// halving.
func (r *runs) endOf(w *writer, row, from scalar.Expr) scalar.Expr {
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
