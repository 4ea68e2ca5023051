package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rowsShape is how a workgroup is laid over the outer points ("rows") and the
// inner points of a reduction.
type rowsShape struct {
	lanes, rows int  // threads along the inner points, and rows a workgroup has
	rowsFirst   bool // neighbouring threads have neighbouring rows, not lanes
	chunks      int  // inner points of one thread, where they are written out; 0: a loop
}

// maxChunks bounds how many inner points a thread keeps in registers between
// the stages of a reduction.
const maxChunks = 16

// shapeRows chooses the layout. Threads that are neighbours should read
// neighbouring elements; rows shorter than a workgroup share one.
func (e *emitter) shapeRows(g *Group) rowsShape {
	rows, length := product(g.Outer), product(g.Inner)
	s := rowsShape{lanes: 1, rows: 1, rowsFirst: g.rowsAreContiguous()}
	limit := e.device.Threads
	if s.rowsFirst {
		s.rows = min(32, powerOfTwo(rows))
		for s.lanes < limit/s.rows && s.lanes*4 < length {
			s.lanes *= 2
		}
		for s.lanes*s.rows < limit && rows >= 2*s.rows*wantedGroups {
			s.rows *= 2
		}
	} else {
		s.lanes = min(limit, powerOfTwo(length))
		for s.rows*s.lanes < 64 && s.rows < rows {
			s.rows *= 2
		}
	}
	if c := (length + s.lanes - 1) / s.lanes; c <= maxChunks {
		s.chunks = max(c, 1)
	}
	return s
}

func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// rowsAreContiguous reports whether most of what the reductions read lies side
// by side along the outer coordinates, as in a sum over the first axis.
func (g *Group) rowsAreContiguous() bool {
	votes := 0
	for _, m := range g.Members {
		s := g.program.spaceOf(m.Node)
		for _, a := range s.reads {
			size, _ := a.v.Shape().Size().Const()
			for axis := len(a.at) - 1; axis >= 0; axis-- {
				if a.v.Dim(axis).Is(1) {
					continue
				}
				if own, ok := s.axisOf(a.at[axis]); ok && m.coordOf(own) >= 0 {
					if m.coordOf(own) < len(g.Outer) {
						votes += size
					} else {
						votes -= size
					}
				}
				break
			}
		}
	}
	return votes > 0
}

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
}

