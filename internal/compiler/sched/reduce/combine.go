package reduce

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
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

// value returns the thread's own running value.
func (a accumulator) value() scalar.Expr { return scalar.FreeVar(a.name, a.spec.DType) }

// combineOf combines two sets of running values of one reduction.
func combineOf(accs []accumulator, a, b []scalar.Expr) []scalar.Expr {
	m := accs[0].m
	return m.Reduction().Combine(m.Node, a, b)
}

// declare declares the accumulators of reductions with their initial values.
func (r *rowEmitter) declare(members []*fusion.Member) []accumulator {
	var accs []accumulator
	for _, m := range members {
		for _, a := range m.Reduction().Accumulators(m.Node) {
			acc := accumulator{m, a, r.Name("acc")}
			accs = append(accs, acc)
			r.Body = append(r.Body, &loop.Var{Name: acc.name, Init: a.Init})
		}
	}
	return accs
}

// assign assigns the running values of one reduction, all at once.
func (r *rowEmitter) assign(accs []accumulator, values []scalar.Expr) {
	r.Body = append(r.Body, r.NameAll(values)...)
	for i, a := range accs {
		r.Body = append(r.Body, &loop.Assign{Name: a.name, Value: values[i]})
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

// allReduce combines the accumulators of the lanes of a row and leaves the result in every
// lane, in rounds of as many accumulators as fit workgroup memory.
func (r *rowEmitter) allReduce(accs []accumulator) {
	if r.shape.lanes == 1 {
		return
	}
	if r.shuffles(accs) {
		r.warpAllReduce(byMember(accs))
		return
	}
	var round [][]accumulator
	n := 0
	for _, own := range byMember(accs) {
		if n+len(own) > r.sharedRoom() && n > 0 {
			r.sharedAllReduce(round)
			round, n = nil, 0
		}
		round, n = append(round, own), n+len(own)
	}
	r.sharedAllReduce(round)
}

// sharedRoom is the number of accumulators combined in one round: a quarter of the 32-bit
// values that workgroup memory holds, since each element type has arrays of its own.
func (r *rowEmitter) sharedRoom() int {
	return r.Caps.SharedBytes / (4 * r.shape.lanes * r.shape.rows) / 4
}

// byMember groups a list of accumulators by member.
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

// directLanes is the maximum number of lanes that each thread combines directly. With more,
// rounds combine lastLanes each until lastLanes or fewer remain: a read by all threads takes as
// long as several rounds of reads by some.
const (
	directLanes = 16
	lastLanes   = 8
)

// sharedAllReduce combines the accumulators of reductions, listed by reduction, through
// workgroup memory. Each thread combines all lanes; where there are many, the first lanes
// combine a part each before. That takes four barriers instead of a tree's nine for 256 lanes,
// and the loads of a round are in flight together.
func (r *rowEmitter) sharedAllReduce(reductions [][]accumulator) {
	accs := slices.Concat(reductions...)
	slots := r.scratchSlots(accs, r.shape.lanes*r.shape.rows)
	store := func() []loop.Stmt {
		var out []loop.Stmt
		for i, a := range accs {
			out = append(out, &loop.Store{Array: slots[i], At: r.slotOf(r.lane), Value: a.value()})
		}
		return out
	}
	r.Body = append(r.Body, append(store(), &loop.Barrier{})...)
	left := r.shape.lanes
	for left > lastLanes && r.shape.lanes > directLanes {
		left /= lastLanes
		part := append(r.combineLanes(reductions, slots, r.lane, left, lastLanes), store()...)
		r.Body = append(r.Body, &loop.If{Cond: scalar.Lt(r.lane, loop.Int(left)), Then: part}, &loop.Barrier{})
	}
	r.Body = append(r.Body, append(r.combineLanes(reductions, slots, loop.Int(0), 1, left), &loop.Barrier{})...)
}

// combineLanes sets the thread's accumulators to the combination of count lanes, from first on,
// stride apart.
func (r *rowEmitter) combineLanes(reductions [][]accumulator, slots []int, first scalar.Expr, stride, count int) []loop.Stmt {
	return r.Nested(func() {
		for _, accs := range reductions {
			values := make([][]scalar.Expr, count)
			for i := range values {
				at := r.slotOf(scalar.Add(first, loop.Int(i*stride)))
				for k, a := range accs {
					values[i] = append(values[i], scalar.LoadAt(slots[k], a.spec.DType, at))
				}
			}
			slots = slots[len(accs):]
			r.assign(accs, r.combineTree(accs, values))
		}
	})
}

// combineTree combines sets of running values as a tree, depth first: short dependency chains
// and few live values.
func (r *rowEmitter) combineTree(accs []accumulator, values [][]scalar.Expr) []scalar.Expr {
	if len(values) == 1 {
		return values[0]
	}
	half := len(values) / 2
	combined := combineOf(accs, r.combineTree(accs, values[:half]), r.combineTree(accs, values[half:]))
	for i, x := range combined {
		combined[i] = r.let("both", x)
	}
	return combined
}

// slotOf is the slot of a lane of the thread's row in workgroup memory. Rows are the inner axis
// where neighbouring threads have neighbouring rows.
func (r *rowEmitter) slotOf(lane scalar.Expr) scalar.Expr {
	if r.shape.rowsFirst {
		return r.Simplify(scalar.Add(scalar.Mul(lane, loop.Int(r.shape.rows)), r.place))
	}
	return r.Simplify(scalar.Add(scalar.Mul(r.place, loop.Int(r.shape.lanes)), lane))
}

// scratchKey is the k-th workgroup array of a type and a length.
type scratchKey struct {
	d         ir.DType
	k, length int
}

// scratchSlots returns a workgroup array of the given length for each accumulator; the stages
// share them.
func (r *rowEmitter) scratchSlots(accs []accumulator, length int) []int {
	used := map[ir.DType]int{}
	out := make([]int, len(accs))
	for i, a := range accs {
		d := a.spec.DType
		key := scratchKey{d, used[d], length}
		slot, ok := r.scratch[key]
		if !ok {
			slot = r.Shared(r.Name("scratch"), d, 1, length)
			r.scratch[key] = slot
		}
		out[i] = slot
		used[d]++
	}
	return out
}

// shuffles reports whether accumulators can be combined by warp shuffles, without barriers and
// memory: the lanes of a row must be contiguous, and warps whole.
func (r *rowEmitter) shuffles(accs []accumulator) bool {
	warp, lanes := r.Caps.Lanes(), r.shape.lanes
	if warp == 0 || r.shape.rowsFirst || lanes*r.shape.rows%warp != 0 || lanes&(lanes-1) != 0 || lanes > warp*warp {
		return false
	}
	return !slices.ContainsFunc(accs, func(a accumulator) bool { return !emit.IsWordType(a.spec.DType) })
}

// warpAllReduce combines accumulators by shuffles within warps, then the warps of a row through
// workgroup memory.
func (r *rowEmitter) warpAllReduce(reductions [][]accumulator) {
	warp := r.Caps.Lanes()
	r.butterfly(reductions, min(r.shape.lanes, warp))
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
	r.Body = append(r.Body, &loop.If{Cond: r.Simplify(ofWarp), Then: stores}, &loop.Barrier{})
	for i, a := range accs {
		at := r.Simplify(scalar.Add(first, scalar.Mod(r.lane, loop.Int(warps))))
		r.Body = append(r.Body, &loop.Assign{Name: a.name, Value: scalar.LoadAt(slots[i], a.spec.DType, at)})
	}
	r.Body = append(r.Body, &loop.Barrier{})
	r.butterfly(reductions, warps)
}

// butterfly combines the accumulators of groups of contiguous threads by xor shuffles. Both
// threads of a pair combine in lane order, so that they get the same value. Sums over whole
// subgroups use the device's own reduction.
func (r *rowEmitter) butterfly(reductions [][]accumulator, threads int) {
	if threads == r.Caps.Lanes() && r.Caps.Subgroups {
		reductions = slices.DeleteFunc(slices.Clone(reductions), r.subgroupSum)
	}
	for across := 1; across < threads; across *= 2 {
		for _, accs := range reductions {
			var mine, theirs []scalar.Expr
			for _, a := range accs {
				other := r.Name("other")
				r.Body = append(r.Body, &loop.Shuffle{Name: other, Value: a.value(), Xor: across})
				mine, theirs = append(mine, a.value()), append(theirs, scalar.FreeVar(other, a.spec.DType))
			}
			combined := combineOf(accs, mine, theirs)
			if !emit.Commutes(combined) {
				upper := r.let("upper", r.Simplify(scalar.Eq(scalar.Mod(scalar.FloorDiv(r.lane, loop.Int(across)), loop.Int(2)), loop.Int(1))))
				combined = combineOf(accs, emit.Choose(upper, theirs, mine), emit.Choose(upper, mine, theirs))
			}
			r.assign(accs, combined)
		}
	}
}

// subgroupSum sums an accumulator by a subgroup reduction, if it is a plain sum.
func (r *rowEmitter) subgroupSum(accs []accumulator) bool {
	own, other := accs[0].value(), scalar.FreeVar(r.Name("other"), accs[0].spec.DType)
	if len(accs) > 1 || scalar.Key(combineOf(accs, []scalar.Expr{own}, []scalar.Expr{other})[0]) != scalar.Key(scalar.Add(own, other)) {
		return false
	}
	sum := r.Name("sum")
	r.Body = append(r.Body, &loop.Subgroup{Op: scalar.OpAdd, Name: sum, Value: own})
	r.assign(accs, []scalar.Expr{scalar.FreeVar(sum, own.Type)})
	return true
}
