package indexed

import (
	"math/bits"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// networkBytes is the workgroup memory of a network on CUDA: the amount that every GPU has, more
// than other kernels use. A network reads and writes memory once; a radix sort does so in each of
// its passes.
const networkBytes = 48 << 10

// room is the workgroup memory of a network.
func (s *sorting) room() int {
	if emit.WithMma && s.caps.Dialect == dtype.CUDA {
		return max(s.caps.SharedBytes, networkBytes)
	}
	return s.caps.SharedBytes
}

// slotBytes is the workgroup memory of an element: its key and its position.
func (s *sorting) slotBytes() int { return s.keyType.Size() + ir.I32.Size() }

// capacity is the number of elements, a power of two, whose keys and positions fit workgroup
// memory.
func (s *sorting) capacity() int { return 1 << (bits.Len(uint(s.room()/s.slotBytes())) - 1) }

// minNetworkSlots is the minimum number of elements per workgroup, eight for each of 64
// threads: short rows share one.
const minNetworkSlots = 512

// A thread does three steps of a network between two barriers, with 2³ elements in its registers.
const (
	passSteps = 3
	unitSlots = 1 << passSteps
)

// stage is a launch of networks, one for each chunk of a row. It keeps the first elements of each.
type stage struct {
	s             *sorting
	from, to      *sorted // nil: the input, and the result
	length, chunk int     // of a row
	kept          int     // of each chunk
}

// stages returns the launches that find the first elements of rows: those of chunks, of these, and so on until
// a workgroup has a row.
func (s *sorting) stages(chunk int) []*stage {
	length := s.length
	var out []*stage
	for run := emit.PowerOfTwo(s.first); emit.WithMma && chunk > 0 && length > chunk; {
		out = append(out, &stage{s: s, length: length, chunk: chunk, kept: run})
		length = run * emit.CeilDiv(length, chunk)
	}
	return append(out, &stage{s: s, length: length, chunk: length, kept: s.first})
}

// networks sorts rows that fit a workgroup, or finds their first elements by chunks.
func (s *sorting) networks(chunk int) []emit.Launch {
	var out []emit.Launch
	stages := s.stages(chunk)
	var before *sorted
	for i, x := range stages {
		x.from = before
		if emit.WithMma && i < len(stages)-1 {
			kept := stages[i+1].length
			x.to = &sorted{s.p.Scratch("keys", s.keyType, s.rows, kept), s.p.Scratch("from", ir.I32, s.rows, kept)}
		}
		before = x.to
		out = append(out, x.network())
	}
	return out
}

// network is a bitonic network in the memory of a workgroup, over runs of width slots. Equal keys
// compare by position, which makes it stable. A network that keeps few elements sorts shorter runs, and of each
// two it keeps the first ones, until one is left.
type network struct {
	*emit.Emitter
	x          *stage
	keys, from int // arrays of workgroup memory
	slots      int
	width, run int // of a chunk, and of what it keeps: powers of two
	padded     bool
}

// selects reports whether networks sort units in registers first, and keep runs of what they store: on CUDA alone,
// as the module of a page, whose plans are the same when made elsewhere, has no room for it.
func (s *sorting) selects() bool { return emit.WithMma && s.caps.Dialect == dtype.CUDA }

// firstRound returns the first round of the sort in workgroup memory.
func (s *sorting) firstRound() int {
	if emit.WithMma && s.selects() {
		return passSteps
	}
	return 0
}

// shape returns the slots of a workgroup, of each of its chunks, and of the run that it keeps.
func (x *stage) shape() (slots, width, run int) {
	width = emit.PowerOfTwo(x.chunk)
	run = width
	if emit.WithMma && x.s.selects() {
		width = max(width, unitSlots)
		run = min(max(emit.PowerOfTwo(x.kept), unitSlots), width)
	}
	perGroup := max(1, min(minNetworkSlots, x.s.capacity())/width)
	for perGroup > 1 && perGroup/2 >= x.lines() {
		perGroup /= 2
	}
	return max(width*perGroup, unitSlots), width, run
}

// chunks is the number of chunks of a row, lines that of all rows.
func (x *stage) chunks() int { return emit.CeilDiv(x.length, x.chunk) }
func (x *stage) lines() int  { return x.s.rows * x.chunks() }

// network emits the launch.
func (x *stage) network() emit.Launch {
	slots, width, run := x.shape()
	w := &network{x: x, slots: slots, width: width, run: run}
	w.padded = x.s.slotBytes()*padded(slots) <= x.s.room()
	perGroup := slots / width
	groups := emit.CeilDiv(x.lines(), perGroup)
	threads := x.s.networkThreads(groups, slots/unitSlots)
	w.Emitter = emit.New(x.s.p, x.s.caps).WithThreads(threads)
	workgroup, exists := w.BoundedGroup(groups)
	w.keys, w.from = w.Shared("keys", x.s.keyType, 1, w.size()), w.Shared("from", ir.I32, 1, w.size())
	first := w.Let("line", scalar.Mul(workgroup, loop.Int(perGroup)))

	if emit.WithMma && x.s.selects() {
		loadUnits(w, first)
	} else {
		w.loadSlots(first)
	}
	w.Barrier()
	w.sort()
	w.Loop("slot", loop.LocalID(0, threads), loop.Int(perGroup*x.kept), threads, perGroup*x.kept-1, func(slot scalar.Expr) {
		of, i := w.Let("of", scalar.FloorDiv(slot, loop.Int(x.kept))), w.Let("at", scalar.Mod(slot, loop.Int(x.kept)))
		line, inside := w.line(first, of)
		row, place := w.x.placeIn(line, i, x.kept)
		at := w.place(scalar.Add(scalar.Mul(of, loop.Int(width)), i))
		w.When(scalar.And(exists, inside), func() {
			x.s.store(w.Emitter, x.to, row, place, scalar.LoadAt(w.from, ir.I32, at), scalar.LoadAt(w.keys, x.s.keyType, at))
		})
	})
	return w.Launch(x.s.name)
}

// placeIn returns the row of element i of a line, and its place in the row; each is the number of elements of a line.
func (x *stage) placeIn(line, i scalar.Expr, each int) (row, place scalar.Expr) {
	if !emit.WithMma {
		return line, i
	}
	chunks := loop.Int(x.chunks())
	return scalar.FloorDiv(line, chunks), scalar.Add(scalar.Mul(scalar.Mod(line, chunks), loop.Int(each)), i)
}

// line returns a line of the workgroup, and whether it is one.
func (w *network) line(first, i scalar.Expr) (line, exists scalar.Expr) {
	line = w.Let("own", scalar.Add(first, i))
	last := loop.Int(w.x.lines() - 1)
	return w.Let("line", scalar.Min(line, last)), scalar.Le(line, last)
}

// take returns element i of a line. Padding has the largest key and a position after all others.
func (w *network) take(line, exists, i scalar.Expr) heldElement {
	row, at := w.x.placeIn(line, i, w.x.chunk)
	inside := scalar.And(exists, scalar.And(scalar.Lt(i, loop.Int(w.x.chunk)), scalar.Lt(at, loop.Int(w.x.length))))
	key, from := w.x.s.element(w.Emitter, w.x.from, row, w.Let("near", scalar.Min(at, loop.Int(w.x.length-1))))
	return heldElement{
		key:  scalar.Select(inside, key, scalar.Not(scalar.ConstI(w.x.s.keyType, 0))),
		from: scalar.Select(inside, from, loop.Int(w.x.s.length)),
	}
}

// loadSlots loads all elements, from the first line of the workgroup on.
func (w *network) loadSlots(first scalar.Expr) {
	threads := w.Workgroup[0]
	w.Loop("slot", loop.LocalID(0, threads), loop.Int(w.slots), threads, w.slots-1, func(slot scalar.Expr) {
		line, exists := w.line(first, scalar.FloorDiv(slot, loop.Int(w.width)))
		w.put(w.place(slot), w.take(line, exists, w.Let("at", scalar.Mod(slot, loop.Int(w.width)))))
	})
}

// loadUnits is loadSlots by units that are sorted in registers. As positions decide between equal keys, a unit may
// hold any elements of its line: neighbouring threads load neighbouring ones.
func loadUnits(w *network, first scalar.Expr) {
	each, units, threads := w.width/unitSlots, w.slots/unitSlots, w.Workgroup[0]
	w.Loop("unit", loop.LocalID(0, threads), loop.Int(units), threads, units-1, func(unit scalar.Expr) {
		line, exists := w.line(first, scalar.FloorDiv(unit, loop.Int(each)))
		held := make([]heldElement, unitSlots)
		for m := range held {
			held[m] = w.inRegisters(w.take(line, exists, scalar.Add(scalar.Mod(unit, loop.Int(each)), loop.Int(m*each))))
		}
		sortUnit(w, held)
		turn := scalar.Expr(loop.Int(0))
		if w.width > unitSlots {
			turn = w.Let("turn", scalar.Mul(scalar.And(unit, loop.Int(1)), loop.Int(unitSlots-1)))
		}
		for m, x := range held {
			w.put(w.place(scalar.Add(scalar.Mul(unit, loop.Int(unitSlots)), scalar.Xor(loop.Int(m), turn))), x)
		}
	})
}

// sortUnit sorts eight elements by the odd-even merges of Batcher (Knuth, The Art of Computer Programming,
// volume 3, section 5.2.2, algorithm M).
func sortUnit(w *network, held []heldElement) {
	for p := unitSlots / 2; p > 0; p /= 2 {
		q, r, d := unitSlots/2, 0, p
		for {
			for i := range unitSlots - d {
				if i&p == r {
					w.order(held[i], held[i+d], scalar.ConstBool(false))
				}
			}
			if q == p {
				break
			}
			d, q, r = q-p, q/2, p
		}
	}
}

// networkThreads returns the workgroup size of a network whose passes have the given number of
// units: the usual size, or on CUDA a larger one where there are few workgroups.
func (s *sorting) networkThreads(groups, units int) int {
	threads := min(emit.UsualThreads(s.caps), units)
	if !emit.WithMma || s.caps.Dialect != dtype.CUDA {
		return threads
	}
	for 2*threads <= min(s.caps.Invocations, units) && 2*threads*groups <= s.caps.Profile().Resident() {
		threads *= 2
	}
	return threads
}

// padded returns the place of a slot in workgroup memory that has an unused place after each eight
// slots: otherwise threads with eight neighbours each would read the same banks.
func padded(slot int) int { return slot + slot>>passSteps }

// place returns the place of a slot in workgroup memory.
func (w *network) place(slot scalar.Expr) scalar.Expr {
	slot = w.Let("slot", slot)
	if w.padded {
		return w.Let("place", scalar.Add(slot, scalar.Shr(slot, loop.Int(passSteps))))
	}
	return slot
}

// size is the number of places.
func (w *network) size() int {
	if w.padded {
		return padded(w.slots)
	}
	return w.slots
}

// log2 returns the logarithm of a power of two.
func log2(x int) int { return bits.Len(uint(x)) - 1 }

// sort sorts the runs, in directions that alternate: in round r pairs 2ʳ⁻¹ apart, then half of that and so
// on. Then, at each level, it keeps the first elements of each two runs, and sorts these.
func (w *network) sort() {
	rounds := log2(w.run)
	passes := emit.CeilDiv(rounds, passSteps)
	if from := w.x.s.firstRound(); rounds > from {
		w.Loop("round", loop.Int(from), loop.Int(rounds), 1, rounds-1, func(round scalar.Expr) {
			w.passes(round, scalar.Add(scalar.FloorDiv(round, loop.Int(passSteps)), loop.Int(1)), passes, nil)
		})
	}
	if levels := log2(w.width / w.run); emit.WithMma && levels > 0 {
		w.Loop("level", loop.Int(1), loop.Int(levels+1), 1, levels, func(level scalar.Expr) {
			w.passes(loop.Int(rounds-1), loop.Int(passes), passes, level)
		})
	}
}

// passes does a round in count passes, at most most of them. A level is that of a merge of two runs, nil where
// runs are sorted.
func (w *network) passes(round, count scalar.Expr, most int, level scalar.Expr) {
	w.Loop("pass", loop.Int(0), count, 1, most-1, func(pass scalar.Expr) {
		first := w.Let("first", scalar.Mul(scalar.Sub(scalar.Sub(count, loop.Int(1)), pass), loop.Int(passSteps)))
		p := networkPass{w: w, round: round, first: first, begins: scalar.Eq(pass, loop.Int(0)), level: level}
		p.emit()
		w.Barrier()
	})
}

// networkPass does the steps of a round for pairs at distances from 2^(first+2) down to 2^first. A
// round may have fewer than the largest of these.
type networkPass struct {
	w            *network
	round, first scalar.Expr
	begins       scalar.Expr // whether this is the first pass of the round
	level        scalar.Expr // nil: 0
}

// emit writes the pass.
func (p *networkPass) emit() {
	highest, units, turns := scalar.Expr(loop.Int(log2(p.w.slots)-passSteps)), scalar.Expr(loop.Int(p.w.slots/unitSlots)), scalar.Expr(loop.Int(p.w.width-1))
	if emit.WithMma && p.level != nil {
		highest, units, turns = scalar.Sub(highest, p.level), p.w.Let("units", scalar.Shr(units, p.level)), p.w.Let("turns", scalar.Shr(turns, p.level))
	}
	lowest := p.w.Let("lowest", scalar.Min(p.first, highest))
	apart := p.w.Let("apart", shifted(loop.Int(1), lowest))
	threads := p.w.Workgroup[0]
	p.w.Loop("unit", loop.LocalID(0, threads), units, threads, p.w.slots/unitSlots-1, func(unit scalar.Expr) {
		low := scalar.And(unit, scalar.Sub(apart, loop.Int(1)))
		base := p.w.Let("base", scalar.Add(scalar.Mul(scalar.Sub(unit, low), loop.Int(unitSlots)), low))
		held := make([]heldElement, unitSlots)
		for m := range held {
			slot := p.w.Let("slot", scalar.Min(scalar.Add(base, scalar.Mul(apart, loop.Int(m))), loop.Int(p.w.slots-1)))
			turn := scalar.Shr(scalar.And(slot, turns), scalar.Add(p.round, loop.Int(1)))
			held[m] = p.held(slot)
			held[m].down = p.w.Let("down", scalar.Ne(scalar.And(turn, loop.Int(1)), loop.Int(0)))
		}
		for step := passSteps - 1; step >= 0; step-- {
			shift := scalar.Add(lowest, loop.Int(step))
			p.w.When(scalar.And(scalar.Le(shift, p.round), scalar.Ge(shift, p.first)), func() {
				for m := range held {
					if m>>step&1 == 0 {
						p.w.order(held[m], held[m|1<<step], held[m].down)
					}
				}
			})
		}
		for _, x := range held {
			p.w.put(x.at, x)
		}
	})
}

// held loads the element of a slot. At a level, runs are 2^level apart in memory: the first pass keeps the
// lesser of two elements, of a run in ascending order and its neighbour in descending order, which is a bitonic
// sequence of the first elements of both.
func (p *networkPass) held(slot scalar.Expr) heldElement {
	at := func(slot scalar.Expr) heldElement {
		place := p.w.place(slot)
		return heldElement{at: place, key: scalar.LoadAt(p.w.keys, p.w.x.s.keyType, place), from: scalar.LoadAt(p.w.from, ir.I32, place)}
	}
	if !emit.WithMma || p.level == nil {
		return p.w.inRegisters(at(slot))
	}
	within := scalar.And(slot, loop.Int(p.w.run-1))
	slot = p.w.Let("slot", scalar.Min(scalar.Add(shifted(scalar.Sub(slot, within), p.level), within), loop.Int(p.w.slots-1)))
	x := p.w.inRegisters(at(slot))
	p.w.When(p.begins, func() {
		apart := shifted(loop.Int(p.w.run/2), p.level)
		y := p.w.inRegisters(at(scalar.Min(scalar.Add(slot, apart), loop.Int(p.w.slots-1))))
		p.w.order(x, y, scalar.ConstBool(false))
	})
	return x
}

// heldElement is an element in registers, its place, and whether pairs that begin with it are put in
// descending order.
type heldElement struct{ at, key, from, down scalar.Expr }

// inRegisters copies an element to variables.
func (w *network) inRegisters(x heldElement) heldElement {
	x.key, x.from = w.Var("key", x.key), w.Var("from", x.from)
	return x
}

// put stores an element at a place of workgroup memory.
func (w *network) put(at scalar.Expr, x heldElement) {
	w.Put(w.keys, at, x.key)
	w.Put(w.from, at, x.from)
}

// order swaps two elements that are not in order.
func (w *network) order(a, b heldElement, down scalar.Expr) {
	after := scalar.Or(scalar.Gt(a.key, b.key), scalar.And(scalar.Eq(a.key, b.key), scalar.Gt(a.from, b.from)))
	swap := w.Let("swap", scalar.Ne(after, down))
	for _, x := range [][2]scalar.Expr{{a.key, b.key}, {a.from, b.from}} {
		first, second := w.Let("first", scalar.Select(swap, x[1], x[0])), w.Let("second", scalar.Select(swap, x[0], x[1]))
		w.Set(x[0], first)
		w.Set(x[1], second)
	}
}

// shifted is x times 2 to the power of by.
func shifted(x, by scalar.Expr) scalar.Expr {
	return scalar.Convert(scalar.Shl(scalar.Convert(x, ir.U32), scalar.Convert(by, ir.U32)), ir.I32)
}

// networkCost is the time of bitonic networks, in every stage: of passes with a barrier each, and of the
// operations of their units. Those of all levels together have the units of one pass of all slots.
func (s *sorting) networkCost(chunk int) float64 {
	d, total := s.caps.Profile(), 0.0
	for _, x := range s.stages(chunk) {
		slots, width, run := x.shape()
		whole := 2 // the first one, and the stores
		for round := x.s.firstRound(); 1<<round < run; round++ {
			whole += round/passSteps + 1
		}
		merge := emit.CeilDiv(log2(run), passSteps)
		barriers := whole + merge*log2(width/run)
		if run < width {
			whole += merge
		}
		units, groups := slots/unitSlots, emit.CeilDiv(x.lines()*width, slots)
		total += d.Launch + d.Waves(groups, units)*float64(barriers)*(d.Barrier+unitCycles/d.Clock) + d.OpsTime(unitOps*float64(whole)*float64(units)*float64(groups))
	}
	return total
}

// unitCycles are those of a pass for one unit per thread of a workgroup: an estimate of
// sixteen loads, twelve comparisons and sixteen stores in workgroup memory, 160 ns on an H200. unitOps is fitted
// to an H200's time of 4,096 rows of 1,024, 106 µs. The first 32 of 2,048 rows of 2,048 took
// 60 µs, the first 256 of 8 rows of 128,256 51, the first 50 of 2²⁰ 39.
const (
	unitCycles = 272
	unitOps    = 145
)
