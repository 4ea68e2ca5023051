package sched

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// shuffles reports whether the threads of a row meet by shuffles: where those that are
// neighbours share it, in whole warps or parts of one, and have words to exchange.
func (r *rowEmitter) shuffles(reductions [][]accumulator) bool {
	if !r.caps.Shuffles || r.shape.rowsFirst || r.shape.lanes*r.shape.rows%loop.Warp != 0 {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(reductions...), func(a accumulator) bool {
		return a.spec.DType != ir.F32 && a.spec.DType != ir.I32 && a.spec.DType != ir.U32
	})
}

// meetByShuffles combines the accumulators of a warp's threads by exchanging them, and then
// those of the warps of a row, of which there are few, by way of workgroup memory.
func (r *rowEmitter) meetByShuffles(reductions [][]accumulator) {
	for xor := min(r.shape.lanes, loop.Warp) / 2; xor > 0; xor /= 2 {
		others := make([]scalar.Expr, 0, len(reductions))
		for _, a := range slices.Concat(reductions...) {
			name := r.name("other")
			r.body = append(r.body, &loop.Shuffle{Name: name, Value: scalar.FreeVar(a.name, a.spec.DType), Xor: xor})
			others = append(others, scalar.FreeVar(name, a.spec.DType))
		}
		r.body = append(r.body, r.combineWith(reductions, func(i int, _ accumulator) scalar.Expr { return others[i] })...)
	}
	if r.shape.lanes > loop.Warp {
		r.meetWarps(reductions)
	}
}

// meetWarps has each thread combine what the warps of its row have, in the same order.
func (r *rowEmitter) meetWarps(reductions [][]accumulator) {
	accs := slices.Concat(reductions...)
	warps := r.shape.lanes / loop.Warp
	slots := r.scratchSlots(accs, warps*r.shape.rows)
	first := scalar.Mul(r.place, loop.Int(warps))
	own := r.Simplify(scalar.Add(first, scalar.FloorDiv(r.lane, loop.Int(loop.Warp))))
	var stores []loop.Stmt
	for i, a := range accs {
		stores = append(stores, &loop.Store{Array: slots[i], At: own, Value: scalar.FreeVar(a.name, a.spec.DType)})
	}
	r.body = append(r.body, guard(r.Simplify(scalar.Eq(scalar.Mod(r.lane, loop.Int(loop.Warp)), loop.Int(0))), stores)...)
	r.body = append(r.body, &loop.Barrier{})
	for i, a := range accs {
		r.body = append(r.body, &loop.Assign{Name: a.name, Value: scalar.LoadAt(slots[i], a.spec.DType, r.Simplify(first))})
	}
	for w := 1; w < warps; w++ {
		at := r.Simplify(scalar.Add(first, loop.Int(w)))
		r.body = append(r.body, r.combineFrom(reductions, slots, at)...)
	}
	r.body = append(r.body, &loop.Barrier{})
}
