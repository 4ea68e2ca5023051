package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// A radix sort by digits of four bits: the counts of sixteen digits per thread, two in a word,
// fit the workgroup memory of every device.
const (
	digitBits = 4
	digits    = 1 << digitBits
	digitPair = digits / 2 // digits d and d+digitPair share a word of counts
)

// tileEach is the number of elements per thread: enough to keep the list of counts short, while
// the counts of a tile fit half a word.
const tileEach = 16

// tileThreads is the workgroup size of a radix sort: the counts, 32 bytes a thread, take half
// of the workgroup memory that every device has, which leaves room for their scan.
const tileThreads = 256

// radix sorts by one digit per pass, least significant first. A pass has three launches:
// histograms of tiles, a scan of the counts, and a scatter of each tile. No workgroup waits for
// another.
func (s *sorting) radix() []Launch {
	passes := max(1, ceilDiv(s.bits, digitBits))
	threads := min(s.caps.Invocations, tileThreads)
	tiles := ceilDiv(s.length, threads*tileEach)
	counts := s.p.Scratch("counts", ir.U32, s.rows, digits*tiles)
	var out []Launch
	var before *sorted
	for pass := range passes {
		r := &radixPass{sorting: s, threads: threads, tiles: tiles, shift: pass * digitBits, counts: counts, from: before}
		if pass < passes-1 {
			r.to = &sorted{s.p.Scratch("keys", s.keyType, s.rows, s.length), s.p.Scratch("from", ir.I32, s.rows, s.length)}
		}
		out = append(out, r.histogram(), r.scanCounts(), r.scatter())
		before = r.to
	}
	return out
}

// sorted holds the elements between two passes: keys and source positions.
type sorted struct{ keys, from *fusion.Tensor }

// radixPass sorts by one digit.
type radixPass struct {
	*sorting
	threads, tiles, shift int
	counts                *fusion.Tensor // by row, and by digit and tile
	from, to              *sorted        // nil: the input, and the result
}

// element returns the key and the source position of element i of a row.
func (r *radixPass) element(w *emitter, row, i scalar.Expr) (key, from scalar.Expr) {
	if r.from == nil {
		return w.let("key", r.key(w, row, i)), i
	}
	at := ir.Index{row, i}
	return w.let("key", w.load(r.from.keys, at)), w.load(r.from.from, at)
}

// digit returns the digit of a key, an I32.
func (r *radixPass) digit(w *emitter, key scalar.Expr) scalar.Expr {
	d := scalar.And(scalar.Shr(key, scalar.ConstI(r.keyType, int64(r.shift))), scalar.ConstI(r.keyType, digits-1))
	name := w.name("digit")
	w.add(&loop.Let{Name: name, Value: scalar.Convert(d, ir.I32)})
	return scalar.NewVar(name, ir.I32, 0, digits-1)
}

// sortTile is the workgroup of a tile.
type sortTile struct {
	*emitter
	r             *radixPass
	row, at, lane scalar.Expr
	exists        scalar.Expr
	tally         int // digit counts per thread, two in a word
}

// tile begins a kernel with a workgroup per tile, and counts the digits of each thread.
func (r *radixPass) tile() *sortTile {
	t := &sortTile{emitter: newEmitter(r.p, r.caps).writer(r.threads), r: r, lane: loop.LocalID(0, r.threads)}
	workgroup, exists := t.boundedGroup(r.rows * r.tiles)
	t.exists = exists
	t.row, t.at = t.let("row", scalar.FloorDiv(workgroup, loop.Int(r.tiles))), t.let("tile", scalar.Mod(workgroup, loop.Int(r.tiles)))
	t.tally = t.shared("tally", ir.U32, 1, digitPair*r.threads)
	t.times("pair", digitPair, func(pair scalar.Expr) { t.put(t.tally, t.column(pair), word(0)) })
	t.elements(func(_, key scalar.Expr) {
		slot, one := t.slot(key)
		t.put(t.tally, slot, scalar.Add(scalar.LoadAt(t.tally, ir.U32, slot), one))
	})
	return t
}

// place is the index of the count of a digit of the tile, and after the scan of its first
// element's place.
func (t *sortTile) place(digit scalar.Expr) ir.Index {
	return ir.Index{t.row, scalar.Add(scalar.Mul(digit, loop.Int(t.r.tiles)), t.at)}
}

// column is the slot of the thread's counts of a pair of digits.
func (t *sortTile) column(pair scalar.Expr) scalar.Expr {
	return scalar.Add(scalar.Mul(pair, loop.Int(t.r.threads)), t.lane)
}

