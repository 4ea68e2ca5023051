package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// shuffles reports whether the accumulators can meet by exchanges among the threads of
// a warp, which need no barrier and no memory: the lanes of a row have to be neighbours,
// and warps whole.
func (r *rowEmitter) shuffles(accs []accumulator) bool {
	if !withMma || !r.caps.Shuffles || r.shape.rowsFirst || r.shape.lanes*r.shape.rows%loop.Warp != 0 {
		return false
	}
	if lanes := r.shape.lanes; lanes&(lanes-1) != 0 || lanes > loop.Warp*loop.Warp {
		return false
	}
	return !slices.ContainsFunc(accs, func(a accumulator) bool {
		return a.spec.DType != ir.F32 && a.spec.DType != ir.I32 && a.spec.DType != ir.U32
	})
}

// meetInWarps combines the accumulators of reductions within warps, and where a row has
// several of these, what each of them has by way of workgroup memory.
func (r *rowEmitter) meetInWarps(reductions [][]accumulator) {
	r.exchange(reductions, min(r.shape.lanes, loop.Warp))
	warps := r.shape.lanes / loop.Warp
	if warps <= 1 {
		return
	}
	accs := slices.Concat(reductions...)
	slots := r.scratchSlots(accs, warps*r.shape.rows)
	first := scalar.Mul(r.place, loop.Int(warps))
	var stores []loop.Stmt
	for i, a := range accs {
		at := r.Simplify(scalar.Add(first, scalar.FloorDiv(r.lane, loop.Int(loop.Warp))))
		stores = append(stores, &loop.Store{Array: slots[i], At: at, Value: scalar.FreeVar(a.name, a.spec.DType)})
	}
	ofWarp := scalar.Eq(scalar.Mod(r.lane, loop.Int(loop.Warp)), loop.Int(0))
	r.body = append(r.body, &loop.If{Cond: r.Simplify(ofWarp), Then: stores}, &loop.Barrier{})
	for i, a := range accs {
		at := r.Simplify(scalar.Add(first, scalar.Mod(r.lane, loop.Int(warps))))
		r.body = append(r.body, &loop.Assign{Name: a.name, Value: scalar.LoadAt(slots[i], a.spec.DType, at)})
	}
	r.body = append(r.body, &loop.Barrier{})
	r.exchange(reductions, warps)
}

// exchange combines the accumulators of each so many neighbouring threads. Two threads
// that meet combine theirs in the order of their lanes, so that both get the same.
func (r *rowEmitter) exchange(reductions [][]accumulator, threads int) {
	for across := 1; across < threads; across *= 2 {
		for _, accs := range reductions {
			var mine, theirs []scalar.Expr
			for _, a := range accs {
				own := scalar.FreeVar(a.name, a.spec.DType)
				other := r.name("other")
				r.body = append(r.body, &loop.Shuffle{Name: other, Value: own, Xor: across})
				mine, theirs = append(mine, own), append(theirs, scalar.FreeVar(other, a.spec.DType))
			}
			combine := func(a, b []scalar.Expr) []scalar.Expr { return accs[0].m.Reduction().Combine(accs[0].m.Node, a, b) }
			combined := combine(mine, theirs)
			if !commutes(combined) {
				upper := r.let("upper", r.Simplify(scalar.Eq(scalar.Mod(scalar.FloorDiv(r.lane, loop.Int(across)), loop.Int(2)), loop.Int(1))))
				combined = combine(choose(upper, theirs, mine), choose(upper, mine, theirs))
			}
			r.assign(accs, combined)
		}
	}
}

// commutes reports whether a combination is one operation whose operands can change
// places.
func commutes(combined []scalar.Expr) bool {
	if len(combined) != 1 || len(combined[0].Args) != 2 {
		return false
	}
	op := combined[0].Op
	return op == scalar.OpAdd || op == scalar.OpMul || op == scalar.OpMax || op == scalar.OpMin
}

// choose names what is x where a condition holds and else y, one by one.
func choose(cond scalar.Expr, x, y []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(x))
	for i := range x {
		out[i] = scalar.Select(cond, x[i], y[i])
	}
	return out
}
