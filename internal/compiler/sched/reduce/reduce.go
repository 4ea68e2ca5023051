package reduce

import (
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// rowEmitter writes the kernel of a reduction: each row of inner points is reduced by the lanes
// of one workgroup.
type rowEmitter struct {
	*emit.Emitter
	g       *fusion.Group
	shape   rowLayout
	row     ir.Index // the outer coordinates of the thread's row, clamped
	inRange scalar.Expr
	lane    scalar.Expr
	place   scalar.Expr // the row's index in the workgroup
	levels  map[*fusion.Member]int
	// named holds the variables of values computed once per row, points those of one unrolled
	// inner point, loads its loaded elements, and at last those, and the checks, of all points.
	named   map[ir.Value]scalar.Expr
	points  []map[ir.Value]scalar.Expr
	loads   []map[scalar.Expr]scalar.Expr
	scratch map[scratchKey]int
	// from and to bound the workgroup's inner points where rows are split.
	from, to scalar.Expr
	length   int // of each part, 1 where parts differ
	// each is the number of contiguous elements per point of a loop: width with vectors,
	// otherwise 1.
	each int
}

// Emit returns the launches of a schedule that fits. Each row is reduced in one workgroup, whose lanes are combined after
// each stage. Few long rows are split over several workgroups instead.
func (w *Space) Emit(s emit.Schedule) []emit.Launch {
	e, g := w.e, w.Group
	if fusion.Product(g.Outer) == 0 {
		return nil
	}
	if s.Family == emit.PackedRows {
		if l, ok := emitPacked(e.Sibling(), g, s); ok {
			return []emit.Launch{l}
		}
		s = shapeRows(e, g)
	}
	if s.M > 0 {
		if t, ok := w.tile(); ok {
			if out, ok := emitTiles(e, g, t, s); ok {
				return out
			}
		}
		s = w.usual()
	}
	if s.Split > 1 {
		return emitSplit(e, g, s)
	}
	if emit.WithMma && s.Each > 0 {
		if l, ok := adjacentRows(e, g); ok {
			return []emit.Launch{l}
		}
		s = w.alone(shapeContiguous(e, g))
	}
	shape := rowLayoutOf(e.Caps, s, g)
	if emit.WithMma && (byVectors(shape, g, e.Caps.Dialect) || keepsVectors(shape, g, e)) {
		r := wholeRows(e.Sibling(), g, shape)
		r.each = emit.VectorWidth
		if body, ok := vectorsAlong(r.Emitter, r.rows(), r.lane.Name); ok {
			return []emit.Launch{r.Emitter.Finish(g.Name(), body)}
		}
	}
	r := wholeRows(e, g, shape)
	return []emit.Launch{e.Finish(g.Name(), r.rows())}
}

// rows writes the body of a kernel whose rows are not split.
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
	return r.Body
}

// wholeRows is newRowEmitter for rows that are not split.
func wholeRows(e *emit.Emitter, g *fusion.Group, shape rowLayout) *rowEmitter {
	return newRowEmitter(e, g, shape, e.LinearGroup(emit.CeilDiv(fusion.Product(g.Outer), shape.rows)))
}

func newRowEmitter(e *emit.Emitter, g *fusion.Group, shape rowLayout, workgroup scalar.Expr) *rowEmitter {
	r := &rowEmitter{
		Emitter: e, g: g, shape: shape, levels: g.Levels(), named: map[ir.Value]scalar.Expr{},
		scratch: map[scratchKey]int{}, from: loop.Int(0), to: loop.Int(fusion.Product(g.Inner)), length: fusion.Product(g.Inner),
		each: 1,
	}
	if shape.rowsFirst {
		e.Workgroup = [3]int{shape.rows, shape.lanes, 1}
		r.place, r.lane = loop.LocalID(0, shape.rows), loop.LocalID(1, shape.lanes)
	} else {
		e.Workgroup = [3]int{shape.lanes, shape.rows, 1}
		r.place, r.lane = loop.LocalID(1, shape.rows), loop.LocalID(0, shape.lanes)
	}
	rows := fusion.Product(g.Outer)
	row := scalar.Add(scalar.Mul(workgroup, loop.Int(shape.rows)), r.place)
	r.inRange = scalar.ConstBool(true)
	if rows%shape.rows != 0 || e.Overshoots() {
		r.inRange = r.let("in_range", scalar.Lt(row, loop.Int(rows)))
		row = scalar.Min(row, loop.Int(rows-1))
	}
	name := e.Name("row")
	r.Body = append(r.Body, &loop.Let{Name: name, Value: row})
	r.row = r.Unflatten(scalar.NewVar(name, row.Type, 0, int64(rows-1)), g.Outer)
	r.keepPoints()
	return r
}