// slot returns the slot in which the thread counts a key's digit, and the increment.
func (t *sortTile) slot(key scalar.Expr) (at, one scalar.Expr) {
	d := t.r.digit(t.emitter, key)
	return t.let("slot", t.column(scalar.And(d, loop.Int(digitPair-1)))), t.let("one", scalar.Shl(word(1), bitOffset(d)))
}

// bitOffset is the bit offset of a digit's count in its word.
func bitOffset(digit scalar.Expr) scalar.Expr {
	return scalar.Convert(scalar.Mul(scalar.FloorDiv(digit, loop.Int(digitPair)), loop.Int(16)), ir.U32)
}

// elements writes f for each of the thread's elements, in order.
func (t *sortTile) elements(f func(from, key scalar.Expr)) {
	first := t.let("first", scalar.Mul(scalar.Add(scalar.Mul(t.at, loop.Int(t.r.threads)), t.lane), loop.Int(tileEach)))
	t.times("each", tileEach, func(each scalar.Expr) {
		i := t.let("i", scalar.Add(first, each))
		t.when(scalar.Lt(i, loop.Int(t.r.length)), func() {
			key, from := t.r.element(t.emitter, t.row, t.let("near", scalar.Min(i, loop.Int(t.r.length-1))))
			f(from, key)
		})
	})
}

// histogram stores the digit histogram of each tile.
func (r *radixPass) histogram() Launch {
	t := r.tile()
	t.barrier()
	// Several threads sum each digit; neighbouring threads read neighbouring words.
	parts := r.threads / digits
	sums := t.shared("sums", ir.U32, 1, r.threads)
	digit, part := t.let("digit", scalar.FloorDiv(t.lane, loop.Int(parts))), t.let("part", scalar.Mod(t.lane, loop.Int(parts)))
	sum := t.variable("sum", word(0))
	t.loop("from", part, loop.Int(r.threads), parts, r.threads-1, func(from scalar.Expr) {
		at := scalar.Add(scalar.Mul(scalar.And(digit, loop.Int(digitPair-1)), loop.Int(r.threads)), from)
		t.set(sum, scalar.Add(sum, scalar.And(scalar.Shr(scalar.LoadAt(t.tally, ir.U32, at), bitOffset(digit)), word(0xffff))))
	})
	t.put(sums, t.lane, sum)
	t.barrier()
	t.when(scalar.And(t.exists, scalar.Lt(t.lane, loop.Int(digits))), func() {
		total := t.variable("total", word(0))
		own := scalar.Min(t.lane, loop.Int(digits-1))
		t.times("part", parts, func(part scalar.Expr) {
			t.set(total, scalar.Add(total, scalar.LoadAt(sums, ir.U32, scalar.Add(scalar.Mul(own, loop.Int(parts)), part))))
		})
		t.save(r.counts, t.place(own), total)
	})
	return t.launch(r.name + "_count")
}

// scanCounts is the exclusive scan of a row's counts, ordered by digit, then tile, in one
// workgroup.
func (r *radixPass) scanCounts() Launch {
	w := newEmitter(r.p, r.caps).writer(r.threads)
	row, exists := w.boundedGroup(r.rows)
	lane := loop.LocalID(0, r.threads)
	n, block := digits*r.tiles, r.threads*tileEach
	carry := w.variable("carry", word(0))
	scan := newBlockScan(w, ir.U32, r.threads)
	w.loop("block", loop.Int(0), loop.Int(n), block, n-1, func(from scalar.Expr) {
		first := w.let("first", scalar.Add(from, scalar.Mul(lane, loop.Int(tileEach))))
		each := func(f func(at ir.Index, i scalar.Expr)) {
			w.times("each", tileEach, func(each scalar.Expr) {
				i := w.let("i", scalar.Add(first, each))
				w.when(scalar.Lt(i, loop.Int(n)), func() { f(ir.Index{row, scalar.Min(i, loop.Int(n-1))}, i) })
			})
		}
		sum := w.variable("sum", word(0))
		each(func(at ir.Index, _ scalar.Expr) { w.set(sum, scalar.Add(sum, w.load(r.counts, at))) })
		before, total := scan.run(sum)
		running := w.variable("running", scalar.Add(carry, before))
		each(func(at ir.Index, _ scalar.Expr) {
			own := w.let("own", w.load(r.counts, at))
			w.when(exists, func() { w.save(r.counts, at, running) })
			w.set(running, scalar.Add(running, own))
		})
		w.set(carry, scalar.Add(carry, total))
	})
	return w.launch(r.name + "_places")
}

