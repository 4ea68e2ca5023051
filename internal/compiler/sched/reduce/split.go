package reduce

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// wantedGroups is the number of workgroups per processor that fills the device.
const wantedGroups = 2

// emitSplit is a split reduction in two kernels: the first stores the partial results of
// each part of a row, the second combines them in order, so that the result is deterministic.
func emitSplit(e *emit.Emitter, g *fusion.Group, s emit.Schedule) []emit.Launch {
	first, partials := splitRows(e, g, s)
	second := CombineParts(e.Sibling(), g, s.Split, partials)
	return []emit.Launch{first, second}
}

// splitRows reduces each part of each row to partial results, one tensor per accumulator.
func splitRows(e *emit.Emitter, g *fusion.Group, s emit.Schedule) (l emit.Launch, partials []*fusion.Tensor) {
	shape, parts := rowLayoutOf(e.Caps, s, g), s.Split
	shape.chunks = 0
	blocks := emit.CeilDiv(fusion.Product(g.Outer), shape.rows)
	workgroup := e.LinearGroup(blocks * parts)
	part := scalar.Mod(workgroup, loop.Int(parts))
	r := newRowEmitter(e, g, shape, scalar.FloorDiv(workgroup, loop.Int(parts)))
	length := emit.CeilDiv(fusion.Product(g.Inner), parts)
	if r.length = length; length*parts != fusion.Product(g.Inner) {
		r.length = 1
	}
	if step, ok := evenStep(e, g, shape); ok && emit.CeilDiv(length, step)*step*(parts-1) < fusion.Product(g.Inner) {
		length = emit.CeilDiv(length, step) * step
		r.length = step
	}
	r.from = r.let("from", scalar.Mul(part, loop.Int(length)))
	r.to = r.let("to", scalar.Min(scalar.Add(r.from, loop.Int(length)), loop.Int(fusion.Product(g.Inner))))

	accs := r.partialStage(r.membersAt(0, true))
	partials = newPartials(accs, g, parts)
	stores := r.storePartials(partials, accs, part)
	writes := scalar.And(scalar.Eq(r.lane, loop.Int(0)), r.inRange)
	r.Body = append(r.Body, emit.Guard(writes, stores)...)
	return e.Finish(g.Name()+"_parts", r.Body), partials
}

// columnBytes is the bytes in flight of a thread that reduces columns: with 1,536 threads on
// each of an H200's multiprocessors, three times what 4.8 TB/s and 800 ns of latency need.
const columnBytes = 32

// columnUnroll is the unroll factor over the elements of columns, on CUDA: more for narrow
// types, by bytes in flight. In WGSL and MSL, where it is not measured, it is MaxUnroll.
func columnUnroll(e *emit.Emitter, g *fusion.Group) int {
	if !emit.WithMma || e.Caps.Dialect != dtype.CUDA {
		return MaxUnroll
	}
	bytes := 0
	for _, t := range g.Reads() {
		if t.Len() >= fusion.Product(g.Outer)*fusion.Product(g.Inner) {
			bytes += loop.DeviceSize(t.DType)
		}
	}
	unroll := MaxUnroll
	for bytes > 0 && 2*unroll*bytes <= columnBytes && 2*unroll*g.Weight() <= maxUnrolledWeight {
		unroll *= 2
	}
	return unroll
}

// evenStep returns the number of points that the threads of a column handle per iteration, if
// columns are whole iterations: parts of whole iterations need no remainder loop.
func evenStep(e *emit.Emitter, g *fusion.Group, s rowLayout) (step int, ok bool) {
	if !emit.WithMma || e.Caps.Dialect != dtype.CUDA || !s.rowsFirst {
		return 0, false
	}
	step = columnUnroll(e, g) * s.lanes
	return step, fusion.Product(g.Inner)%step == 0
}

// evenParts returns about the given number of parts, of whole iterations each.
func evenParts(e *emit.Emitter, g *fusion.Group, s emit.Schedule, parts int) int {
	step, ok := evenStep(e, g, rowLayoutOf(e.Caps, s, g))
	if parts == 1 || !ok {
		return parts
	}
	steps := fusion.Product(g.Inner) / step
	each := max(1, (steps+parts/2)/parts)
	return max(2, emit.CeilDiv(steps, each))
}

