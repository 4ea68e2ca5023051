package sched

import (
	"math/bits"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// sorting is a stable sort of each row by an unsigned key. The results are the source positions
// of the sorted elements, and optionally the keys.
type sorting struct {
	p            *fusion.Partition
	caps         loop.Caps
	name         string
	rows, length int
	keyType      ir.DType // U32 or U64
	bits         int      // significant low bits of the keys
	// key returns the key of element i of a row.
	key func(e *emitter, row, i scalar.Expr) scalar.Expr
	// save stores the source position and the key of the element at place i of a row.
	save func(w *emitter, row, i, from, key scalar.Expr)
}

// sortingOf returns the sort of a group of kind SortKind, or nil where it has no elements.
func sortingOf(g *fusion.Group, caps loop.Caps) *sorting {
	n, out := g.Members[0].Node, g.Members[0].Store[0]
	l := n.Def().Lower.(*ir.SortLowering)
	axis := l.Axis(n)
	if out.Len() == 0 {
		return nil
	}
	lines := append([]int{}, out.Dims...)
	lines[axis] = 1
	place := func(e *emitter, row, i scalar.Expr) ir.Index {
		at := e.unflatten(row, lines)
		at[axis] = i
		return at
	}
	return &sorting{
		p: g.Partition(), caps: caps, name: g.Name(), rows: out.Len() / out.Dims[axis], length: out.Dims[axis], bits: l.Bits(n),
		keyType: l.Key(n, scalar.FreeVar("x", n.Input(0).DType())).Type,
		key: func(e *emitter, row, i scalar.Expr) scalar.Expr {
			return l.Key(n, e.reader().Element(n.Input(0), place(e, row, i)))
		},
		save: func(w *emitter, row, i, from, _ scalar.Expr) { w.save(out, place(w, row, i), from) },
	}
}

func (s *sorting) launches() []Launch {
	if s.length <= s.capacity() {
		return []Launch{s.network()}
	}
	return s.radix()
}

// capacity is the number of elements, a power of two, whose keys and positions fit workgroup
// memory.
func (s *sorting) capacity() int {
	each := s.keyType.Size() + ir.I32.Size()
	return 1 << (bits.Len(uint(s.caps.SharedBytes/each)) - 1)
}

// minNetworkSlots is the minimum number of elements per workgroup, a pair for each of 256
// threads: short rows share one.
const minNetworkSlots = 512

// network sorts rows that fit a workgroup by a bitonic network. Equal keys compare by position,
// which makes it stable; padding has the largest key and the largest positions.
func (s *sorting) network() Launch {
	width := max(powerOfTwo(s.length), 2)
	perGroup := max(1, min(minNetworkSlots, s.capacity())/width)
	for perGroup > 1 && perGroup/2 >= s.rows {
		perGroup /= 2
	}
	slots := width * perGroup
	w := newEmitter(s.p, s.caps).writer(min(usualThreads(s.caps), slots/2))
	threads := w.workgroup[0]
	workgroup, exists := w.boundedGroup(ceilDiv(s.rows, perGroup))
	lane := loop.LocalID(0, threads)
	keys, from := w.shared("keys", s.keyType, 1, slots), w.shared("from", ir.I32, 1, slots)

	overSlots := func(f func(slot, row, i, inside scalar.Expr)) {
		w.loop("slot", lane, loop.Int(slots), threads, slots-1, func(slot scalar.Expr) {
			row := scalar.Add(scalar.Mul(workgroup, loop.Int(perGroup)), scalar.FloorDiv(slot, loop.Int(width)))
			i := w.let("at", scalar.Mod(slot, loop.Int(width)))
			inside := scalar.And(exists, scalar.And(scalar.Lt(row, loop.Int(s.rows)), scalar.Lt(i, loop.Int(s.length))))
			f(slot, w.let("row", scalar.Min(row, loop.Int(s.rows-1))), i, inside)
		})
	}
	overSlots(func(slot, row, i, inside scalar.Expr) {
		key := s.key(w, row, w.let("near", scalar.Min(i, loop.Int(s.length-1))))
		w.put(keys, slot, scalar.Select(inside, key, scalar.Not(scalar.ConstI(s.keyType, 0))))
		w.put(from, slot, i)
	})
	w.barrier()
	s.merge(w, keys, from, slots, width)
	overSlots(func(slot, row, i, inside scalar.Expr) {
		w.when(inside, func() {
			s.save(w, row, scalar.Min(i, loop.Int(s.length-1)), scalar.LoadAt(from, ir.I32, slot), scalar.LoadAt(keys, s.keyType, slot))
		})
	})
	return w.launch(s.name)
}

// merge sorts each run of width slots.
func (s *sorting) merge(w *emitter, keys, from, slots, width int) {
	threads := w.workgroup[0]
	rounds := bits.Len(uint(width)) - 1
	w.loop("round", loop.Int(1), loop.Int(rounds+1), 1, rounds, func(round scalar.Expr) {
		w.loop("step", loop.Int(0), round, 1, rounds-1, func(step scalar.Expr) {
			shift := w.let("shift", scalar.Sub(scalar.Sub(round, loop.Int(1)), step))
			w.loop("pair", loop.LocalID(0, threads), loop.Int(slots/2), threads, slots/2-1, func(pair scalar.Expr) {
				reach := w.let("reach", scalar.Convert(scalar.Shl(word(1), scalar.Convert(shift, ir.U32)), ir.I32))
				low := scalar.And(pair, scalar.Sub(reach, loop.Int(1)))
				a := w.let("a", scalar.Add(scalar.Mul(scalar.Sub(pair, low), loop.Int(2)), low))
				b := w.let("b", scalar.Add(a, reach))
				key := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(keys, s.keyType, at) }
				place := func(at scalar.Expr) scalar.Expr { return scalar.LoadAt(from, ir.I32, at) }
				keyA, keyB := w.let("key", key(a)), w.let("key", key(b))
				fromA, fromB := w.let("place", place(a)), w.let("place", place(b))
				after := scalar.Or(scalar.Gt(keyA, keyB), scalar.And(scalar.Eq(keyA, keyB), scalar.Gt(fromA, fromB)))
				down := scalar.Ne(scalar.And(scalar.Shr(scalar.And(a, loop.Int(width-1)), round), loop.Int(1)), loop.Int(0))
				w.when(scalar.Ne(after, down), func() {
					w.put(keys, a, keyB)
					w.put(keys, b, keyA)
					w.put(from, a, fromB)
					w.put(from, b, fromA)
				})
			})
			w.barrier()
		})
	})
}