// scratchKey is the k-th array of workgroup memory of a type.
type scratchKey struct {
	d ir.DType
	k int
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
	r := newRowEmitter(e, g, shape, e.linearGroup((product(g.Outer)+shape.rows-1)/shape.rows))
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
		scratch: map[scratchKey]int{}, from: integer(0), to: integer(product(g.Inner)),
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

// accumulator is one running value of one reduction of a stage.
type accumulator struct {
	m    *Member
	spec ir.Accumulator
	name string
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

// declare starts the running values of reductions.
func (r *rowEmitter) declare(members []*Member) []accumulator {
	var accs []accumulator
	for _, m := range members {
		for _, a := range lowering(m).Accumulators(m.Node) {
			acc := accumulator{m, a, r.name("acc")}
			accs = append(accs, acc)
			r.body = append(r.body, &Var{acc.name, a.Init})
		}
	}
	return accs
}

// assign gives the running values of one reduction new values, all at once.
func (r *rowEmitter) assign(accs []accumulator, values []scalar.Expr) {
	r.body = append(r.body, r.nameAll(values)...)
	for i, a := range accs {
		r.body = append(r.body, &Assign{a.name, values[i]})
	}
}

// chunk is one inner point of a thread: number j of those written out, or the
// body of the loop over them (j = -1).
type chunk struct {
	j     int
	inner ir.Index
	valid scalar.Expr // the point exists, where the row has no whole number of chunks
}

// overPoints writes code for all inner points of a thread.
func (r *rowEmitter) overPoints(f func(c *chunk)) {
	n, lanes := product(r.g.Inner), r.shape.lanes
	if n == 0 {
		return
	}
	if r.shape.chunks == 0 {
		name := r.name("r")
		at := scalar.NewVar(name, ir.I32, 0, int64(n-1))
		outer := r.body
		r.body = nil
		f(&chunk{-1, r.unflatten(at, r.g.Inner), scalar.ConstBool(true)})
		loop := &For{Var: name, Start: scalar.Add(r.from, r.lane), End: r.to, Step: integer(lanes), Body: r.body}
		r.body = append(outer, loop)
		return
	}
	for j := range r.shape.chunks {
		at, valid := scalar.Add(r.lane, integer(j*lanes)), scalar.ConstBool(true)
		if (j+1)*lanes > n {
			valid = scalar.Lt(at, integer(n))
			at = scalar.Min(at, integer(n-1))
		}
		f(&chunk{j, r.unflatten(r.Simplify(at), r.g.Inner), r.Simplify(valid)})
	}
}

// reader returns a reader for the expressions at a chunk.
func (c *chunk) reader(r *rowEmitter) *reader {
	rd := r.reader()
	at := slices.Concat(r.row, c.inner)
	rd.local = func(v ir.Value, _ ir.Index) (scalar.Expr, bool) {
		if x, ok := r.named[v]; ok {
			return x, true
		}
		if c.j >= 0 {
			if x, ok := r.points[c.j][v]; ok {
				return x, true
			}
		}
		if m := r.g.member(v); m != nil && !m.Reduced {
			return rd.body(m.Node, v.Index(), pick(at, m.Coord)), true
		}
		return nil, false
	}
	return rd
}

// namePoints computes, where chunks are written out, the pointwise members that
// a level makes possible, so that later stages find them in registers.
func (c *chunk) namePoints(r *rowEmitter, level int) {
	if c.j < 0 {
		return
	}
	at := slices.Concat(r.row, c.inner)
	for _, m := range r.membersAt(level, false) {
		if !m.pointwise(len(r.g.Outer)) {
			continue
		}
		for i := range m.Node.Types() {
			v := m.Node.Result(i)
			x := c.cached(r, c.reader(r).body(m.Node, i, pick(at, m.Coord)))
			r.points[c.j][v] = r.let("p", x)
		}
	}
}

// cached replaces the loads of an expression by variables that keep them for
// later stages. In a loop there is nothing to keep.
func (c *chunk) cached(r *rowEmitter, x scalar.Expr) scalar.Expr {
	if c.j < 0 {
		return x
	}
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpLoad {
			return nil, false
		}
		key := scalar.Key(n)
		v, ok := r.loads[c.j][key]
		if !ok {
			v = r.let("x", scalar.LoadAt(n.Ref, n.Type, c.cached(r, n.Args[0])))
			r.loads[c.j][key] = v
		}
		return v, true
	})
}

func (c *chunk) accumulate(r *rowEmitter, m *Member, accs []accumulator) {
	l := lowering(m)
	rd := c.reader(r)
	at := slices.Concat(r.row, c.inner)
	elements := l.Element(m.Node, pick(at, m.Coord), pick(at, m.Inner), rd.operand(m.Node))
	own := ownAccumulators(accs, m)
	var old, next []scalar.Expr
	for i, x := range elements {
		old = append(old, scalar.FreeVar(own[i].name, own[i].spec.DType))
		next = append(next, scalar.Select(c.valid, c.cached(r, x), own[i].spec.Init))
	}
	r.assign(own, l.Combine(m.Node, old, next))
}

func ownAccumulators(accs []accumulator, m *Member) []accumulator {
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
	var round [][]accumulator
	n := 0
	for _, own := range byMember(accs) {
		if n+len(own) > r.roomToMeet() && n > 0 {
			r.meetInTree(round)
			round, n = nil, 0
		}
		round, n = append(round, own), n+len(own)
	}
	r.meetInTree(round)
}

