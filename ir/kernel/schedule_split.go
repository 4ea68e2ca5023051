package kernel

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds of cutting sums: a dispatch should have wantedGroups workgroups, or
// wantedReductions of those that reduce, which do little else than wait for
// memory: eight on each of a large device's 132 processors. Each has at least
// splitLength inner points.
const (
	wantedGroups     = 256
	wantedReductions = 1024
	splitLength      = 1024
)

// splitCount returns over how many workgroups each row is cut. Groups with
// several stages, or with results inside the rows, need whole rows.
func splitCount(g *Group) int {
	for m, level := range levelsOf(g) {
		if m.Reduced && level > 0 || !m.Reduced && m.pointwise(len(g.Outer)) {
			return 1
		}
	}
	rows, length := product(g.Outer), product(g.Inner)
	if g.rowsAreContiguous() {
		rows = (rows + 31) / 32
	}
	return max(1, min(wantedReductions/max(rows, 1), length/splitLength))
}

// scheduleSplit reduces in two kernels: the first leaves one set of running
// values for each part of a row, the second combines the parts in order, so
// that the result does not depend on who came first.
func scheduleSplit(e *emitter, g *Group, parts int) []Launch {
	var partials []*Tensor
	first := e.splitRows(g, parts, &partials)
	second := newEmitter(e.p, e.device).combineParts(g, parts, partials)
	return []Launch{first, second}
}

// splitRows reduces each part of each row by itself.
func (e *emitter) splitRows(g *Group, parts int, partials *[]*Tensor) Launch {
	shape := e.shapeRows(g)
	shape.chunks = 0
	blocks := ceilDiv(product(g.Outer), shape.rows)
	group := e.linearGroup(blocks * parts)
	part := scalar.Mod(group, integer(parts))
	r := newRowEmitter(e, g, shape, scalar.FloorDiv(group, integer(parts)))
	length := ceilDiv(product(g.Inner), parts)
	r.from = r.let("from", scalar.Mul(part, integer(length)))
	r.to = r.let("to", scalar.Min(scalar.Add(r.from, integer(length)), integer(product(g.Inner))))

	var stores []Stmt
	for _, m := range r.membersAt(0, true) {
		accs := r.partialStage(m)
		for _, a := range accs {
			t := e.p.newPartial(len(*partials), a.spec.DType, g, parts)
			*partials = append(*partials, t)
			stores = append(stores, e.store(t, append(ir.Index{part}, r.row...), scalar.FreeVar(a.name, a.spec.DType))...)
		}
	}
	writes := scalar.And(scalar.Eq(r.lane, integer(0)), r.inRange)
	r.body = append(r.body, guard(writes, stores)...)
	return e.finish(g.Name()+"_parts", r.body)
}

// newPartial adds a tensor for the running values, number n of a group, of each
// part of its rows. Those of one row lie far apart: neighbouring rows are read
// by neighbouring threads.
func (p *Program) newPartial(n int, d ir.DType, g *Group, parts int) *Tensor {
	dims := append([]int{parts}, g.Outer...)
	return p.newTensor("partial"+strconv.Itoa(n), ir.Type{DType: d, Shape: ir.Dims(dims...)})
}

// partialStage runs one reduction over the workgroup's part of its rows and
// leaves the running values in every lane.
func (r *rowEmitter) partialStage(m *Member) []accumulator {
	accs := r.declare([]*Member{m})
	r.overPoints(func(c *chunk) { c.accumulate(r, m, accs) })
	r.meet(accs)
	return accs
}

// combineParts reduces the parts of each row and finishes the group.
func (e *emitter) combineParts(g *Group, parts int, partials []*Tensor) Launch {
	whole := &Group{Kind: ReduceKind, Outer: g.Outer, Inner: []int{parts}, Members: g.Members, program: g.program}
	shape := e.shapeColumns(whole, product(g.Outer), parts)
	r := newRowEmitter(e, whole, shape, e.linearGroup(ceilDiv(product(g.Outer), shape.rows)))
	next := 0
	for _, m := range r.membersAt(0, true) {
		accs := r.declare([]*Member{m})
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
func (c *chunk) accumulateParts(r *rowEmitter, m *Member, accs []accumulator, partials []*Tensor) {
	at := slices.Concat(c.inner, r.row)
	var old, next []scalar.Expr
	for i, a := range accs {
		old = append(old, scalar.FreeVar(a.name, a.spec.DType))
		next = append(next, scalar.Select(c.valid, r.load(partials[i], at), a.spec.Init))
	}
	r.assign(accs, lowering(m).Combine(m.Node, old, next))
}