// sortSpace is the schedule space of a sort.
type sortSpace struct{ s *sorting } // nil where there is nothing to sort

func newSortSpace(g *fusion.Group, caps loop.Caps) scheduleSpace {
	return sortSpace{sortingOf(g, caps)}
}

func (w sortSpace) rule() Schedule {
	if s := (Schedule{Family: BitonicSort}); w.fits(s) {
		return s
	}
	return Schedule{Family: RadixSort}
}

func (w sortSpace) candidates() []Ranked {
	if w.s == nil {
		return []Ranked{{w.rule(), 0}}
	}
	list := []Ranked{{w.rule(), w.s.radixCost()}}
	if list[0].Family == BitonicSort {
		list[0].Cost = w.s.networkCost()
		list = append(list, Ranked{Schedule{Family: RadixSort}, w.s.radixCost()})
	}
	return list
}

// fits accepts networks for rows that fit a workgroup.
func (w sortSpace) fits(s Schedule) bool {
	return s == Schedule{Family: RadixSort} || s == Schedule{Family: BitonicSort} && (w.s == nil || w.s.length <= w.s.capacity())
}

func (w sortSpace) emit(s Schedule) []Launch {
	switch {
	case w.s == nil:
		return nil
	case s.Family == BitonicSort:
		return []Launch{w.s.network()}
	}
	return w.s.radix()
}

// networkCost counts the steps of a bitonic network, each with a barrier.
func (s *sorting) networkCost() float64 {
	d, width := s.caps.Profile(), powerOfTwo(s.length)
	rounds := bits.Len(uint(width)) - 1
	steps := float64(rounds * (rounds + 1) / 2)
	waves := d.Waves(s.rows, width/2)
	return d.Launch + steps*waves*(d.Barrier+float64(ceilDiv(width/2, s.caps.Invocations))*pairTime)
}

// pairTime is the time in nanoseconds of one pair per thread of a workgroup: an estimate of two
// loads, a comparison and two stores in workgroup memory.
const pairTime = 20

// radixCost counts the passes over memory: the histogram reads the keys, the scatter reads and
// writes keys and positions.
func (s *sorting) radixCost() float64 {
	d, passes := s.caps.Profile(), float64(ceilDiv(s.bits, digitBits))
	elements := float64(s.rows * s.length * (s.keyType.Size() + 4))
	return passes * (3*d.Launch + 2.5*elements/d.Bandwidth())
}
