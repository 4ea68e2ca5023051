package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// shuffles reports whether what strips come to can meet by exchanges among the threads of a
// warp: warps are whole, have a row each or share one, and the device exchanges the types.
func (t *prefixStrips) shuffles() bool {
	warp := t.caps.Lanes()
	if warp == 0 || t.s.Lanes*t.s.Rows%warp != 0 || t.s.Lanes > warp*warp {
		return false
	}
	return !slices.ContainsFunc(t.p.accs, func(a ir.Accumulator) bool {
		return a.DType != ir.F32 && a.DType != ir.I32 && a.DType != ir.U32
	})
}

// meetInWarps is meet by exchanges within warps, with two barriers where a row has several
// warps and none where it has not: a doubled reach has one for each doubling.
func (t *prefixStrips) meetInWarps(own [][]scalar.Expr) (before, all [][]scalar.Expr) {
	warp := t.caps.Lanes()
	before, all = make([][]scalar.Expr, len(own)), make([][]scalar.Expr, len(own))
	for s := range own {
		before[s], all[s] = t.exchange(own[s], min(t.s.Lanes, warp))
	}
	warps := t.s.Lanes / warp
	if warps <= 1 {
		return before, all
	}
	first := t.let("first_warp", scalar.FloorDiv(scalar.Sub(t.local, t.lane), loop.Int(warp)))
	mine := t.let("warp", scalar.FloorDiv(t.lane, loop.Int(warp)))
	t.when(scalar.Eq(scalar.Mod(t.local, loop.Int(warp)), loop.Int(0)), func() { t.leave(scalar.Add(first, mine), all) })
	t.barrier()
	sums, ahead := make([][]scalar.Expr, len(own)), make([][]scalar.Expr, len(own))
	for s := range own {
		sums[s], ahead[s] = t.p.init(), t.p.init()
	}
	for w := range warps {
		theirs := t.told(scalar.Add(first, loop.Int(w)), len(own))
		for s := range own {
			ahead[s] = t.letAll("ahead", choose(scalar.Eq(mine, loop.Int(w)), sums[s], ahead[s]))
			sums[s] = t.letAll("sum", t.p.combine(sums[s], theirs[s]))
		}
	}
	for s := range own {
		before[s] = t.letAll("before", t.p.combine(ahead[s], before[s]))
	}
	return before, sums
}

// exchange returns what so many neighbouring threads before one's own come to, and all of
// them. The blocks of threads that are put together double: for the upper one all of the
// lower comes before.
func (t *prefixStrips) exchange(own []scalar.Expr, threads int) (before, all []scalar.Expr) {
	before, all = t.p.init(), own
	for across := 1; across < threads; across *= 2 {
		others := make([]scalar.Expr, len(all))
		for k, a := range t.p.accs {
			name := t.name("other")
			t.add(&loop.Shuffle{Name: name, Value: all[k], Xor: across})
			others[k] = scalar.FreeVar(name, a.DType)
		}
		upper := t.let("upper", scalar.Eq(scalar.Mod(scalar.FloorDiv(t.lane, loop.Int(across)), loop.Int(2)), loop.Int(1)))
		before = t.letAll("before", choose(upper, t.p.combine(others, before), before))
		combined := t.p.combine(all, others)
		if !commutes(combined) {
			combined = t.p.combine(choose(upper, others, all), choose(upper, all, others))
		}
		all = t.letAll("all", combined)
	}
	return before, all
}
