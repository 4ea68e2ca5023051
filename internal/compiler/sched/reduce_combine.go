package sched

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// accumulator is one running value of one reduction of a stage.
type accumulator struct {
	m    *fusion.Member
	spec ir.Accumulator
	name string
}

// value is what the thread's own running value is now.
func (a accumulator) value() scalar.Expr { return scalar.FreeVar(a.name, a.spec.DType) }

// combineOf combines two sets of running values of one reduction.
func combineOf(accs []accumulator, a, b []scalar.Expr) []scalar.Expr {
	m := accs[0].m
	return m.Reduction().Combine(m.Node, a, b)
}

// declare starts the running values of reductions.
func (r *rowEmitter) declare(members []*fusion.Member) []accumulator {
	var accs []accumulator
	for _, m := range members {
		for _, a := range m.Reduction().Accumulators(m.Node) {
			acc := accumulator{m, a, r.name("acc")}
			accs = append(accs, acc)
			r.body = append(r.body, &loop.Var{Name: acc.name, Init: a.Init})
		}
	}
	return accs
}

// assign gives the running values of one reduction new values, all at once.
func (r *rowEmitter) assign(accs []accumulator, values []scalar.Expr) {
	r.body = append(r.body, r.nameAll(values)...)
	for i, a := range accs {
		r.body = append(r.body, &loop.Assign{Name: a.name, Value: values[i]})
	}
}

func ownAccumulators(accs []accumulator, m *fusion.Member) []accumulator {
	var own []accumulator
	for _, a := range accs {
		if a.m == m {
			own = append(own, a)
		}
	}
	return own
}

// meet combines the accumulators of all lanes of a row, and leaves the result
// in each of them. There is room in workgroup memory for some of them at a time.
func (r *rowEmitter) meet(accs []accumulator) {
	if r.shape.lanes == 1 {
		return
	}
	if r.shuffles(accs) {
		r.meetInWarps(byMember(accs))
		return
	}
	var round [][]accumulator
	n := 0
	for _, own := range byMember(accs) {
		if n+len(own) > r.roomToMeet() && n > 0 {
			r.meetInMemory(round)
			round, n = nil, 0
		}
		round, n = append(round, own), n+len(own)
	}
	r.meetInMemory(round)
}

// roomToMeet is how many accumulators meet at once: a quarter of what workgroup
// memory holds of 32-bit values, since each element type has arrays of its own.
func (r *rowEmitter) roomToMeet() int {
	return r.caps.SharedBytes / (4 * r.shape.lanes * r.shape.rows) / 4
}

// byMember cuts a list of accumulators into those of each member.
func byMember(accs []accumulator) [][]accumulator {
	var out [][]accumulator
	for i, a := range accs {
		if i == 0 || accs[i-1].m != a.m {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], a)
	}
	return out
}

// directLanes is of how many lanes each thread reads what all have come to, where there are
// no more; else the last round is of lastLanes at most, and those before are of as many
// each: what all threads read takes as long as what some do in several rounds.
const (
	directLanes = 16
	lastLanes   = 8
)

// meetInMemory combines the accumulators of reductions, listed for each of them, by way of
// workgroup memory. Each thread combines those of all lanes; where there are many, the
// first lanes before combine those of a part each. That takes four barriers in place of a
// tree's nine for 256 lanes, and what a thread reads in a round it reads at once.
func (r *rowEmitter) meetInMemory(reductions [][]accumulator) {
	accs := slices.Concat(reductions...)
	slots := r.scratchSlots(accs, r.shape.lanes*r.shape.rows)
	tell := func() []loop.Stmt {
		var out []loop.Stmt
		for i, a := range accs {
			out = append(out, &loop.Store{Array: slots[i], At: r.slotOf(r.lane), Value: a.value()})
		}
		return out
	}
	r.body = append(r.body, append(tell(), &loop.Barrier{})...)
	left := r.shape.lanes
	for left > lastLanes && r.shape.lanes > directLanes {
		left /= lastLanes
		part := append(r.combineLanes(reductions, slots, r.lane, left, lastLanes), tell()...)
		r.body = append(r.body, &loop.If{Cond: scalar.Lt(r.lane, loop.Int(left)), Then: part}, &loop.Barrier{})
	}
	r.body = append(r.body, append(r.combineLanes(reductions, slots, loop.Int(0), 1, left), &loop.Barrier{})...)
}

// combineLanes gives the thread's accumulators what those of so many lanes, each at a
// distance from the one before, come to.
func (r *rowEmitter) combineLanes(reductions [][]accumulator, slots []int, first scalar.Expr, apart, count int) []loop.Stmt {
	outer := r.body
	r.body = nil
	for _, accs := range reductions {
		values := make([][]scalar.Expr, count)
		for i := range values {
			at := r.slotOf(scalar.Add(first, loop.Int(i*apart)))
			for k, a := range accs {
				values[i] = append(values[i], scalar.LoadAt(slots[k], a.spec.DType, at))
			}
		}
		slots = slots[len(accs):]
		r.assign(accs, r.combineHalves(accs, values))
	}
	body := r.body
	r.body = outer
	return body
}

// combineHalves combines sets of running values, those of each half first, so that few
// operations wait for others and few values are there at a time.
func (r *rowEmitter) combineHalves(accs []accumulator, values [][]scalar.Expr) []scalar.Expr {
	if len(values) == 1 {
		return values[0]
	}
	half := len(values) / 2
	combined := combineOf(accs, r.combineHalves(accs, values[:half]), r.combineHalves(accs, values[half:]))
	for i, x := range combined {
		combined[i] = r.let("both", x)
	}
	return combined
}

// slotOf is the place of a lane of the thread's row in workgroup memory. Rows
// are the inner axis where neighbouring threads have neighbouring rows.
func (r *rowEmitter) slotOf(lane scalar.Expr) scalar.Expr {
	if r.shape.rowsFirst {
		return r.Simplify(scalar.Add(scalar.Mul(lane, loop.Int(r.shape.rows)), r.place))
	}
	return r.Simplify(scalar.Add(scalar.Mul(r.place, loop.Int(r.shape.lanes)), lane))
}

// scratchKey is the k-th array of workgroup memory of a type and a length.
type scratchKey struct {
	d         ir.DType
	k, length int
}

// scratchSlots returns an array of workgroup memory, of so many elements, for each
// accumulator; the stages share them.
func (r *rowEmitter) scratchSlots(accs []accumulator, length int) []int {
	used := map[ir.DType]int{}
	out := make([]int, len(accs))
	for i, a := range accs {
		d := a.spec.DType
		key := scratchKey{d, used[d], length}
		slot, ok := r.scratch[key]
		if !ok {
			slot = r.shared(r.name("scratch"), d, 1, length)
			r.scratch[key] = slot
		}
		out[i] = slot
		used[d]++
	}
	return out
}

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