// roomToMeet is how many accumulators meet at once: a quarter of what workgroup
// memory holds of 32-bit values, since each element type has arrays of its own.
func (r *rowEmitter) roomToMeet() int {
	return r.device.SharedBytes / (4 * r.shape.lanes * r.shape.rows) / 4
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

// meetInTree combines the accumulators of reductions, listed for each of them,
// by a tree in workgroup memory.
func (r *rowEmitter) meetInTree(reductions [][]accumulator) {
	accs := slices.Concat(reductions...)
	slots := r.scratchSlots(accs)
	own := r.slotOf(r.lane)
	store := func() []Stmt {
		var out []Stmt
		for i, a := range accs {
			out = append(out, &Store{slots[i], own, scalar.FreeVar(a.name, a.spec.DType)})
		}
		return out
	}
	r.body = append(r.body, store()...)
	r.body = append(r.body, &Barrier{})
	for half := r.shape.lanes / 2; half > 0; half /= 2 {
		then := r.combineFrom(reductions, slots, r.slotOf(scalar.Add(r.lane, integer(half))))
		then = append(then, store()...)
		r.body = append(r.body, &If{Cond: scalar.Lt(r.lane, integer(half)), Then: then}, &Barrier{})
	}
	first := r.slotOf(integer(0))
	for i, a := range accs {
		r.body = append(r.body, &Assign{a.name, scalar.LoadAt(slots[i], a.spec.DType, first)})
	}
	r.body = append(r.body, &Barrier{})
}

// combineFrom merges another lane's accumulators into the thread's own.
func (r *rowEmitter) combineFrom(reductions [][]accumulator, slots []int, at scalar.Expr) []Stmt {
	var out []Stmt
	for _, accs := range reductions {
		var mine, theirs []scalar.Expr
		for i, a := range accs {
			mine = append(mine, scalar.FreeVar(a.name, a.spec.DType))
			theirs = append(theirs, scalar.LoadAt(slots[i], a.spec.DType, at))
		}
		slots = slots[len(accs):]
		combined := lowering(accs[0].m).Combine(accs[0].m.Node, mine, theirs)
		out = append(out, r.nameAll(combined)...)
		for i, a := range accs {
			out = append(out, &Assign{a.name, combined[i]})
		}
	}
	return out
}

// slotOf is the place of a lane of the thread's row in workgroup memory. Rows
// are the inner axis where neighbouring threads have neighbouring rows.
func (r *rowEmitter) slotOf(lane scalar.Expr) scalar.Expr {
	if r.shape.rowsFirst {
		return r.Simplify(scalar.Add(scalar.Mul(lane, integer(r.shape.rows)), r.place))
	}
	return r.Simplify(scalar.Add(scalar.Mul(r.place, integer(r.shape.lanes)), lane))
}

// scratchSlots returns an array of workgroup memory for each accumulator; the
// stages share them.
func (r *rowEmitter) scratchSlots(accs []accumulator) []int {
	used := map[ir.DType]int{}
	out := make([]int, len(accs))
	for i, a := range accs {
		d := a.spec.DType
		key := scratchKey{d, used[d]}
		slot, ok := r.scratch[key]
		if !ok {
			slot = r.shared(r.name("scratch"), d, 1, r.shape.lanes*r.shape.rows)
			r.scratch[key] = slot
		}
		out[i] = slot
		used[d]++
	}
	return out
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

// finishPoints stores what there is one of for each inner point.
func (r *rowEmitter) finishPoints() {
	var members []*Member
	last := 0
	for _, m := range r.g.Members {
		if !m.pointwise(len(r.g.Outer)) || m.Reduced {
			continue
		}
		last = max(last, r.levels[m])
		for _, t := range m.Store {
			if t != nil {
				members = append(members, m)
				break
			}
		}
	}
	if len(members) == 0 {
		return
	}
	named := map[int]bool{}
	r.overPoints(func(c *chunk) {
		if c.j >= 0 && !named[c.j] {
			named[c.j] = true
			c.namePoints(r, last)
		}
		r.storePoints(c, members)
	})
}

func (r *rowEmitter) storePoints(c *chunk, members []*Member) {
	at := slices.Concat(r.row, c.inner)
	rd := c.reader(r)
	var stores []Stmt
	for _, m := range members {
		for i, t := range m.Store {
			if t != nil {
				pos := pick(at, m.Coord)
				stores = append(stores, r.store(t, pos, rd.element(m.Node.Result(i), pos))...)
			}
		}
	}
	r.body = append(r.body, guard(scalar.And(c.valid, r.inRange), stores)...)
}

// guard puts statements under a condition, unless it always holds.
func guard(cond scalar.Expr, then []Stmt) []Stmt {
	if x, ok := cond.IntConst(); ok && x != 0 {
		return then
	}
	return []Stmt{&If{Cond: cond, Then: then}}
}
