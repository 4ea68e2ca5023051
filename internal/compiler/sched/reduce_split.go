package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// wantedGroups is the number of workgroups per processor that fills the device.
const wantedGroups = 2

// scheduleSplit is a split reduction in two kernels: the first stores the partial results of
// each part of a row, the second combines them in order, so that the result is deterministic.
func scheduleSplit(e *emitter, g *fusion.Group, s Schedule) []Launch {
	var partials []*fusion.Tensor
	first := e.splitRows(g, s, &partials)
	second := e.sibling().combineParts(g, s.Split, partials)
	return []Launch{first, second}
}

// splitRows reduces each part of each row.
func (e *emitter) splitRows(g *fusion.Group, s Schedule, partials *[]*fusion.Tensor) Launch {
	shape, parts := rowLayoutOf(s, g), s.Split
	shape.chunks = 0
	blocks := ceilDiv(fusion.Product(g.Outer), shape.rows)
	workgroup := e.linearGroup(blocks * parts)
	part := scalar.Mod(workgroup, loop.Int(parts))
	r := newRowEmitter(e, g, shape, scalar.FloorDiv(workgroup, loop.Int(parts)))
	length := ceilDiv(fusion.Product(g.Inner), parts)
	if r.length = length; length*parts != fusion.Product(g.Inner) {
		r.length = 1
	}
	if turn, ok := e.evenStep(g, shape); ok && ceilDiv(length, turn)*turn*(parts-1) < fusion.Product(g.Inner) {
		length = ceilDiv(length, turn) * turn
		r.length = turn
	}
	r.from = r.let("from", scalar.Mul(part, loop.Int(length)))
	r.to = r.let("to", scalar.Min(scalar.Add(r.from, loop.Int(length)), loop.Int(fusion.Product(g.Inner))))

	var stores []loop.Stmt
	for _, a := range r.partialStage(r.membersAt(0, true)) {
		t := newPartial(len(*partials), a.spec.DType, g, parts)
		*partials = append(*partials, t)
		stores = append(stores, e.store(t, append(ir.Index{part}, r.row...), scalar.FreeVar(a.name, a.spec.DType))...)
	}
	writes := scalar.And(scalar.Eq(r.lane, loop.Int(0)), r.inRange)
	r.body = append(r.body, guard(writes, stores)...)
	return e.finish(g.Name()+"_parts", r.body)
}

// columnBytes is the bytes in flight of a thread that reduces columns: with 1,536 threads on
// each of an H200's multiprocessors, three times what 4.8 TB/s and 800 ns of latency need.
const columnBytes = 32

// columnUnroll is the unroll factor over the elements of columns, on CUDA: more for narrow
// types, by bytes in flight. In WGSL and MSL, where it is not measured, it is maxUnroll.
func (e *emitter) columnUnroll(g *fusion.Group) int {
	if !withMma || e.caps.Dialect != dtype.CUDA {
		return maxUnroll
	}
	bytes := 0
	for _, t := range g.Reads() {
		if t.Len() >= fusion.Product(g.Outer)*fusion.Product(g.Inner) {
			bytes += loop.DeviceSize(t.DType)
		}
	}
	turns := maxUnroll
	for bytes > 0 && 2*turns*bytes <= columnBytes && 2*turns*g.Weight() <= maxUnrolledWeight {
		turns *= 2
	}
	return turns
}

// evenStep returns the number of points that the threads of a column handle per iteration, if
// columns are whole iterations: parts of whole iterations need no remainder loop.
func (e *emitter) evenStep(g *fusion.Group, s rowLayout) (turn int, ok bool) {
	if !withMma || e.caps.Dialect != dtype.CUDA || !s.rowsFirst {
		return 0, false
	}
	turn = e.columnUnroll(g) * s.lanes
	return turn, fusion.Product(g.Inner)%turn == 0
}

// evenParts returns about the given number of parts, of whole iterations each.
func (e *emitter) evenParts(g *fusion.Group, s Schedule, parts int) int {
	turn, ok := e.evenStep(g, rowLayoutOf(s, g))
	if parts == 1 || !ok {
		return parts
	}
	turns := fusion.Product(g.Inner) / turn
	each := max(1, (turns+parts/2)/parts)
	return max(2, ceilDiv(turns, each))
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

// combineParts combines the partial results of each row and finishes the group.
func (e *emitter) combineParts(g *fusion.Group, parts int, partials []*fusion.Tensor) Launch {
	whole := g.CombineSplits(parts)
	shape := rowLayoutOf(e.shapeColumns(fusion.Product(g.Outer), parts), whole)
	r := newRowEmitter(e, whole, shape, e.linearGroup(ceilDiv(fusion.Product(g.Outer), shape.rows)))
	next := 0
	for _, m := range r.membersAt(0, true) {
		accs := r.declare([]*fusion.Member{m})
		own := partials[next : next+len(accs)]
		next += len(accs)
		r.overPoints(func(c *chunk) { c.accumulateParts(r, m, accs, own) })
		r.allReduce(accs)
		r.finishMember(m, accs)
	}
	r.nameRows(0)
	r.nameRows(1)
	r.finishRows()
	return e.finish(g.Name(), r.body)
}

// accumulateParts combines the partial results of one part.
func (c *chunk) accumulateParts(r *rowEmitter, m *fusion.Member, accs []accumulator, partials []*fusion.Tensor) {
	at := slices.Concat(c.inner, r.row)
	var old, next []scalar.Expr
	for i, a := range accs {
		old = append(old, scalar.FreeVar(a.name, a.spec.DType))
		next = append(next, scalar.Select(c.valid, r.load(partials[i], at), a.spec.Init))
	}
	r.assign(accs, m.Reduction().Combine(m.Node, old, next))
}

// newPartial adds a tensor for the partial results of accumulator n, by part and row:
// neighbouring threads read neighbouring rows.
func newPartial(n int, d ir.DType, g *fusion.Group, parts int) *fusion.Tensor {
	return g.Partition().Scratch("partial"+strconv.Itoa(n), d, append([]int{parts}, g.Outer...)...)
}
