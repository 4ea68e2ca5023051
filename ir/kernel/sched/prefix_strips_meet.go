package sched

import (
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// meet returns, for each strip, what the vectors of the threads before come to, and
// those of all threads of the row. Where threads cannot exchange them it doubles its reach,
// from one half of workgroup memory to the other.
func (t *prefixStrips) meet(parts []strip) (before, all [][]scalar.Expr) {
	if withMma && t.shuffles() {
		return t.meetInWarps(parts)
	}
	own := make([][]scalar.Expr, len(parts))
	for s := range parts {
		own[s] = parts[s].running[width-1]
	}
	half, threads := 0, t.s.Lanes*t.s.Rows
	at := func(i scalar.Expr) scalar.Expr { return scalar.Add(loop.Int(half*threads), i) }
	t.tell(at(t.local), own)
	for reach := 1; reach < t.s.Lanes; reach *= 2 {
		far := t.told(at(scalar.Max(scalar.Sub(t.local, loop.Int(reach)), loop.Int(0))))
		for s := range own {
			sum := t.p.combine(far[s], own[s])
			for k := range sum {
				sum[k] = scalar.Select(scalar.Ge(t.lane, loop.Int(reach)), sum[k], own[s][k])
			}
			own[s] = t.letAll("sum", sum)
		}
		half = 1 - half
		t.tell(at(t.local), own)
	}
	before = t.told(at(scalar.Max(scalar.Sub(t.local, loop.Int(1)), loop.Int(0))))
	for s := range before {
		for k, a := range t.p.accs {
			before[s][k] = scalar.Select(scalar.Gt(t.lane, loop.Int(0)), before[s][k], a.Init)
		}
		before[s] = t.letAll("before", before[s])
	}
	return before, t.told(at(scalar.Add(scalar.Sub(t.local, t.lane), loop.Int(t.s.Lanes-1))))
}

// tell leaves what the strips come to in workgroup memory for the other threads.
func (t *prefixStrips) tell(at scalar.Expr, values [][]scalar.Expr) {
	t.leave(at, values)
	t.barrier()
}

// leave writes what strips come to into workgroup memory.
func (t *prefixStrips) leave(at scalar.Expr, values [][]scalar.Expr) {
	for k, slot := range t.scans {
		vector := make([]scalar.Expr, len(values))
		for s := range values {
			vector[s] = values[s][k]
		}
		if len(vector) == 1 {
			t.put(slot, at, vector[0])
			continue
		}
		t.add(&loop.StoreVec{Array: slot, At: t.Simplify(at), Values: vector})
	}
}

// told returns what a thread has told, strip by strip.
func (t *prefixStrips) told(at scalar.Expr) [][]scalar.Expr {
	out := make([][]scalar.Expr, t.parts)
	at = t.let("at", at)
	for k, a := range t.p.accs {
		names := make([]string, t.parts)
		for s := range names {
			names[s] = t.name("told")
			out[s] = append(out[s], scalar.FreeVar(names[s], a.DType))
		}
		if t.parts == 1 {
			t.add(&loop.Let{Name: names[0], Value: scalar.LoadAt(t.scans[k], a.DType, at)})
			continue
		}
		t.add(&loop.LoadVec{Names: names, Array: t.scans[k], At: at})
	}
	return out
}
