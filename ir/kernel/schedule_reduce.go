package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rowEmitter writes the kernel of a reduction.
type rowEmitter struct {
	*emitter
	g       *Group
	shape   rowsShape
	row     ir.Index // the outer coordinates of the thread's row, clamped
	inRange scalar.Expr
	lane    scalar.Expr
	place   scalar.Expr // the row's place in the workgroup
	levels  map[*Member]int
	// named holds the variables of what is computed once for each row; points
	// those of one inner point, where chunks are written out.
	named   map[ir.Value]scalar.Expr
	points  []map[ir.Value]scalar.Expr
	loads   []map[string]scalar.Expr
	body    []Stmt
	scratch map[scratchKey]int
	// from and to bound the inner points that the workgroup has, where it does
	// not have them all.
	from, to scalar.Expr
	length   int // of each part, 1 where they differ
}

// scheduleReduce gives each row to a set of lanes of one workgroup, which meet
// after each stage. Few long rows are cut over several workgroups instead.
func scheduleReduce(e *emitter, g *Group) []Launch {
	if product(g.Outer) == 0 {
		return nil
	}
	if parts := splitCount(g); parts > 1 {
		return scheduleSplit(e, g, parts)
	}
	shape := e.shapeRows(g)
	r := newRowEmitter(e, g, shape, e.linearGroup(ceilDiv(product(g.Outer), shape.rows)))
	last := 0
	for _, m := range g.Members {
		if m.Reduced {
			last = max(last, r.levels[m])
		}
	}
	r.nameRows(0)
	for level := 0; level <= last; level++ {
		r.stage(level, r.membersAt(level, true))
		r.nameRows(level + 1)
	}
	r.finishRows()
	r.finishPoints()
	return []Launch{e.finish(g.Name(), r.body)}
}

func newRowEmitter(e *emitter, g *Group, shape rowsShape, group scalar.Expr) *rowEmitter {
	r := &rowEmitter{
		emitter: e, g: g, shape: shape, levels: levelsOf(g), named: map[ir.Value]scalar.Expr{},
		scratch: map[scratchKey]int{}, from: integer(0), to: integer(product(g.Inner)), length: product(g.Inner),
	}
	if shape.rowsFirst {
		e.workgroup = [3]int{shape.rows, shape.lanes, 1}
		r.place, r.lane = LocalID(0, shape.rows), LocalID(1, shape.lanes)
	} else {
		e.workgroup = [3]int{shape.lanes, shape.rows, 1}
		r.place, r.lane = LocalID(1, shape.rows), LocalID(0, shape.lanes)
	}
	rows := product(g.Outer)
	row := scalar.Add(scalar.Mul(group, integer(shape.rows)), r.place)
	r.inRange = scalar.ConstBool(true)
	if rows%shape.rows != 0 || e.overshoots() {
		r.inRange = r.let("in_range", scalar.Lt(row, integer(rows)))
		row = scalar.Min(row, integer(rows-1))
	}
	name := e.name("row")
	r.body = append(r.body, &Let{name, row})
	r.row = r.unflatten(scalar.NewVar(name, ir.I32, 0, int64(rows-1)), g.Outer)
	for range shape.chunks {
		r.points = append(r.points, map[ir.Value]scalar.Expr{})
		r.loads = append(r.loads, map[string]scalar.Expr{})
	}
	return r
}

// let names a value and returns its variable.
func (r *rowEmitter) let(prefix string, value scalar.Expr) scalar.Expr {
	if value.Op == scalar.OpConst || value.Op == scalar.OpVar {
		return value
	}
	name := r.name(prefix)
	r.body = append(r.body, &Let{name, value})
	return scalar.FreeVar(name, value.Type)
}

// levelsOf tells for each member after how many stages it can be computed.
func levelsOf(g *Group) map[*Member]int {
	levels := map[*Member]int{}
	for _, m := range g.Members {
		for _, a := range g.program.spaceOf(m.Node).reads {
			q := g.member(a.v)
			if q == nil || q == m {
				continue
			}
			l := levels[q]
			if q.Reduced {
				l++
			}
			levels[m] = max(levels[m], l)
		}
	}
	return levels
}

func (r *rowEmitter) membersAt(level int, reduced bool) []*Member {
	var out []*Member
	for _, m := range r.g.Members {
		if r.levels[m] == level && m.Reduced == reduced {
			out = append(out, m)
		}
	}
	return out
}

// stage runs the reductions of one level over all inner points.
func (r *rowEmitter) stage(level int, members []*Member) {
	accs := r.declare(members)
	if len(accs) == 0 {
		return
	}
	r.overPoints(func(c *chunk) {
		c.namePoints(r, level)
		for _, m := range members {
			c.accumulate(r, m, accs)
		}
	})
	r.meet(accs)
	for _, m := range members {
		r.finishMember(m, accs)
	}
}

// finishMember names the results of a reduction.
func (r *rowEmitter) finishMember(m *Member, accs []accumulator) {
	var results []scalar.Expr
	for _, a := range accs {
		if a.m == m {
			results = append(results, scalar.FreeVar(a.name, a.spec.DType))
		}
	}
	load := (&chunk{j: -1}).reader(r).operand(m.Node)
	results = finishReduction(m, pick(r.row, m.Coord), results, load)
	for i, x := range results {
		r.named[m.Node.Result(i)] = r.let("result", x)
	}
}

// nameRows computes the members that have one element for each row and that a
// level makes possible.
func (r *rowEmitter) nameRows(level int) {
	for _, m := range r.membersAt(level, false) {
		if m.pointwise(len(r.g.Outer)) {
			continue
		}
		rd := (&chunk{j: -1}).reader(r)
		for i := range m.Node.Types() {
			r.named[m.Node.Result(i)] = r.let("row_value", rd.body(m.Node, i, pick(r.row, m.Coord)))
		}
	}
}

// finishRows stores what there is one of for each row.
func (r *rowEmitter) finishRows() {
	var stores []Stmt
	for _, m := range r.g.Members {
		if m.pointwise(len(r.g.Outer)) {
			continue
		}
		for i, t := range m.Store {
			if t != nil {
				stores = append(stores, r.store(t, pick(r.row, m.Coord), r.named[m.Node.Result(i)])...)
			}
		}
	}
	if len(stores) == 0 {
		return
	}
	writes := r.inRange
	if r.shape.lanes > 1 {
		writes = scalar.And(scalar.Eq(r.lane, integer(0)), writes)
	}
	r.body = append(r.body, guard(writes, stores)...)
}