// partialStage reduces the workgroup's part of its rows and leaves the partial results in every
// lane, grouped by reduction.
func (r *rowEmitter) partialStage(members []*fusion.Member) []accumulator {
	accs := r.declare(members)
	r.overPoints(func(c *chunk) {
		for _, m := range members {
			c.accumulate(r, m, accs)
		}
	})
	r.allReduce(accs)
	return accs
}

// A lane combines up to fewParts partial results, which it loads without waiting for the one before, or more where
// rows are fewer than sectorRows: f32 partial results of that many rows fill a sector. Where a barrier
// takes long it combines up to longParts.
const (
	fewParts   = 8
	longParts  = 32
	sectorRows = 8
)

// shapeParts is [shapeColumns] for partial results.
func shapeParts(e *emit.Emitter, rows, parts int) emit.Schedule {
	s, maxParts := shapeColumns(e, rows, parts), fewParts
	if emit.CostlyBarriers(e.Caps) {
		maxParts = longParts
	}
	for s.Rows > sectorRows && parts > maxParts*s.Lanes {
		s.Rows, s.Lanes = s.Rows/2, s.Lanes*2
	}
	return s
}

// CombineParts combines the partial results of each row and finishes the group.
func CombineParts(e *emit.Emitter, g *fusion.Group, parts int, partials []*fusion.Tensor) emit.Launch {
	whole := g.Rows().Combine(parts)
	shape := rowLayoutOf(e.Caps, shapeParts(e, fusion.Product(g.Outer), parts), whole)
	r := newRowEmitter(e, whole, shape, e.LinearGroup(emit.CeilDiv(fusion.Product(g.Outer), shape.rows)))
	members := r.membersAt(0, true)
	accs := r.declare(members)
	r.overPoints(func(c *chunk) {
		next := 0
		for _, m := range members {
			own := accs[next : next+len(m.Reduction().Accumulators(m.Node))]
			c.accumulateParts(r, m, own, partials[next:])
			next += len(own)
		}
	})
	r.allReduce(accs)
	for _, m := range members {
		r.finishMember(m, accs)
	}
	r.nameRows(0)
	r.nameRows(1)
	r.finishRows()
	return e.Finish(g.Name(), r.Body)
}

// accumulateParts combines the partial results of one part.
func (c *chunk) accumulateParts(r *rowEmitter, m *fusion.Member, accs []accumulator, partials []*fusion.Tensor) {
	at := slices.Concat(c.inner, r.row)
	var old, next []scalar.Expr
	for i, a := range accs {
		old = append(old, scalar.FreeVar(a.name, a.spec.DType))
		next = append(next, scalar.Select(c.valid, r.Load(partials[i], at), a.spec.Init))
	}
	r.assign(accs, m.Reduction().Combine(m.Node, old, next))
}

// newPartials adds tensors for the partial results of accumulators.
func newPartials(accs []accumulator, g *fusion.Group, parts int) (out []*fusion.Tensor) {
	for n, a := range accs {
		out = append(out, NewPartial(n, a.spec.DType, g, parts))
	}
	return out
}

// storePartials returns the stores of a row's partial results of a part.
func (r *rowEmitter) storePartials(partials []*fusion.Tensor, accs []accumulator, part scalar.Expr) (stores []loop.Stmt) {
	for n, a := range accs {
		stores = append(stores, r.Store(partials[n], append(ir.Index{part}, r.row...), scalar.FreeVar(a.name, a.spec.DType))...)
	}
	return stores
}

// NewPartial adds a tensor for the partial results of accumulator n, by part and row:
// neighbouring threads read neighbouring rows.
func NewPartial(n int, d ir.DType, g *fusion.Group, parts int) *fusion.Tensor {
	return g.Partition().Scratch("partial"+strconv.Itoa(n), d, append([]int{parts}, g.Outer...)...)
}
