package indexed

import (
	"math/bits"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// sorting is a stable sort of each row by an unsigned key. The results are the source positions
// of the first elements, and optionally the keys.
type sorting struct {
	p            *fusion.Partition
	caps         loop.Caps
	name         string
	rows, length int
	first        int      // elements of each row that are stored
	keyType      ir.DType // U32 or U64
	bits         int      // significant low bits of the keys
	// key returns the key of element i of a row.
	key func(e *emit.Emitter, row, i scalar.Expr) scalar.Expr
	// save stores the source position and the key of the element at place i of a row.
	save func(w *emit.Emitter, row, i, from, key scalar.Expr)
}

// sortingOf returns the sort of a group of kind SortKind, or nil where it has no elements.
func sortingOf(g *fusion.Group, caps loop.Caps) *sorting {
	n, out := g.Members[0].Node, g.Members[0].Store[0]
	l := n.Def().Lower.(*ir.SortLowering)
	axis := l.Axis(n)
	length, _ := n.Input(0).Shape()[axis].Const()
	if out.Len() == 0 {
		return nil
	}
	lines := append([]int{}, out.Dims...)
	lines[axis] = 1
	place := func(e *emit.Emitter, row, i scalar.Expr) ir.Index {
		at := e.Unflatten(row, lines)
		at[axis] = i
		return at
	}
	s := &sorting{
		p: g.Partition(), caps: caps, name: g.Name(), rows: out.Len() / out.Dims[axis], length: length, first: out.Dims[axis], bits: l.Bits(n),
		keyType: l.Key(n, scalar.FreeVar("x", n.Input(0).DType())).Type,
		key: func(e *emit.Emitter, row, i scalar.Expr) scalar.Expr {
			return l.Key(n, e.Reader().Element(n.Input(0), place(e, row, i)))
		},
		save: func(w *emit.Emitter, row, i, from, _ scalar.Expr) { w.Save(out, place(w, row, i), from) },
	}
	s.bits = min(s.bits, s.usedBits())
	return s
}

// usedBits returns the number of low bits that a key can have, by what its computation bounds.
func (s *sorting) usedBits() int {
	e := emit.New(s.p, s.caps)
	free := func(name string, below int) scalar.Expr { return scalar.NewVar(name, ir.I32, 0, int64(below-1)) }
	low, high, known := e.Simplifier.Range(s.key(e, free("row", s.rows), free("place", s.length)))
	if !known || low < 0 {
		return 8 * s.keyType.Size()
	}
	return bits.Len64(uint64(high))
}

// sortSpace is the schedule space of a sort.
type sortSpace struct{ s *sorting } // nil where there is nothing to sort

// NewSortSpace returns the schedule space of a sort.
func NewSortSpace(g *fusion.Group, caps loop.Caps) emit.Space {
	return sortSpace{sortingOf(g, caps)}
}

// Rule returns the default schedule, see [emit.Space].
func (w sortSpace) Rule() emit.Schedule { return w.Candidates()[0].Schedule }

// Candidates returns the schedules worth measuring, see [emit.Space]: a network where a row fits one,
// otherwise the least cost, comes first.
func (w sortSpace) Candidates() []emit.Ranked {
	if w.s == nil {
		return []emit.Ranked{{Schedule: emit.Schedule{Family: emit.BitonicSort}, Cost: 0}}
	}
	list := []emit.Ranked{{Schedule: emit.Schedule{Family: emit.RadixSort}, Cost: w.s.radixCost()}}
	if emit.WithMma && w.s.selects() {
		list = withChunks(w, list)
	}
	if whole := (emit.Schedule{Family: emit.BitonicSort}); w.Fits(whole) {
		list = append([]emit.Ranked{{Schedule: whole, Cost: w.s.networkCost(0)}}, list...)
	}
	return list
}

// withChunks adds schedules by chunks to a list, of which the one of the least cost comes first.
func withChunks(w sortSpace, list []emit.Ranked) []emit.Ranked {
	for chunk := w.s.capacity(); chunk >= minChunk; chunk /= 2 {
		if s := (emit.Schedule{Family: emit.BitonicSort, Each: chunk}); w.Fits(s) {
			list = append(list, emit.Ranked{Schedule: s, Cost: w.s.networkCost(chunk)})
			if last := len(list) - 1; list[last].Cost < list[0].Cost {
				list[0], list[last] = list[last], list[0]
			}
		}
	}
	return list
}

// minChunk is the minimum length of a chunk of a row that keeps few of its elements.
const minChunk = 1024

// Fits accepts networks for rows that fit a workgroup, and for chunks of longer ones that keep at most a
// quarter of their elements.
func (w sortSpace) Fits(s emit.Schedule) bool {
	chunk := s.Each
	s.Each = 0
	switch {
	case chunk == 0:
		return s == emit.Schedule{Family: emit.RadixSort} || s == emit.Schedule{Family: emit.BitonicSort} && (w.s == nil || w.s.length <= w.s.capacity())
	case w.s == nil || !w.s.selects() || s != emit.Schedule{Family: emit.BitonicSort}:
		return false
	}
	return 4*emit.PowerOfTwo(w.s.first) <= chunk && chunk < w.s.length && chunk <= w.s.capacity() && chunk == emit.PowerOfTwo(chunk)
}

// Emit returns the launches of a schedule that fits.
func (w sortSpace) Emit(s emit.Schedule) []emit.Launch {
	switch {
	case w.s == nil:
		return nil
	case s.Family == emit.BitonicSort:
		return w.s.networks(s.Each)
	}
	return w.s.radix()
}

// radixCost counts the passes over memory: the histogram reads the keys, the scatter reads and
// writes keys and positions.
func (s *sorting) radixCost() float64 {
	d, passes := s.caps.Profile(), float64(emit.CeilDiv(s.bits, digitBits))
	elements := float64(s.rows * s.length * (s.keyType.Size() + 4))
	return passes * (3*d.Launch + 2.5*elements/d.Bandwidth())
}

// A radix sort by digits of four bits: the counts of sixteen digits per thread, two in a word,
// fit the workgroup memory of every device.
const (
	digitBits = 4
	digits    = 1 << digitBits
	digitPair = digits / 2 // digits d and d+digitPair share a word of counts
)

// tileEach is the maximum number of elements per thread: enough to keep the list of counts short, while
// the counts of a tile fit half a word. minTileEach is the minimum.
const (
	tileEach    = 16
	minTileEach = 4
)

// tileThreads is the workgroup size of a radix sort: the counts, 32 bytes a thread, take half
// of the workgroup memory that every device has, which leaves room for their scan.
const tileThreads = 256

// radix sorts by one digit per pass, least significant first. A pass has three launches:
// histograms of tiles, a scan of the counts, and a scatter of each tile; few counts are summed by each tile
// itself. No workgroup waits for another.
func (s *sorting) radix() []emit.Launch {
	passes := max(1, emit.CeilDiv(s.bits, digitBits))
	threads := min(s.caps.Invocations, tileThreads)
	each := s.eachThread(threads)
	tiles := emit.CeilDiv(s.length, threads*each)
	counts := s.p.Scratch("counts", ir.U32, s.rows, digits*tiles)
	var out []emit.Launch
	var before *sorted
	for pass := range passes {
		r := &radixPass{sorting: s, threads: threads, each: each, tiles: tiles, shift: pass * digitBits, counts: counts, from: before}
		if pass < passes-1 {
			r.to = &sorted{s.p.Scratch("keys", s.keyType, s.rows, s.length), s.p.Scratch("from", ir.I32, s.rows, s.length)}
		}
		out = append(out, r.histogram())
		if !sumsCounts(r) {
			out = append(out, r.scanCounts())
		}
		out = append(out, r.scatter())
		before = r.to
	}
	return out
}

// eachThread returns the number of elements per thread. It is reduced where processors would have
// fewer than two workgroups, as a thread waits for each of its elements in turn.
func (s *sorting) eachThread(threads int) int {
	each := tileEach
	for each > minTileEach && s.rows*emit.CeilDiv(s.length, threads*each) < 2*s.caps.Profile().Processors {
		each /= 2
	}
	return each
}

// sorted holds the elements between two passes: keys and source positions.
type sorted struct{ keys, from *fusion.Tensor }

// radixPass sorts by one digit.
type radixPass struct {
	*sorting
	threads, each int // threads of a tile, and elements of a thread
	tiles, shift  int
	counts        *fusion.Tensor // by row, and by digit and tile
	from, to      *sorted        // nil: the input, and the result
}

// element returns the key and the source position of element i of a row, of the input where before is nil.
func (s *sorting) element(w *emit.Emitter, before *sorted, row, i scalar.Expr) (key, from scalar.Expr) {
	if before == nil {
		return w.Let("key", s.key(w, row, i)), i
	}
	at := ir.Index{row, i}
	return w.Let("key", w.Load(before.keys, at)), w.Load(before.from, at)
}

// store stores an element at a place of a row, of the result where to is nil.
func (s *sorting) store(w *emit.Emitter, to *sorted, row, place, from, key scalar.Expr) {
	if to == nil {
		w.When(scalar.Lt(place, loop.Int(s.first)), func() { s.save(w, row, scalar.Min(place, loop.Int(s.first-1)), from, key) })
		return
	}
	w.Save(to.keys, ir.Index{row, place}, key)
	w.Save(to.from, ir.Index{row, place}, from)
}

// digit returns the digit of a key, an I32.
func (r *radixPass) digit(w *emit.Emitter, key scalar.Expr) scalar.Expr {
	d := scalar.And(scalar.Shr(key, scalar.ConstI(r.keyType, int64(r.shift))), scalar.ConstI(r.keyType, digits-1))
	name := w.Name("digit")
	w.Add(&loop.Let{Name: name, Value: scalar.Convert(d, ir.I32)})
	return scalar.NewVar(name, ir.I32, 0, digits-1)
}

// sortTile is the workgroup of a tile.
type sortTile struct {
	*emit.Emitter
	r             *radixPass
	row, at, lane scalar.Expr
	exists        scalar.Expr
	tally         int           // digit counts per thread, two in a word
	own           []sortElement // the thread's elements, in order
}

// sortElement is an element of a thread.
type sortElement struct{ key, from, inside scalar.Expr }

// tile begins a kernel with a workgroup per tile, and counts the digits of each thread.
func (r *radixPass) tile() *sortTile {
	t := &sortTile{Emitter: emit.New(r.p, r.caps).WithThreads(r.threads), r: r, lane: loop.LocalID(0, r.threads)}
	workgroup, exists := t.BoundedGroup(r.rows * r.tiles)
	t.exists = exists
	t.row, t.at = t.Let("row", scalar.FloorDiv(workgroup, loop.Int(r.tiles))), t.Let("tile", scalar.Mod(workgroup, loop.Int(r.tiles)))
	t.tally = t.Shared("tally", ir.U32, 1, tallyWords(r))
	t.Times("pair", digitPair, func(pair scalar.Expr) { t.Put(t.tally, t.column(pair), emit.Word(0)) })
	t.load()
	t.elements(func(_, key scalar.Expr) {
		slot, one := t.slot(key)
		t.Put(t.tally, slot, scalar.Add(scalar.LoadAt(t.tally, ir.U32, slot), one))
	})
	return t
}

// place is the index of the count of a digit of the tile, and after the scan of its first
// element's place.
func (t *sortTile) place(digit scalar.Expr) ir.Index {
	if sumsCounts(t.r) {
		return ir.Index{t.row, scalar.Add(scalar.Mul(t.at, loop.Int(digits)), digit)}
	}
	return ir.Index{t.row, scalar.Add(scalar.Mul(digit, loop.Int(t.r.tiles)), t.at)}
}

// column is the slot of the thread's counts of a pair of digits.
func (t *sortTile) column(pair scalar.Expr) scalar.Expr {
	return wordAt(t, scalar.Add(scalar.Mul(pair, loop.Int(t.r.threads)), t.lane))
}

// tallyWords is the size of the counts of threads. On CUDA a word in banks lies between each group of as many words as
// there are banks, so that neither threads at their counts of a digit nor threads at words one after the other share banks.
func tallyWords(r *radixPass) int {
	words := digitPair * r.threads
	if emit.WithMma && r.caps.Dialect == dtype.CUDA {
		words += words / banks
	}
	return words
}

const banks = 32

// wordAt is the place of a word of the counts of threads.
func wordAt(t *sortTile, i scalar.Expr) scalar.Expr {
	if emit.WithMma && t.r.caps.Dialect == dtype.CUDA {
		i = scalar.Add(i, scalar.FloorDiv(i, loop.Int(banks)))
	}
	return i
}

// slot returns the slot in which the thread counts a key's digit, and the increment.
func (t *sortTile) slot(key scalar.Expr) (at, one scalar.Expr) {
	d := t.r.digit(t.Emitter, key)
	return t.Let("slot", t.column(scalar.And(d, loop.Int(digitPair-1)))), t.Let("one", scalar.Shl(emit.Word(1), bitOffset(d)))
}

// bitOffset is the bit offset of a digit's count in its word.
func bitOffset(digit scalar.Expr) scalar.Expr {
	return scalar.Convert(scalar.Mul(scalar.FloorDiv(digit, loop.Int(digitPair)), loop.Int(16)), ir.U32)
}

// load loads the thread's elements, without waiting for one before the next.
func (t *sortTile) load() {
	first := t.Let("first", scalar.Mul(scalar.Add(scalar.Mul(t.at, loop.Int(t.r.threads)), t.lane), loop.Int(t.r.each)))
	for k := range t.r.each {
		i := scalar.Add(first, loop.Int(k))
		key, from := t.r.element(t.Emitter, t.r.from, t.row, t.Let("near", scalar.Min(i, loop.Int(t.r.length-1))))
		t.own = append(t.own, sortElement{key, t.Let("from", from), scalar.Lt(i, loop.Int(t.r.length))})
	}
}

// elements writes f for each of the thread's elements, in order.
func (t *sortTile) elements(f func(from, key scalar.Expr)) {
	for _, e := range t.own {
		t.When(e.inside, func() { f(e.from, e.key) })
	}
}

// histogram stores the digit histogram of each tile.
func (r *radixPass) histogram() emit.Launch {
	t := r.tile()
	t.Barrier()
	if r.threads < digits {
		t.eachDigit(func(digit scalar.Expr) {
			sum := t.Var("sum", emit.Word(0))
			t.Times("from", r.threads, func(from scalar.Expr) { t.addTally(sum, digit, from) })
			t.When(t.exists, func() { t.Save(r.counts, t.place(digit), sum) })
		})
		return t.Launch(r.name + "_count")
	}
	// Several threads sum each digit; neighbouring threads read neighbouring words.
	parts := r.threads / digits
	sums := t.Shared("sums", ir.U32, 1, r.threads)
	digit, part := t.Let("digit", scalar.FloorDiv(t.lane, loop.Int(parts))), t.Let("part", scalar.Mod(t.lane, loop.Int(parts)))
	sum := t.Var("sum", emit.Word(0))
	t.Loop("from", part, loop.Int(r.threads), parts, r.threads-1, func(from scalar.Expr) { t.addTally(sum, digit, from) })
	t.Put(sums, t.lane, sum)
	t.Barrier()
	t.When(scalar.And(t.exists, scalar.Lt(t.lane, loop.Int(digits))), func() {
		total := t.Var("total", emit.Word(0))
		own := scalar.Min(t.lane, loop.Int(digits-1))
		t.Times("part", parts, func(part scalar.Expr) {
			t.Set(total, scalar.Add(total, scalar.LoadAt(sums, ir.U32, scalar.Add(scalar.Mul(own, loop.Int(parts)), part))))
		})
		t.Save(r.counts, t.place(own), total)
	})
	return t.Launch(r.name + "_count")
}

// addTally adds a thread's count of a digit to a sum.
func (t *sortTile) addTally(sum, digit, thread scalar.Expr) {
	at := wordAt(t, scalar.Add(scalar.Mul(scalar.And(digit, loop.Int(digitPair-1)), loop.Int(t.r.threads)), thread))
	t.Set(sum, scalar.Add(sum, scalar.And(scalar.Shr(scalar.LoadAt(t.tally, ir.U32, at), bitOffset(digit)), emit.Word(0xffff))))
}

// eachDigit writes f for each digit: one digit per thread where there are enough threads.
func (t *sortTile) eachDigit(f func(digit scalar.Expr)) {
	if t.r.threads < digits {
		t.Loop("digit", t.lane, loop.Int(digits), t.r.threads, digits-1, f)
		return
	}
	t.When(scalar.Lt(t.lane, loop.Int(digits)), func() { f(scalar.Min(t.lane, loop.Int(digits-1))) })
}

// scanCounts is the exclusive scan of a row's counts, ordered by digit, then tile, in one
// workgroup.
func (r *radixPass) scanCounts() emit.Launch {
	w := emit.New(r.p, r.caps).WithThreads(r.threads)
	row, exists := w.BoundedGroup(r.rows)
	lane := loop.LocalID(0, r.threads)
	n, block := digits*r.tiles, r.threads*tileEach
	carry := w.Var("carry", emit.Word(0))
	scan := newBlockScan(w, ir.U32, r.threads)
	w.Loop("block", loop.Int(0), loop.Int(n), block, n-1, func(from scalar.Expr) {
		first := w.Let("first", scalar.Add(from, scalar.Mul(lane, loop.Int(tileEach))))
		// All counts are loaded before the first is stored, so that none waits for another.
		var counts [tileEach]scalar.Expr
		sum := scalar.Expr(emit.Word(0))
		for k := range counts {
			i := scalar.Add(first, loop.Int(k))
			at := ir.Index{row, scalar.Min(i, loop.Int(n-1))}
			counts[k] = w.Let("own", scalar.Select(scalar.Lt(i, loop.Int(n)), w.Load(r.counts, at), emit.Word(0)))
			sum = scalar.Add(sum, counts[k])
		}
		before, total := scan.run(w.Let("sum", sum))
		running := scalar.Add(carry, before)
		for k, own := range counts {
			i := scalar.Add(first, loop.Int(k))
			running = w.Let("running", running)
			w.When(scalar.And(exists, scalar.Lt(i, loop.Int(n))), func() { w.Save(r.counts, ir.Index{row, scalar.Min(i, loop.Int(n-1))}, running) })
			running = scalar.Add(running, own)
		}
		w.Set(carry, scalar.Add(carry, total))
	})
	return w.Launch(r.name + "_places")
}

// scatter scatters the elements of each tile to their places.
func (r *radixPass) scatter() emit.Launch {
	t := r.tile()
	t.Barrier()
	t.rank()
	// The place in the row is relative to the digit's first element in the tile.
	start := t.Shared("start", ir.I32, 1, digits)
	firstPlace := func(digit scalar.Expr) scalar.Expr { return t.Load(r.counts, t.place(digit)) }
	if emit.WithMma && sumsCounts(r) {
		place := placeOfLane(t)
		firstPlace = func(scalar.Expr) scalar.Expr { return place }
	}
	t.eachDigit(func(digit scalar.Expr) {
		before := t.field(wordAt(t, scalar.Mul(scalar.And(digit, loop.Int(digitPair-1)), loop.Int(r.threads))), digit)
		t.Put(start, digit, scalar.Sub(scalar.Convert(firstPlace(digit), ir.I32), before))
	})
	t.Barrier()
	if emit.WithMma && r.collects() {
		t.collect(start)
		return t.Launch(r.name + "_move")
	}
	t.elements(func(from, key scalar.Expr) {
		digit := r.digit(t.Emitter, key)
		t.saveAt(scalar.Add(scalar.LoadAt(start, ir.I32, digit), t.rankOf(key, digit)), from, key)
	})
	return t.Launch(r.name + "_move")
}

// maxSummed is the maximum number of counts of a row that each tile sums itself, which saves a launch (H200: of a pass over
// two rows of 400,000 the scan of counts took 9 µs of 29). All tiles of a row together read about its square.
const maxSummed = 1 << 13

// sumsCounts reports whether tiles sum the counts of their row. Threads have a digit each, in whole groups.
func sumsCounts(r *radixPass) bool {
	return emit.WithMma && r.caps.Dialect == dtype.CUDA && r.threads%digits == 0 && digits*r.tiles <= maxSummed
}

// placeOfLane returns the place of the tile's first element of a digit, in the thread with the digit's number: the
// elements of smaller digits, and of the digit those of tiles before.
func placeOfLane(t *sortTile) scalar.Expr {
	r, parts := t.r, t.r.threads/digits
	digit, part := t.Let("digit", scalar.Mod(t.lane, loop.Int(digits))), t.Let("part", scalar.FloorDiv(t.lane, loop.Int(digits)))
	all, before := t.Var("all", emit.Word(0)), t.Var("before", emit.Word(0))
	t.Loop("from", part, loop.Int(r.tiles), parts*countsAtOnce, r.tiles-1, func(from scalar.Expr) {
		var own [countsAtOnce]scalar.Expr // loaded before the first is added
		for k := range own {
			tile := scalar.Add(from, loop.Int(k*parts))
			near := scalar.Min(tile, loop.Int(r.tiles-1))
			count := t.Load(r.counts, ir.Index{t.row, scalar.Add(scalar.Mul(near, loop.Int(digits)), digit)})
			own[k] = t.Let("own", scalar.Select(scalar.Lt(tile, loop.Int(r.tiles)), count, emit.Word(0)))
		}
		for k, count := range own {
			t.Set(all, scalar.Add(all, count))
			t.Set(before, scalar.Add(before, scalar.Select(scalar.Lt(scalar.Add(from, loop.Int(k*parts)), t.at), count, emit.Word(0))))
		}
	})
	sums := t.Shared("sums", ir.U32, 1, 2*r.threads)
	t.Put(sums, t.lane, all)
	t.Put(sums, scalar.Add(t.lane, loop.Int(r.threads)), before)
	t.Barrier()
	total, place := t.Var("total", emit.Word(0)), t.Var("place", emit.Word(0))
	t.Times("part", parts, func(part scalar.Expr) {
		at := scalar.Add(scalar.Mul(part, loop.Int(digits)), digit)
		t.Set(total, scalar.Add(total, scalar.LoadAt(sums, ir.U32, at)))
		t.Set(place, scalar.Add(place, scalar.LoadAt(sums, ir.U32, scalar.Add(at, loop.Int(r.threads)))))
	})
	totals := t.Shared("totals", ir.U32, 1, digits)
	t.When(scalar.Lt(t.lane, loop.Int(digits)), func() { t.Put(totals, scalar.Min(t.lane, loop.Int(digits-1)), total) })
	t.Barrier()
	t.Times("other", digits, func(other scalar.Expr) {
		smaller := scalar.Lt(other, digit)
		t.Set(place, scalar.Add(place, scalar.Select(smaller, scalar.LoadAt(totals, ir.U32, other), emit.Word(0))))
	})
	return place
}

// countsAtOnce is the number of counts that a thread loads before it adds the first.
const countsAtOnce = 4

// rankOf returns the rank of the thread's next element of a digit in the sorted tile, and counts it.
func (t *sortTile) rankOf(key, digit scalar.Expr) scalar.Expr {
	slot, one := t.slot(key)
	rank := t.Let("rank", t.field(slot, digit))
	t.Put(t.tally, slot, scalar.Add(scalar.LoadAt(t.tally, ir.U32, slot), one))
	return rank
}

// saveAt stores an element at a place of the row.
func (t *sortTile) saveAt(place, from, key scalar.Expr) {
	place = t.Let("place", place)
	t.When(t.exists, func() { t.r.store(t.Emitter, t.r.to, t.row, place, from, key) })
}

// collects reports whether a tile is sorted in workgroup memory before it is stored: its runs of equal
// digits are then stored by neighbouring threads. On CUDA, as other targets have less of that memory than
// a tile takes beside its counts.
func (r *radixPass) collects() bool {
	counts := 4 * (tallyWords(r) + 2*r.threads + digits)
	if sumsCounts(r) {
		counts += 4 * (2*r.threads + digits)
	}
	return r.caps.Dialect == dtype.CUDA && counts+r.threads*r.each*r.slotBytes() <= networkBytes
}

// collect stores a tile through workgroup memory. start has by digit how far its places are from its
// ranks.
func (t *sortTile) collect(start int) {
	size := t.r.threads * t.r.each
	keys, from := t.Shared("keys", t.r.keyType, 1, size), t.Shared("from", ir.I32, 1, size)
	t.elements(func(at, key scalar.Expr) {
		rank := t.rankOf(key, t.r.digit(t.Emitter, key))
		t.Put(keys, rank, key)
		t.Put(from, rank, at)
	})
	t.Barrier()
	count := t.Let("count", scalar.Min(scalar.Sub(loop.Int(t.r.length), scalar.Mul(t.at, loop.Int(size))), loop.Int(size)))
	t.Loop("rank", t.lane, count, t.r.threads, size-1, func(rank scalar.Expr) {
		key := t.Let("key", scalar.LoadAt(keys, t.r.keyType, rank))
		place := scalar.Add(scalar.LoadAt(start, ir.I32, t.r.digit(t.Emitter, key)), rank)
		t.saveAt(place, scalar.LoadAt(from, ir.I32, rank), key)
	})
}

// field returns the count of a digit in a word of the tally.
func (t *sortTile) field(at, digit scalar.Expr) scalar.Expr {
	return scalar.Convert(scalar.And(scalar.Shr(scalar.LoadAt(t.tally, ir.U32, at), bitOffset(digit)), emit.Word(0xffff)), ir.I32)
}

// rank turns the counts into the rank in the sorted tile of each thread's first element of each
// digit: an exclusive scan over the words, all threads of a pair of digits contiguous, with the
// low halves before the high ones.
func (t *sortTile) rank() {
	first := t.Let("words", scalar.Mul(t.lane, loop.Int(digitPair)))
	each := func(f func(at scalar.Expr)) {
		t.Times("each", digitPair, func(each scalar.Expr) { f(t.Let("at", wordAt(t, scalar.Add(first, each)))) })
	}
	sum := t.Var("sum", emit.Word(0))
	each(func(at scalar.Expr) { t.Set(sum, scalar.Add(sum, scalar.LoadAt(t.tally, ir.U32, at))) })
	before, total := newBlockScan(t.Emitter, ir.U32, t.r.threads).run(sum)
	running := t.Var("running", scalar.Add(before, scalar.Shl(total, emit.Word(16))))
	each(func(at scalar.Expr) {
		own := t.Let("own", scalar.LoadAt(t.tally, ir.U32, at))
		t.Put(t.tally, at, running)
		t.Set(running, scalar.Add(running, own))
	})
	t.Barrier()
}

// blockScan is a block scan by addition.
type blockScan struct {
	w       *emit.Emitter
	d       ir.DType
	threads int
	slot    int
}

func newBlockScan(w *emit.Emitter, d ir.DType, threads int) *blockScan {
	return &blockScan{w, d, threads, w.Shared("scan", d, 1, 2*threads)}
}

// run returns the exclusive scan over the threads and the total, by recursive doubling with
// double buffering.
func (b *blockScan) run(x scalar.Expr) (before, total scalar.Expr) {
	w, lane := b.w, loop.LocalID(0, b.threads)
	at := func(half int, i scalar.Expr) scalar.Expr { return scalar.Add(loop.Int(half*b.threads), i) }
	load := func(half int, i scalar.Expr) scalar.Expr { return scalar.LoadAt(b.slot, b.d, at(half, i)) }
	w.Put(b.slot, at(0, lane), x)
	w.Barrier()
	half := 0
	for reach := 1; reach < b.threads; reach *= 2 {
		far := load(half, scalar.Max(scalar.Sub(lane, loop.Int(reach)), loop.Int(0)))
		far = scalar.Select(scalar.Ge(lane, loop.Int(reach)), far, scalar.ConstI(b.d, 0))
		w.Put(b.slot, at(1-half, lane), scalar.Add(load(half, lane), far))
		w.Barrier()
		half = 1 - half
	}
	before = load(half, scalar.Max(scalar.Sub(lane, loop.Int(1)), loop.Int(0)))
	before = w.Let("before", scalar.Select(scalar.Gt(lane, loop.Int(0)), before, scalar.ConstI(b.d, 0)))
	total = w.Let("total", load(half, loop.Int(b.threads-1)))
	w.Barrier()
	return before, total
}
