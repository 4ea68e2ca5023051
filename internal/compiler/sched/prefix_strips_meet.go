package sched

import (
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// widening is by how much a thread sees further after each barrier: one row of 2²⁴ moves
// 2,504 GB/s with 4 and 2,447 with 2 (H200, WebGPU).
const widening = 4

// meet returns, for each of some values that every thread has, what those of the threads
// before come to, and those of all threads of the row. These are what the strips come to,
// what the thread has gathered, or the one before the other. Where threads cannot exchange
// them it widens its reach, from one half of workgroup memory to the other.
func (t *prefixStrips) meet(own [][]scalar.Expr) (before, all [][]scalar.Expr) {
	if t.shuffles() {
		return t.meetInWarps(own)
	}
	half, threads := 0, t.s.Lanes*t.s.Rows
	at := func(i scalar.Expr) scalar.Expr { return scalar.Add(loop.Int(half*threads), i) }
	t.tell(at(t.local), own)
	for reach := 1; reach < t.s.Lanes; reach *= widening {
		for far := reach; far < min(widening*reach, t.s.Lanes); far += reach {
			theirs, sums := t.told(at(scalar.Max(scalar.Sub(t.local, loop.Int(far)), loop.Int(0))), len(own)), make([][]scalar.Expr, len(own))
			for s := range own {
				sums[s] = t.letAll("sum", choose(scalar.Ge(t.lane, loop.Int(far)), t.p.combine(theirs[s], own[s]), own[s]))
			}
			own = sums
		}
		half = 1 - half
		t.tell(at(t.local), own)
	}
	before = t.told(at(scalar.Max(scalar.Sub(t.local, loop.Int(1)), loop.Int(0))), len(own))
	for s := range before {
		before[s] = t.letAll("before", choose(scalar.Gt(t.lane, loop.Int(0)), before[s], t.p.init()))
	}
	return before, t.told(at(scalar.Add(scalar.Sub(t.local, t.lane), loop.Int(t.s.Lanes-1))), len(own))
}

// tell leaves values in workgroup memory for the other threads.
func (t *prefixStrips) tell(at scalar.Expr, values [][]scalar.Expr) {
	t.leave(at, values)
	t.barrier()
}

// leave writes values into workgroup memory: those of strips together, and what was
// gathered beside them.
func (t *prefixStrips) leave(at scalar.Expr, values [][]scalar.Expr) {
	if len(values) != t.parts {
		t.p.leave(t.writer, t.sides, at, values[len(values)-1:])
		values = values[:len(values)-1]
	}
	if len(values) > 0 {
		t.p.leave(t.writer, t.scans, at, values)
	}
}

// told returns so many values that a thread has told.
func (t *prefixStrips) told(at scalar.Expr, n int) (out [][]scalar.Expr) {
	at = t.let("at", at)
	if n >= t.parts {
		out = t.p.told(t.writer, t.scans, at, t.parts)
	}
	if n != t.parts {
		out = append(out, t.p.told(t.writer, t.sides, at, 1)...)
	}
	return out
}

// leave writes sets of running values into workgroup memory, each running value into an array.
func (p *prefix) leave(w *writer, slots []int, at scalar.Expr, sets [][]scalar.Expr) {
	for k, slot := range slots {
		vector := make([]scalar.Expr, len(sets))
		for s := range sets {
			vector[s] = sets[s][k]
		}
		if len(vector) == 1 {
			w.put(slot, at, vector[0])
			continue
		}
		w.add(&loop.StoreVec{Array: slot, At: w.Simplify(at), Values: vector})
	}
}

// told names so many sets that [prefix.leave] has written.
func (p *prefix) told(w *writer, slots []int, at scalar.Expr, n int) [][]scalar.Expr {
	out := make([][]scalar.Expr, n)
	for k, a := range p.accs {
		names := make([]string, n)
		for s := range names {
			names[s] = w.name("told")
			out[s] = append(out[s], scalar.FreeVar(names[s], a.DType))
		}
		if n == 1 {
			w.add(&loop.Let{Name: names[0], Value: scalar.LoadAt(slots[k], a.DType, w.Simplify(at))})
			continue
		}
		w.add(&loop.LoadVec{Names: names, Array: slots[k], At: w.Simplify(at)})
	}
	return out
}