// keepPoints prepares the variables of unrolled points.
func (r *rowEmitter) keepPoints() {
	for range r.shape.chunks {
		r.points = append(r.points, map[ir.Value]scalar.Expr{})
		r.loads = append(r.loads, map[scalar.Expr]scalar.Expr{})
	}
	if emit.WithMma {
		r.loads = append(r.loads, map[scalar.Expr]scalar.Expr{})
	}
}

// let is [loop.Writer.Let] for values that are simple already: it computes neither their simplest form
// nor their range.
func (r *rowEmitter) let(prefix string, value scalar.Expr) scalar.Expr {
	return let(r.Emitter, prefix, value)
}

func let(e *emit.Emitter, prefix string, value scalar.Expr) scalar.Expr {
	if value.Op == scalar.OpConst || value.Op == scalar.OpVar {
		return value
	}
	name := e.Name(prefix)
	e.Body = append(e.Body, &loop.Let{Name: name, Value: value})
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

// stage reduces over all inner points for the reductions of one level.
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
	r.allReduce(accs)
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

// nameRows computes the members with one element per row that a level makes available.
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

// finishRows stores the results with one element per row.
func (r *rowEmitter) finishRows() {
	var stores []loop.Stmt
	for _, m := range r.g.Members {
		if m.Pointwise(len(r.g.Outer)) {
			continue
		}
		for i, t := range m.Store {
			if t != nil {
				stores = append(stores, r.Store(t, m.At(r.row), r.named[m.Node.Result(i)])...)
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
	r.Body = append(r.Body, emit.Guard(writes, stores)...)
}

// chunk is one inner point of a thread: unrolled point j, or the body of the loop over points
// (j = -1).
type chunk struct {
	j     int
	inner ir.Index
	valid scalar.Expr // the point exists; false past the end of a row
}

// overPoints writes f for all inner points of a thread.
func (r *rowEmitter) overPoints(f func(c *chunk)) {
	n, lanes := fusion.Product(r.g.Inner), r.shape.lanes
	if n == 0 {
		return
	}
	if r.shape.chunks == 0 {
		r.loopOver(f)
		return
	}
	for j := range r.shape.chunks {
		at, valid := scalar.Add(r.lane, loop.Int(j/r.each*lanes)), scalar.ConstBool(true)
		if r.each > 1 {
			at = scalar.Add(scalar.Mul(at, loop.Int(r.each)), loop.Int(j%r.each))
		}
		if (j+1)*lanes > n {
			valid = scalar.Lt(at, loop.Int(n))
			at = scalar.Min(at, loop.Int(n-1))
		}
		f(&chunk{j, r.Unflatten(r.Simplify(at), r.g.Inner), r.Simplify(valid)})
	}
}

// reader returns a reader for expressions at a chunk.
func (c *chunk) reader(r *rowEmitter) *fusion.Reader {
	return r.Reader().InGroup(r.g, slices.Concat(r.row, c.inner), func(v ir.Value) (scalar.Expr, bool) {
		x, ok := r.named[v]
		if !ok && c.j >= 0 {
			x, ok = r.points[c.j][v]
		}
		return x, ok
	})
}

// namePoints computes, for unrolled points, the pointwise members that a level makes available,
// so that later stages find them in registers.
func (c *chunk) namePoints(r *rowEmitter, level int) {
	if c.j < 0 {
		return
	}
	at := slices.Concat(r.row, c.inner)
	for _, m := range r.membersAt(level, false) {
		if !m.Pointwise(len(r.g.Outer)) {
			continue
		}
		for i := range m.Node.Types() {
			v := m.Node.Result(i)
			if _, ok := r.points[c.j][v]; ok {
				continue
			}
			x := c.cached(r, c.reader(r).Body(m.Node, i, m.At(at)))
			r.points[c.j][v] = r.let("p", x)
		}
	}
}

// cached replaces the loads of an unrolled point by variables that later stages reuse.
func (c *chunk) cached(r *rowEmitter, x scalar.Expr) scalar.Expr {
	if c.j < 0 {
		return x
	}
	return scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		if emit.WithMma && isOfRow(r, n) {
			return loadOfRow(r, c, n), true
		}
		if n.Op != scalar.OpLoad {
			return nil, false
		}
		key := r.Simplifier.Shared(n)
		v, ok := r.loads[c.j][key]
		if !ok {
			v = r.let("x", scalar.LoadAt(n.Ref, n.Type, c.cached(r, n.Args[0])))
			r.loads[c.j][key] = v
		}
		return v, true
	})
}

// isOfRow reports whether an expression is a load or an index check that depends on the row alone and reads what the kernel
// does not write. On CUDA all points of a row share it: compilers move no load across a check.
func isOfRow(r *rowEmitter, x scalar.Expr) bool {
	return r.Caps.Dialect == dtype.CUDA && (x.Op == scalar.OpLoad || x.Op == scalar.OpCheck) && !scalar.Any(x, func(n scalar.Expr) bool {
		return n.Op == scalar.OpVar && !isRow(r, n) || n.Op == scalar.OpLoad && emit.Writes(r.g, n.Ref)
	})
}

// isRow reports whether a variable is the number of the row.
func isRow(r *rowEmitter, v scalar.Expr) bool {
	return slices.ContainsFunc(r.row, func(at scalar.Expr) bool {
		return scalar.Any(at, func(n scalar.Expr) bool { return n.Op == scalar.OpVar && n.Name == v.Name })
	})
}

// loadOfRow returns the variable of a load or a check of the row.
func loadOfRow(r *rowEmitter, c *chunk, n scalar.Expr) scalar.Expr {
	key, ofRow := r.Simplifier.Shared(n), r.loads[r.shape.chunks]
	v, ok := ofRow[key]
	if !ok {
		at := c.cached(r, n.Args[0])
		if n.Op == scalar.OpCheck {
			v = r.let("checked", scalar.Check(at, c.cached(r, n.Args[1]), n.Ref))
		} else {
			v = r.let("x", scalar.LoadAt(n.Ref, n.Type, at))
		}
		ofRow[key] = v
	}
	return v
}

func (c *chunk) accumulate(r *rowEmitter, m *fusion.Member, accs []accumulator) {
	l := m.Reduction()
	rd := c.reader(r)
	at := slices.Concat(r.row, c.inner)
	elements := l.Element(m.Node, m.At(at), m.InnerAt(at), rd.Operand(m.Node))
	own := ownAccumulators(accs, m)
	var old, next []scalar.Expr
	for i, x := range elements {
		old = append(old, scalar.FreeVar(own[i].name, own[i].spec.DType))
		next = append(next, scalar.Select(c.valid, c.cached(r, x), own[i].spec.Init))
	}
	r.assign(own, l.Combine(m.Node, old, next))
}

// finishPoints stores the results with one element per inner point.
func (r *rowEmitter) finishPoints() {
	var members []*fusion.Member
	last := 0
	for _, m := range r.g.Members {
		kept := slices.ContainsFunc(m.Store, func(t *fusion.Tensor) bool { return t != nil })
		if kept && m.Pointwise(len(r.g.Outer)) {
			members = append(members, m)
			last = max(last, r.levels[m])
		}
	}
	if len(members) == 0 {
		return
	}
	if emit.WithMma && overwrites(r.g) && clamps(r) {
		overwritePoints(r, members, last)
		return
	}
	r.overPoints(func(c *chunk) {
		c.namePoints(r, last)
		r.storePoints(c, members)
	})
}

// overwritePoints is finishPoints for results in the buffer of a value that the group reads. Threads
// whose row or point does not exist have read those of another thread: the barrier waits for them, and
// they read none after it. A point's variables stand in its own block.
func overwritePoints(r *rowEmitter, members []*fusion.Member, level int) {
	r.Barrier()
	outside := r.loads[r.shape.chunks]
	r.Add(emit.Guard(r.inRange, r.Nested(func() {
		r.overPoints(func(c *chunk) {
			r.loads[r.shape.chunks] = maps.Clone(outside)
			r.Add(emit.Guard(c.valid, r.Nested(func() {
				c.namePoints(r, level)
				r.storePoints(c, members)
			}))...)
		})
	}))...)
}

// overwrites reports whether a group stores results in the buffers of values that it reads.
func overwrites(g *fusion.Group) bool {
	return slices.ContainsFunc(g.Writes(), func(t *fusion.Tensor) bool { return slices.Contains(g.Reads(), t) })
}

// clamps reports whether threads read a row or a point of another thread, as their own does not exist.
func clamps(r *rowEmitter) bool {
	_, whole := r.inRange.IntConst()
	return !whole || r.shape.chunks*r.shape.lanes > fusion.Product(r.g.Inner)
}

func (r *rowEmitter) storePoints(c *chunk, members []*fusion.Member) {
	at := slices.Concat(r.row, c.inner)
	rd := c.reader(r)
	var stores []emit.PendingStore
	for _, m := range members {
		for i, t := range m.Store {
			if t != nil {
				pos := m.At(at)
				stores = append(stores, emit.PendingStore{Tensor: t, At: pos, Value: rd.Element(m.Node.Result(i), pos)})
			}
		}
	}
	r.Body = append(r.Body, emit.Guard(scalar.And(c.valid, r.inRange), r.storesOf(stores))...)
}

// storesOf returns the stores of values at one point. Where a result is in the buffer of an operand, all
// values are computed before the first store.
func (r *rowEmitter) storesOf(stores []emit.PendingStore) (body []loop.Stmt) {
	if emit.WithMma && overwrites(r.g) {
		return r.StoreAll(stores)
	}
	for _, s := range stores {
		body = append(body, r.Store(s.Tensor, s.At, s.Value)...)
	}
	return body
}

// loopOver writes a loop over the inner points of a thread, unrolled to keep several loads in
// flight, and a second loop over the remainder of a long row.
func (r *rowEmitter) loopOver(f func(c *chunk)) {
	unroll, to := r.unrollFactor(), r.to
	if r.each > 1 { // rows are not split
		to = loop.Int(r.length / r.each)
	}
	if emit.WithMma && unroll == 1 && hasRemainder(r) {
		whole := MaxUnroll * r.shape.lanes
		whole *= r.length / r.each / whole
		r.strided(f, MaxUnroll, scalar.Add(r.from, r.lane), loop.Int(whole))
		r.strided(f, 1, scalar.Add(loop.Int(whole), r.lane), to)
		return
	}
	r.strided(f, unroll, scalar.Add(r.from, r.lane), to)
}

// strided writes a loop over a thread's points from from on, in steps of unroll × lanes. A
// point is a vector where r.each is more than 1.
func (r *rowEmitter) strided(f func(c *chunk), unroll int, from, to scalar.Expr) {
	n, lanes := fusion.Product(r.g.Inner)/r.each, r.shape.lanes
	name, inner := r.Name("r"), r.Name("u")
	each := &loop.For{Var: name, Start: from, End: to, Step: loop.Int(unroll * lanes), NoUnroll: r.rolled()}
	at := scalar.NewVar(name, each.Type(), 0, int64(n-1-(unroll-1)*lanes))
	if unroll > 1 {
		at = scalar.Add(at, scalar.Mul(scalar.NewVar(inner, ir.I32, 0, int64(unroll-1)), loop.Int(lanes)))
	}
	body := r.Nested(func() {
		for j := range r.each {
			element := at
			if r.each > 1 {
				element = scalar.Add(scalar.Mul(at, loop.Int(r.each)), loop.Int(j))
			}
			f(&chunk{-1, r.Unflatten(element, r.g.Inner), scalar.ConstBool(true)})
		}
	})
	var before []loop.Stmt
	if emit.WithMma && r.Caps.Dialect == dtype.CUDA {
		before, body = hoistChecks(r, body, name, inner)
	}
	if unroll > 1 {
		body = []loop.Stmt{&loop.For{Var: inner, Start: loop.Int(0), End: loop.Int(unroll), Step: loop.Int(1), Unroll: true, Body: body}}
	}
	each.Body = body
	r.Add(append(before, each)...)
}

// hoistChecks hoists loop-invariant index checks out of a loop over points, where the kernel
// does not write the index. Compilers leave a check in place and move no load across it.
func hoistChecks(r *rowEmitter, body []loop.Stmt, changing ...string) (before, rest []loop.Stmt) {
	loop.Walk(body, func(s loop.Stmt) { changing = append(append(changing, loop.Defines(s)...), loop.Assigns(s)...) })
	named := map[string]scalar.Expr{}
	take := func(n scalar.Expr) (scalar.Expr, bool) {
		if n.Op != scalar.OpCheck || !r.invariant(n, changing) {
			return nil, false
		}
		key := scalar.Key(n)
		if named[key] == nil {
			name := r.Name("checked")
			named[key] = scalar.FreeVar(name, n.Type)
			if lo, hi, ok := scalar.Range(n); ok {
				named[key] = scalar.NewVar(name, n.Type, lo, hi)
			}
			before = append(before, &loop.Let{Name: name, Value: n})
		}
		return named[key], true
	}
	for _, s := range body {
		if _, branch := s.(*loop.If); !branch {
			s = loop.MapExprs([]loop.Stmt{s}, func(x scalar.Expr) scalar.Expr { return scalar.Substitute(x, take) })[0]
		}
		rest = append(rest, s)
	}
	return before, rest
}

// invariant reports whether an expression is invariant in a loop that changes some variables.
func (r *rowEmitter) invariant(x scalar.Expr, changing []string) bool {
	same := true
	scalar.Walk(x, func(n scalar.Expr) {
		switch n.Op {
		case scalar.OpVar:
			same = same && !slices.Contains(changing, n.Name)
		case scalar.OpLoad:
			same = same && !emit.Writes(r.g, n.Ref)
		}
	})
	return same
}

// MaxUnroll is the maximum unroll factor of loops over inner points, and so the number of
// loads in flight.
const MaxUnroll = 4

// longRow is the number of unrolled iterations that pay for the code of a remainder loop.
const longRow = 8

// hasRemainder reports whether the loop is unrolled with a remainder loop. CUDA only: it is not
// measured in WGSL and MSL.
func hasRemainder(r *rowEmitter) bool {
	from, known := r.from.IntConst()
	return r.Caps.Dialect == dtype.CUDA && known && from == 0 && r.length == fusion.Product(r.g.Inner) &&
		r.length >= longRow*MaxUnroll*r.each*r.shape.lanes && (MaxUnroll+1)*r.each*r.g.Weight() <= maxUnrolledWeight
}

// rolledTerms is the length from which the loop of a thread that reduces a row alone must stay
// rolled, where the whole takes less than a launch: Mesa's CPU driver unrolls up to 32
// iterations, and its compile time grows with the square of the loads. On lavapipe a product of
// 24 terms takes 1.2 s of CPU time in 6 iterations of 4 unrolled terms, 0.15 s in a loop.
const rolledTerms = 12

// rolled reports whether a loop over the points of a thread must stay rolled.
func (r *rowEmitter) rolled() bool { return r.length > rolledTerms && r.brief() }

// brief reports whether threads reduce a row each, and all of them take less time than a launch.
func (r *rowEmitter) brief() bool { return r.shape.brief(r.g, r.length) }

// unrollFactor returns the largest unroll factor without a remainder in any thread of any
// workgroup. Devices in software have no loads in flight, and compile slowly.
func (r *rowEmitter) unrollFactor() int {
	if emit.CostlyBarriers(r.Caps) && r.brief() {
		return 1
	}
	unroll := MaxUnroll
	if r.shape.rowsFirst {
		unroll = columnUnroll(r.Emitter, r.g)
	}
	for ; unroll > 1; unroll /= 2 {
		if r.length%(unroll*r.each*r.shape.lanes) == 0 && unroll*r.each*r.g.Weight() <= maxUnrolledWeight {
			return unroll
		}
	}
	return 1
}

// byVectors reports whether vector loads are worth a try: rows longer than registers, of whole
// vectors: several for each thread, or the same number for all. CUDA only: WGSL has no vectors of 16-bit elements, which would
// gain most.
func byVectors(s rowLayout, g *fusion.Group, dialect dtype.Dialect) bool {
	n := fusion.Product(g.Inner)
	return dialect == dtype.CUDA && s.chunks == 0 && !s.rowsFirst && n%emit.VectorWidth == 0 && (n >= longRow*emit.VectorWidth*s.lanes || n%(emit.VectorWidth*s.lanes) == 0) &&
		emit.VectorWidth*g.Weight() <= maxUnrolledWeight
}

// keepsVectors reports whether the points that a thread keeps in registers may be vectors: rows of whole vectors for all threads,
// without checks of their ends. CUDA only, as byVectors.
func keepsVectors(s rowLayout, g *fusion.Group, e *emit.Emitter) bool {
	return e.Caps.Dialect == dtype.CUDA && s.chunks > 0 && s.chunks%emit.VectorWidth == 0 && s.chunks*s.lanes == fusion.Product(g.Inner) &&
		!s.rowsFirst && fusion.Product(g.Outer)%s.rows == 0 && !e.Overshoots()
}

// vectors vectorises the loops of a kernel, or reports false where an access is not contiguous:
// its elements would be loaded one by one, in four times as many sectors per warp.
func vectors(e *emit.Emitter, body []loop.Stmt) ([]loop.Stmt, bool) { return vectorsAlong(e, body, "") }

// vectorsAlong is vectors of the loops of a kernel and of what varies with a variable.
func vectorsAlong(e *emit.Emitter, body []loop.Stmt, name string) (out []loop.Stmt, ok bool) {
	m := emit.NewVectorizer(e)
	m.SeeBlock(body)
	m.Decide()
	if !m.AllWide(body, name) {
		return nil, false
	}
	return m.Block(body), true
}
