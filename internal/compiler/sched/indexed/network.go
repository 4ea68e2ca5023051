package indexed

import (
	"math/bits"

	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// networkBytes is the workgroup memory of a network on CUDA: what every GPU has, which is more than
// other kernels take. A network reads and writes memory once, a radix sort in each of its passes.
const networkBytes = 48 << 10

// room is the workgroup memory of a network.
func (s *sorting) room() int {
	if s.caps.Dialect == dtype.CUDA {
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

// passSteps is the number of steps of a network that a thread does between two barriers, with
// 2³ elements in its registers.
const passSteps = 3

// network is a bitonic network in the memory of a workgroup, over runs of width slots. Equal keys
// compare by position, which makes it stable.
type network struct {
	*emit.Emitter
	s            *sorting
	keys, from   int // arrays of workgroup memory
	slots, width int
	steps        int // of a pass
	padded       bool
}

// network sorts rows that fit a workgroup. Padding has the largest key and the largest positions.
func (s *sorting) network() emit.Launch {
	width := max(emit.PowerOfTwo(s.length), 2)
	perGroup := max(1, min(minNetworkSlots, s.capacity())/width)
	for perGroup > 1 && perGroup/2 >= s.rows {
		perGroup /= 2
	}
	slots := width * perGroup
	w := &network{s: s, slots: slots, width: width, steps: min(passSteps, bits.Len(uint(slots))-1)}
	w.padded = w.steps == passSteps && s.slotBytes()*w.offset(slots) <= s.room()
	threads := s.networkThreads(emit.CeilDiv(s.rows, perGroup), max(1, slots>>w.steps))
	w.Emitter = emit.New(s.p, s.caps).WithThreads(threads)
	workgroup, exists := w.BoundedGroup(emit.CeilDiv(s.rows, perGroup))
	w.keys, w.from = w.Shared("keys", s.keyType, 1, w.size()), w.Shared("from", ir.I32, 1, w.size())

	overSlots := func(f func(slot, row, i, inside scalar.Expr)) {
		w.Loop("slot", loop.LocalID(0, threads), loop.Int(slots), threads, slots-1, func(slot scalar.Expr) {
			row := scalar.Add(scalar.Mul(workgroup, loop.Int(perGroup)), scalar.FloorDiv(slot, loop.Int(width)))
			i := w.Let("at", scalar.Mod(slot, loop.Int(width)))
			inside := scalar.And(exists, scalar.And(scalar.Lt(row, loop.Int(s.rows)), scalar.Lt(i, loop.Int(s.length))))
			f(w.place(slot), w.Let("row", scalar.Min(row, loop.Int(s.rows-1))), i, inside)
		})
	}
	overSlots(func(place, row, i, inside scalar.Expr) {
		key := s.key(w.Emitter, row, w.Let("near", scalar.Min(i, loop.Int(s.length-1))))
		w.Put(w.keys, place, scalar.Select(inside, key, scalar.Not(scalar.ConstI(s.keyType, 0))))
		w.Put(w.from, place, i)
	})
	w.Barrier()
	w.sort()
	overSlots(func(place, row, i, inside scalar.Expr) {
		w.When(inside, func() {
			s.save(w.Emitter, row, scalar.Min(i, loop.Int(s.length-1)), scalar.LoadAt(w.from, ir.I32, place), scalar.LoadAt(w.keys, s.keyType, place))
		})
	})
	return w.Launch(s.name)
}

// networkThreads returns the workgroup size of a network whose passes have the given number of units: the usual
// one, and on CUDA more where few workgroups leave processors idle.
func (s *sorting) networkThreads(groups, units int) int {
	threads := min(emit.UsualThreads(s.caps), units)
	if s.caps.Dialect != dtype.CUDA {
		return threads
	}
	for 2*threads <= min(s.caps.Invocations, units) && 2*threads*groups <= s.caps.Profile().Resident() {
		threads *= 2
	}
	return threads
}

// offset is the place of a slot. A place is left free after each eight slots where there is room, as
// threads that each have eight neighbours would read the same banks.
func (w *network) offset(slot int) int {
	if w.padded {
		return slot + slot>>passSteps
	}
	return slot
}

// place is [network.offset] in a kernel.
func (w *network) place(slot scalar.Expr) scalar.Expr {
	if w.padded {
		return w.Let("place", scalar.Add(slot, scalar.Shr(slot, loop.Int(passSteps))))
	}
	return slot
}

// size is the number of places.
func (w *network) size() int { return w.offset(w.slots-1) + 1 }

// sort sorts each run of width slots: in round r pairs 2ʳ⁻¹ apart, then half of that and so on.
func (w *network) sort() {
	rounds := bits.Len(uint(w.width)) - 1
	passes := emit.CeilDiv(rounds, w.steps)
	w.Loop("round", loop.Int(0), loop.Int(rounds), 1, rounds-1, func(round scalar.Expr) {
		count := scalar.Add(scalar.FloorDiv(round, loop.Int(w.steps)), loop.Int(1))
		w.Loop("pass", loop.Int(0), count, 1, passes-1, func(pass scalar.Expr) {
			first := w.Let("first", scalar.Mul(scalar.Sub(scalar.Sub(count, loop.Int(1)), pass), loop.Int(w.steps)))
			w.pass(round, first)
			w.Barrier()
		})
	})
}

// pass does the steps of a round whose pairs are from 2^(first+steps-1) to 2^first apart. Of the highest
// ones a round may have fewer.
func (w *network) pass(round, first scalar.Expr) {
	threads, units, each := w.Workgroup[0], w.slots>>w.steps, 1<<w.steps
	lowest := w.Let("lowest", scalar.Min(first, loop.Int(bits.Len(uint(w.slots))-1-w.steps)))
	apart := w.Let("apart", shifted(loop.Int(1), lowest))
	w.Loop("unit", loop.LocalID(0, threads), loop.Int(units), threads, units-1, func(unit scalar.Expr) {
		low := scalar.And(unit, scalar.Sub(apart, loop.Int(1)))
		base := w.Let("base", scalar.Add(scalar.Mul(scalar.Sub(unit, low), loop.Int(each)), low))
		held := make([]heldElement, each)
		for m := range held {
			slot := w.Let("slot", scalar.Min(scalar.Add(base, scalar.Mul(apart, loop.Int(m))), loop.Int(w.slots-1)))
			at, turn := w.place(slot), scalar.Shr(scalar.And(slot, loop.Int(w.width-1)), scalar.Add(round, loop.Int(1)))
			held[m] = heldElement{
				at: at, key: w.Var("key", scalar.LoadAt(w.keys, w.s.keyType, at)), from: w.Var("from", scalar.LoadAt(w.from, ir.I32, at)),
				down: w.Let("down", scalar.Ne(scalar.And(turn, loop.Int(1)), loop.Int(0))),
			}
		}
		for step := w.steps - 1; step >= 0; step-- {
			shift := scalar.Add(lowest, loop.Int(step))
			w.When(scalar.And(scalar.Le(shift, round), scalar.Ge(shift, first)), func() {
				for m := range held {
					if m>>step&1 == 0 {
						w.order(held[m], held[m|1<<step])
					}
				}
			})
		}
		for _, x := range held {
			w.Put(w.keys, x.at, x.key)
			w.Put(w.from, x.at, x.from)
		}
	})
}

// heldElement is an element in registers, its place, and whether pairs that begin with it are put in
// descending order.
type heldElement struct{ at, key, from, down scalar.Expr }

// order swaps two elements that are not in order.
func (w *network) order(a, b heldElement) {
	after := scalar.Or(scalar.Gt(a.key, b.key), scalar.And(scalar.Eq(a.key, b.key), scalar.Gt(a.from, b.from)))
	swap := w.Let("swap", scalar.Ne(after, a.down))
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

// networkCost counts the passes of a bitonic network, each with a barrier.
func (s *sorting) networkCost() float64 {
	d, width := s.caps.Profile(), emit.PowerOfTwo(s.length)
	passes := 0
	for round := 1; round < bits.Len(uint(width)); round++ {
		passes += emit.CeilDiv(round, passSteps)
	}
	units := max(width>>passSteps, 1)
	return d.Launch + float64(passes)*d.Waves(s.rows, units)*(d.Barrier+float64(emit.CeilDiv(units, s.caps.Invocations))*unitTime)
}

// unitTime is the time in nanoseconds of a pass for one unit per thread of a workgroup: an estimate of
// sixteen loads, twelve comparisons and sixteen stores in workgroup memory.
const unitTime = 160