// scatter scatters the elements of each tile to their places.
func (r *radixPass) scatter() Launch {
	t := r.tile()
	t.barrier()
	t.rank()
	// The place in the row is relative to the digit's first element in the tile.
	start := t.shared("start", ir.I32, 1, digits)
	t.when(scalar.Lt(t.lane, loop.Int(digits)), func() {
		digit := scalar.Min(t.lane, loop.Int(digits-1))
		before := t.field(scalar.Mul(scalar.And(digit, loop.Int(digitPair-1)), loop.Int(r.threads)), digit)
		place := scalar.Convert(t.load(r.counts, t.place(digit)), ir.I32)
		t.put(start, digit, scalar.Sub(place, before))
	})
	t.barrier()
	t.elements(func(from, key scalar.Expr) {
		digit := r.digit(t.emitter, key)
		slot, one := t.slot(key)
		place := t.let("place", scalar.Add(scalar.LoadAt(start, ir.I32, digit), t.field(slot, digit)))
		t.put(t.tally, slot, scalar.Add(scalar.LoadAt(t.tally, ir.U32, slot), one))
		t.when(t.exists, func() {
			if r.to == nil {
				r.save(t.emitter, t.row, place, from, key)
				return
			}
			t.save(r.to.keys, ir.Index{t.row, place}, key)
			t.save(r.to.from, ir.Index{t.row, place}, from)
		})
	})
	return t.launch(r.name + "_move")
}

// field returns the count of a digit in a word of the tally.
func (t *sortTile) field(at, digit scalar.Expr) scalar.Expr {
	return scalar.Convert(scalar.And(scalar.Shr(scalar.LoadAt(t.tally, ir.U32, at), bitOffset(digit)), word(0xffff)), ir.I32)
}

// rank turns the counts into the rank in the sorted tile of each thread's first element of each
// digit: an exclusive scan over the words, all threads of a pair of digits contiguous, with the
// low halves before the high ones.
func (t *sortTile) rank() {
	first := t.let("words", scalar.Mul(t.lane, loop.Int(digitPair)))
	each := func(f func(at scalar.Expr)) {
		t.times("each", digitPair, func(each scalar.Expr) { f(t.let("at", scalar.Add(first, each))) })
	}
	sum := t.variable("sum", word(0))
	each(func(at scalar.Expr) { t.set(sum, scalar.Add(sum, scalar.LoadAt(t.tally, ir.U32, at))) })
	before, total := newBlockScan(t.emitter, ir.U32, t.r.threads).run(sum)
	running := t.variable("running", scalar.Add(before, scalar.Shl(total, word(16))))
	each(func(at scalar.Expr) {
		own := t.let("own", scalar.LoadAt(t.tally, ir.U32, at))
		t.put(t.tally, at, running)
		t.set(running, scalar.Add(running, own))
	})
	t.barrier()
}

// blockScan is a block scan by addition.
type blockScan struct {
	w       *emitter
	d       ir.DType
	threads int
	slot    int
}

func newBlockScan(w *emitter, d ir.DType, threads int) *blockScan {
	return &blockScan{w, d, threads, w.shared("scan", d, 1, 2*threads)}
}

// run returns the exclusive scan over the threads and the total, by recursive doubling with
// double buffering.
func (b *blockScan) run(x scalar.Expr) (before, total scalar.Expr) {
	w, lane := b.w, loop.LocalID(0, b.threads)
	at := func(half int, i scalar.Expr) scalar.Expr { return scalar.Add(loop.Int(half*b.threads), i) }
	load := func(half int, i scalar.Expr) scalar.Expr { return scalar.LoadAt(b.slot, b.d, at(half, i)) }
	w.put(b.slot, at(0, lane), x)
	w.barrier()
	half := 0
	for reach := 1; reach < b.threads; reach *= 2 {
		far := load(half, scalar.Max(scalar.Sub(lane, loop.Int(reach)), loop.Int(0)))
		far = scalar.Select(scalar.Ge(lane, loop.Int(reach)), far, scalar.ConstI(b.d, 0))
		w.put(b.slot, at(1-half, lane), scalar.Add(load(half, lane), far))
		w.barrier()
		half = 1 - half
	}
	before = load(half, scalar.Max(scalar.Sub(lane, loop.Int(1)), loop.Int(0)))
	before = w.let("before", scalar.Select(scalar.Gt(lane, loop.Int(0)), before, scalar.ConstI(b.d, 0)))
	total = w.let("total", load(half, loop.Int(b.threads-1)))
	w.barrier()
	return before, total
}
