package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rowEmitter writes the kernel of a reduction.
type rowEmitter struct {
	*emitter
	g       *fusion.Group
	shape   rowsShape
	row     ir.Index // the outer coordinates of the thread's row, clamped
	inRange scalar.Expr
	lane    scalar.Expr
	place   scalar.Expr // the row's place in the workgroup
	levels  map[*fusion.Member]int
	// named holds the variables of what is computed once for each row; points
	// those of one inner point, where chunks are written out.
	named   map[ir.Value]scalar.Expr
	points  []map[ir.Value]scalar.Expr
	loads   []map[scalar.Expr]scalar.Expr
	body    []loop.Stmt
	scratch map[scratchKey]int
	// from and to bound the inner points that the workgroup has, where it does
	// not have them all.
	from, to scalar.Expr
	length   int // of each part, 1 where they differ
	// each is how many neighbours a thread has at each of its points in a loop: width
	// where it goes by vectors, otherwise one.
	each int
}

// scheduleReduce gives each row to a set of lanes of one workgroup, which meet
// after each stage. Few long rows are cut over several workgroups instead.
func scheduleReduce(e *emitter, g *fusion.Group, s Schedule) []Launch {
	if fusion.Product(g.Outer) == 0 {
		return nil
	}
	if s.Split > 1 {
		return scheduleSplit(e, g, s)
	}
	shape := shapeOf(s, g)
	if withMma && shape.byVectors(g, e.caps.Dialect) {
		r := wholeRows(e.another(), g, shape)
		r.each = width
		if body, ok := r.vectors(r.rows()); ok {
			return []Launch{r.emitter.finish(g.Name(), body)}
		}
	}
	r := wholeRows(e, g, shape)
	return []Launch{e.finish(g.Name(), r.rows())}
}

// rows writes the body of a kernel that has whole rows.
func (r *rowEmitter) rows() []loop.Stmt {
	last := 0
	for _, m := range r.g.Members {
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
	return r.body
}

// wholeRows is newRowEmitter for workgroups that have all of their rows.
func wholeRows(e *emitter, g *fusion.Group, shape rowsShape) *rowEmitter {
	return newRowEmitter(e, g, shape, e.linearGroup(ceilDiv(fusion.Product(g.Outer), shape.rows)))
}

func newRowEmitter(e *emitter, g *fusion.Group, shape rowsShape, workgroup scalar.Expr) *rowEmitter {
	r := &rowEmitter{
		emitter: e, g: g, shape: shape, levels: g.Levels(), named: map[ir.Value]scalar.Expr{},
		scratch: map[scratchKey]int{}, from: loop.Int(0), to: loop.Int(fusion.Product(g.Inner)), length: fusion.Product(g.Inner),
		each: 1,
	}
	if shape.rowsFirst {
		e.workgroup = [3]int{shape.rows, shape.lanes, 1}
		r.place, r.lane = loop.LocalID(0, shape.rows), loop.LocalID(1, shape.lanes)
	} else {
		e.workgroup = [3]int{shape.lanes, shape.rows, 1}
		r.place, r.lane = loop.LocalID(1, shape.rows), loop.LocalID(0, shape.lanes)
	}
	rows := fusion.Product(g.Outer)
	row := scalar.Add(scalar.Mul(workgroup, loop.Int(shape.rows)), r.place)
	r.inRange = scalar.ConstBool(true)
	if rows%shape.rows != 0 || e.overshoots() {
		r.inRange = r.let("in_range", scalar.Lt(row, loop.Int(rows)))
		row = scalar.Min(row, loop.Int(rows-1))
	}
	name := e.name("row")
	r.body = append(r.body, &loop.Let{Name: name, Value: row})
	r.row = r.unflatten(scalar.NewVar(name, row.Type, 0, int64(rows-1)), g.Outer)
	for range shape.chunks {
		r.points = append(r.points, map[ir.Value]scalar.Expr{})
		r.loads = append(r.loads, map[scalar.Expr]scalar.Expr{})
	}
	return r
}

// let names a value and returns its variable.
func (r *rowEmitter) let(prefix string, value scalar.Expr) scalar.Expr {
	if value.Op == scalar.OpConst || value.Op == scalar.OpVar {
		return value
	}
	name := r.name(prefix)
	r.body = append(r.body, &loop.Let{Name: name, Value: value})
	return scalar.FreeVar(name, value.Type)
}

func (r *rowEmitter) membersAt(level int, reduced bool) []*fusion.Member {
	var out []*fusion.Member
	for _, m := range r.g.Members {
		if r.levels[m] == level && m.Reduced == reduced {
			out = append(out, m)
		}
	}
	return out
}

// stage runs the reductions of one level over all inner points.
func (r *rowEmitter) stage(level int, members []*fusion.Member) {
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
func (r *rowEmitter) finishMember(m *fusion.Member, accs []accumulator) {
	var results []scalar.Expr
	for _, a := range accs {
		if a.m == m {
			results = append(results, scalar.FreeVar(a.name, a.spec.DType))
		}
	}
	load := (&chunk{j: -1}).reader(r).Operand(m.Node)
	results = m.Finish(m.At(r.row), results, load)
	for i, x := range results {
		r.named[m.Node.Result(i)] = r.let("result", x)
	}
}

// nameRows computes the members that have one element for each row and that a
// level makes possible.
func (r *rowEmitter) nameRows(level int) {
	for _, m := range r.membersAt(level, false) {
		if m.Pointwise(len(r.g.Outer)) {
			continue
		}
		rd := (&chunk{j: -1}).reader(r)
		for i := range m.Node.Types() {
			r.named[m.Node.Result(i)] = r.let("row_value", rd.Body(m.Node, i, m.At(r.row)))
		}
	}
}

// finishRows stores what there is one of for each row.
func (r *rowEmitter) finishRows() {
	var stores []loop.Stmt
	for _, m := range r.g.Members {
		if m.Pointwise(len(r.g.Outer)) {
			continue
		}
		for i, t := range m.Store {
			if t != nil {
				stores = append(stores, r.store(t, m.At(r.row), r.named[m.Node.Result(i)])...)
			}
		}
	}
	if len(stores) == 0 {
		return
	}
	writes := r.inRange
	if r.shape.lanes > 1 {
		writes = scalar.And(scalar.Eq(r.lane, loop.Int(0)), writes)
	}
	r.body = append(r.body, guard(writes, stores)...)
}
