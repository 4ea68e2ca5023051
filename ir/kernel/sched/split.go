package sched

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// wantedGroups is how many workgroups a dispatch should have to fill a large device: two
// on each of an H200's 132 multiprocessors, about.
const wantedGroups = 256

// scheduleSplit reduces in two kernels: the first leaves one set of running
// values for each part of a row, the second combines the parts in order, so
// that the result does not depend on who came first.
func scheduleSplit(e *emitter, g *group.Group, s Schedule) []Launch {
	var partials []*group.Tensor
	first := e.splitRows(g, s, &partials)
	second := e.another().combineParts(g, s.Split, partials)
	return []Launch{first, second}
}

// splitRows reduces each part of each row by itself.
func (e *emitter) splitRows(g *group.Group, s Schedule, partials *[]*group.Tensor) Launch {
	shape, parts := shapeOf(s, g), s.Split
	shape.chunks = 0
	blocks := ceilDiv(group.Product(g.Outer), shape.rows)
	workgroup := e.linearGroup(blocks * parts)
	part := scalar.Mod(workgroup, loop.Int(parts))
	r := newRowEmitter(e, g, shape, scalar.FloorDiv(workgroup, loop.Int(parts)))
	length := ceilDiv(group.Product(g.Inner), parts)
	r.from = r.let("from", scalar.Mul(part, loop.Int(length)))
	r.to = r.let("to", scalar.Min(scalar.Add(r.from, loop.Int(length)), loop.Int(group.Product(g.Inner))))
	if r.length = length; length*parts != group.Product(g.Inner) {
		r.length = 1
	}

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

// partialStage runs reductions over the workgroup's part of its rows, once for all of
// them, and leaves the running values in every lane, those of each reduction together.
func (r *rowEmitter) partialStage(members []*group.Member) []accumulator {
	accs := r.declare(members)
	r.overPoints(func(c *chunk) {
		for _, m := range members {
			c.accumulate(r, m, accs)
		}
	})
	r.meet(accs)
	return accs
}

// combineParts reduces the parts of each row and finishes the group.
func (e *emitter) combineParts(g *group.Group, parts int, partials []*group.Tensor) Launch {
	whole := g.OverParts(parts)
	shape := shapeOf(e.shapeColumns(group.Product(g.Outer), parts), whole)
	r := newRowEmitter(e, whole, shape, e.linearGroup(ceilDiv(group.Product(g.Outer), shape.rows)))
	next := 0
	for _, m := range r.membersAt(0, true) {
		accs := r.declare([]*group.Member{m})
		own := partials[next : next+len(accs)]
		next += len(accs)
		r.overPoints(func(c *chunk) { c.accumulateParts(r, m, accs, own) })
		r.meet(accs)
		r.finishMember(m, accs)
	}
	r.nameRows(0)
	r.nameRows(1)
	r.finishRows()
	return e.finish(g.Name(), r.body)
}

// accumulateParts takes one part's running values as what the chunk brings.
func (c *chunk) accumulateParts(r *rowEmitter, m *group.Member, accs []accumulator, partials []*group.Tensor) {
	at := slices.Concat(c.inner, r.row)
	var old, next []scalar.Expr
	for i, a := range accs {
		old = append(old, scalar.FreeVar(a.name, a.spec.DType))
		next = append(next, scalar.Select(c.valid, r.load(partials[i], at), a.spec.Init))
	}
	r.assign(accs, m.Reduction().Combine(m.Node, old, next))
}

// newPartial adds a tensor for the running values, number n of a group, of each
// part of its rows. Those of one row lie far apart: neighbouring rows are read
// by neighbouring threads.
func newPartial(n int, d ir.DType, g *group.Group, parts int) *group.Tensor {
	return g.Partition().Scratch("partial"+strconv.Itoa(n), d, append([]int{parts}, g.Outer...)...)
}
