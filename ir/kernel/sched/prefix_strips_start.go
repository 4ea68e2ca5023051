package sched

import (
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// mostBefore is what how many chunks come to that a thread combines at most to find where
// a chunk starts.
const mostBefore = 8

// startGroups is how many threads combine what so many each have come to, before all
// combine theirs.
const startGroups = 16

// goesThrough reports whether workgroups that have a chunk each find by themselves where it
// starts: they have one row, there are few chunks, and workgroup memory has room.
func (p *prefix) goesThrough(s Schedule, chunks int) bool {
	bytes := 0
	for _, a := range p.accs {
		bytes += loop.DeviceSize(a.DType)
	}
	room := (2*s.Lanes*(s.Each/width) + s.Lanes + startGroups) * bytes
	return s.Family == Strips && s.Rows == 1 && s.Lanes >= 4*startGroups && chunks > 1 && chunks <= mostBefore*s.Lanes && room <= p.caps.SharedBytes
}

// startOf combines what the chunks before one come to, in their order: each thread those of
// some neighbours, some threads what so many of these come to, and all of them that.
func (t *prefixStrips) startOf(totals []*group.Tensor, number scalar.Expr) []scalar.Expr {
	lanes, each := t.s.Lanes, ceilDiv(t.of.chunks, t.s.Lanes)
	slots := make([]int, len(t.p.accs))
	for i, a := range t.p.accs {
		slots[i] = t.shared("starts"+t.name(""), a.DType, 1, lanes+startGroups)
	}
	own := t.vars("own", t.p.init())
	first := t.let("first_before", scalar.Mul(t.lane, loop.Int(each)))
	to := scalar.Min(scalar.Add(first, loop.Int(each)), number)
	t.loop("before", first, to, 1, t.of.chunks-1, func(i scalar.Expr) {
		t.setAll(own, t.p.combine(own, t.letAll("total", loadAll(t.writer, totals, i, t.row))))
	})
	t.putAll(slots, t.lane, own)
	t.barrier()
	t.when(scalar.Lt(t.lane, loop.Int(startGroups)), func() {
		part := lanes / startGroups
		t.putAll(slots, scalar.Add(loop.Int(lanes), t.lane), t.inOrder(slots, scalar.Mul(t.lane, loop.Int(part)), part))
	})
	t.barrier()
	return t.inOrder(slots, loop.Int(lanes), startGroups)
}

// inOrder combines so many neighbours in workgroup memory.
func (t *prefixStrips) inOrder(slots []int, first scalar.Expr, count int) []scalar.Expr {
	at := func(i scalar.Expr) []scalar.Expr {
		out := make([]scalar.Expr, len(slots))
		for k, a := range t.p.accs {
			out[k] = scalar.LoadAt(slots[k], a.DType, t.Simplify(scalar.Add(first, i)))
		}
		return out
	}
	sum := t.vars("sum", at(loop.Int(0)))
	t.loop("next", loop.Int(1), loop.Int(count), 1, count-1, func(i scalar.Expr) {
		t.setAll(sum, t.p.combine(sum, t.letAll("of", at(i))))
	})
	return sum
}

// putAll stores running values, one in each array.
func (w *writer) putAll(slots []int, at scalar.Expr, values []scalar.Expr) {
	for k, slot := range slots {
		w.put(slot, at, values[k])
	}
}
