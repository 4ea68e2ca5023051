package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// shuffles reports whether the accumulators can meet by exchanges among the threads of
// a warp, which need no barrier and no memory: the lanes of a row have to be neighbours,
// and warps whole.
func (r *rowEmitter) shuffles(accs []accumulator) bool {
	warp, lanes := r.caps.Lanes(), r.shape.lanes
	if warp == 0 || r.shape.rowsFirst || lanes*r.shape.rows%warp != 0 || lanes&(lanes-1) != 0 || lanes > warp*warp {
		return false
	}
	return !slices.ContainsFunc(accs, func(a accumulator) bool {
		return a.spec.DType != ir.F32 && a.spec.DType != ir.I32 && a.spec.DType != ir.U32
	})
}

// meetInWarps combines the accumulators of reductions within warps, and where a row has
// several of these, what each of them has by way of workgroup memory.
func (r *rowEmitter) meetInWarps(reductions [][]accumulator) {
	warp := r.caps.Lanes()
	r.exchange(reductions, min(r.shape.lanes, warp))
	warps := r.shape.lanes / warp
	if warps <= 1 {
		return
	}
	accs := slices.Concat(reductions...)
	slots := r.scratchSlots(accs, warps*r.shape.rows)
	first := scalar.Mul(r.place, loop.Int(warps))
	var stores []loop.Stmt
	for i, a := range accs {
		at := r.Simplify(scalar.Add(first, scalar.FloorDiv(r.lane, loop.Int(warp))))
		stores = append(stores, &loop.Store{Array: slots[i], At: at, Value: a.value()})
	}
	ofWarp := scalar.Eq(scalar.Mod(r.lane, loop.Int(warp)), loop.Int(0))
	r.body = append(r.body, &loop.If{Cond: r.Simplify(ofWarp), Then: stores}, &loop.Barrier{})
	for i, a := range accs {
		at := r.Simplify(scalar.Add(first, scalar.Mod(r.lane, loop.Int(warps))))
		r.body = append(r.body, &loop.Assign{Name: a.name, Value: scalar.LoadAt(slots[i], a.spec.DType, at)})
	}
	r.body = append(r.body, &loop.Barrier{})
	r.exchange(reductions, warps)
}

// exchange combines the accumulators of each so many neighbouring threads. Two threads
// that meet combine theirs in the order of their lanes, so that both get the same. Sums over
// whole subgroups are the device's own.
func (r *rowEmitter) exchange(reductions [][]accumulator, threads int) {
	if threads == r.caps.Lanes() && r.caps.Subgroups {
		reductions = slices.DeleteFunc(slices.Clone(reductions), r.addsUp)
	}
	for across := 1; across < threads; across *= 2 {
		for _, accs := range reductions {
			var mine, theirs []scalar.Expr
			for _, a := range accs {
				other := r.name("other")
				r.body = append(r.body, &loop.Shuffle{Name: other, Value: a.value(), Xor: across})
				mine, theirs = append(mine, a.value()), append(theirs, scalar.FreeVar(other, a.spec.DType))
			}
			combined := combineOf(accs, mine, theirs)
			if !commutes(combined) {
				upper := r.let("upper", r.Simplify(scalar.Eq(scalar.Mod(scalar.FloorDiv(r.lane, loop.Int(across)), loop.Int(2)), loop.Int(1))))
				combined = combineOf(accs, choose(upper, theirs, mine), choose(upper, mine, theirs))
			}
			r.assign(accs, combined)
		}
	}
}

// addsUp has a subgroup add up the accumulator of a reduction, if that is a plain sum.
func (r *rowEmitter) addsUp(accs []accumulator) bool {
	own, other := accs[0].value(), scalar.FreeVar(r.name("other"), accs[0].spec.DType)
	if len(accs) > 1 || scalar.Key(combineOf(accs, []scalar.Expr{own}, []scalar.Expr{other})[0]) != scalar.Key(scalar.Add(own, other)) {
		return false
	}
	sum := r.name("sum")
	r.body = append(r.body, &loop.Subgroup{Op: scalar.OpAdd, Name: sum, Value: own})
	r.assign(accs, []scalar.Expr{scalar.FreeVar(sum, own.Type)})
	return true
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
