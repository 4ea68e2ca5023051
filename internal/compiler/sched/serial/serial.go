package serial

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// serial writes kernels for targets with one thread: a group is loop nests, the innermost over
// vector lanes where accesses are contiguous. It starts from the code of a group
// ([fusion.Code]), which has no threads.
type serial struct {
	e *emit.Emitter
	// bound holds the values of the variables of the group's code.
	bound map[string]scalar.Expr
	// kept holds the elements of the current row that are stored for reuse, by key.
	kept map[string]keptElement
	// stored is the condition under which there is something to store at a point.
	stored scalar.Expr
	form   int // of a contraction, see [fusion.Group.CodeOf]
	division
}

// Emit lowers a group for one thread.
func Emit(g *fusion.Group, caps loop.Caps) (launches []emit.Launch) {
	for form, to := g.Phases(); form < to; form++ {
		launches = append(launches, serialParts(g, g.HorizontalParts(), form, caps)...)
	}
	return launches
}

// writeSerial writes parts of a group, divided among workgroups.
func writeSerial(g *fusion.Group, parts []*fusion.Group, form int, shares int, caps loop.Caps) *serial {
	e := emit.New(g.Partition(), caps).WithThreads(1)
	s := &serial{e: e, form: form, division: division{e: e, shares: shares}}
	s.e.Groups = [3]int{1, 1, 1}
	for _, part := range parts {
		s.bound, s.kept, s.stored = map[string]scalar.Expr{}, nil, scalar.ConstBool(true)
		s.group(part)
	}
	return s
}

// maxParts is the maximum number of parts of a kernel: engines compile long functions slowly, and refuse
// those of over 7 MB, which hundreds of updates of small parameters are.
const maxParts = 128

// serialParts writes parts of a group, in one kernel if they are not too many and it can bind their
// tensors: the bindings of word-sized tensors are not limited, as they lie in one arena.
func serialParts(g *fusion.Group, parts []*fusion.Group, form int, caps loop.Caps) []emit.Launch {
	half := len(parts) / 2
	halves := func() []emit.Launch {
		return append(serialParts(g, parts[:half], form, caps), serialParts(g, parts[half:], form, caps)...)
	}
	if len(parts) > maxParts {
		return halves()
	}
	s := writeSerial(g, parts, form, 1, caps)
	if len(s.e.Body) == 0 {
		return nil
	}
	if shares := s.chooseShares(); shares > 1 {
		s = writeSerial(g, parts, form, shares, caps)
	}
	l := s.e.Launch(g.Name())
	if half == 0 || len(l.Args) <= caps.StorageBuffers || !slices.ContainsFunc(l.Args, noWords) {
		return []emit.Launch{l}
	}
	return halves()
}

func noWords(t *fusion.Tensor) bool { return t != nil && loop.DeviceSize(t.DType) != 4 }

func (s *serial) group(g *fusion.Group) {
	if fusion.Product(g.Outer) == 0 {
		return
	}
	switch g.Kind {
	case fusion.ReduceKind:
		code := g.Code()
		s.reduce(code, g.Rows().AreContiguous() || s.loadsAdjacent(code), fusion.Product(g.Inner), fusion.SumBlockLen)
	case fusion.ContractKind:
		s.contract(g)
	case fusion.PrefixKind:
		(&scanner{s, g.Prefix()}).write()
	case fusion.ScatterKind:
		s.outermost(func(bool) { s.scatter(g) }) // one update after the other
	default:
		code := g.Code()
		s.nest(code.Outer, storedBy(code.Rows), func() { s.storeAll(code.Rows) })
	}
}

// storedBy lists the expressions of stores.
func storedBy(stores []fusion.ElementStore) []scalar.Expr {
	var out []scalar.Expr
	for _, x := range stores {
		out = append(out, x.Offset, x.Value)
	}
	return out
}

// expr returns an expression of the group's code with its variables replaced.
func (s *serial) expr(e scalar.Expr) scalar.Expr {
	return s.e.Simplify(scalar.SubstituteVars(e, s.bound))
}

func (s *serial) exprs(list []scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(list))
	for i, e := range list {
		out[i] = s.expr(e)
	}
	return out
}

// bind binds variables to expressions.
func (s *serial) bind(vars, values []scalar.Expr) { BindAll(s.bound, vars, values) }

// define names the value of a binding of the code in the kernel.
func (s *serial) define(b scalar.Local) {
	s.bound[b.Var.Name] = s.e.Let("v", s.expr(b.Value))
}

// storeAll writes stores at one point. All values are computed before the first store.
func (s *serial) storeAll(stores []fusion.ElementStore) {
	s.e.When(s.expr(s.stored), func() {
		values := make([]scalar.Expr, len(stores))
		for i, x := range stores {
			values[i] = s.expr(x.Value)
		}
		s.e.Add(s.e.NameAll(values)...)
		for i, x := range stores {
			s.storeOne(x, values[i])
		}
	})
}

func (s *serial) storeOne(x fusion.ElementStore, value scalar.Expr) {
	store := &loop.Store{Array: x.Tensor.ID, At: s.expr(x.Offset), Value: value}
	if x.Guarded {
		s.e.Add(s.e.GuardStatus(x.Tensor, store)...)
		return
	}
	s.e.Add(store)
}

// nest writes a loop nest over the space of some coordinates, the innermost loop over vector
// lanes, with f as its body. list are expressions of the body: trailing coordinates are
// collapsed into one loop where that adds no division to them.
func (s *serial) nest(vars, list []scalar.Expr, f func()) {
	s.split(vars, list, func(outer, flat []scalar.Expr) {
		s.loops(outer, func() { s.collapsed(flat, true, f) })
	})
}

// split splits coordinates into those with loops of their own and those collapsed into one
// loop.
func (s *serial) split(vars, list []scalar.Expr, f func(outer, flat []scalar.Expr)) {
	n := len(vars) - s.collapsible(vars, list)
	f(vars[:n], vars[n:])
}

// loops writes a loop per coordinate.
func (s *serial) loops(vars []scalar.Expr, f func()) {
	if len(vars) == 0 {
		f()
		return
	}
	s.collapsed(vars[:1], false, func() { s.loops(vars[1:], f) })
}

// collapsed writes one loop over collapsed coordinates.
func (s *serial) collapsed(vars []scalar.Expr, lanes bool, f func()) {
	n := SizeOf(vars)
	r := upTo(n)
	r.lanes = lanes
	s.count("i", r, func(i scalar.Expr) {
		s.bind(vars, s.coordinates(i, vars))
		f()
	})
}

// iterations is the range of a loop's variable, which goes from from in steps while it is below to;
// last bounds it. The iterations over lanes are independent.
type iterations struct {
	from, to   scalar.Expr
	step, last int
	lanes      bool
}

// upTo returns n iterations from 0.
func upTo(n int) iterations { return below(loop.Int(n), n) }

// below returns the iterations from 0 to a computed end, which is at most bound.
func below(end scalar.Expr, bound int) iterations {
	return iterations{from: loop.Int(0), to: end, step: 1, last: bound - 1}
}

// overLanes returns the iterations as those over lanes.
func (r iterations) overLanes() iterations {
	r.lanes = true
	return r
}

// count writes a loop, or its body where it has one iteration.
func (s *serial) count(prefix string, r iterations, f func(i scalar.Expr)) {
	if start, ok := r.from.IntConst(); ok && r.last == int(start) && r.step == 1 {
		if end, known := r.to.IntConst(); known && end == start+1 {
			f(r.from)
			return
		}
	}
	s.outermost(func(divided bool) {
		if divided {
			n, _ := r.to.IntConst()
			share := s.share(int(n), r.multiple())
			r.from, r.to = share.from, share.to
		}
		s.e.Loop(prefix, r.from, r.to, r.step, r.last, f)
		s.e.Body[len(s.e.Body)-1].(*loop.For).Lanes = r.lanes
	})
}

// multiple is the granularity at which the iterations of a loop are divided.
func (r iterations) multiple() int {
	if r.lanes {
		return shareMultiple
	}
	return r.step
}

// coordinates returns the coordinates of point i of a space.
func (s *serial) coordinates(i scalar.Expr, vars []scalar.Expr) ir.Index {
	return s.e.Unflatten(i, SizesOf(vars))
}

// SizesOf returns the extents of coordinates; a constant has extent 1.
func SizesOf(vars []scalar.Expr) []int {
	out := make([]int, len(vars))
	for i, v := range vars {
		out[i] = 1
		if v.Op == scalar.OpVar {
			out[i] = int(v.Hi) + 1
		}
	}
	return out
}

// SizeOf returns the number of points of coordinates, see [SizesOf].
func SizeOf(vars []scalar.Expr) int { return fusion.Product(SizesOf(vars)) }

// collapsible returns the number of trailing coordinates that can be collapsed into one loop
// without additional divisions.
func (s *serial) collapsible(vars, list []scalar.Expr) int {
	fewest := s.divisions(nil, list)
	for n := len(vars); n > 1; n-- {
		if s.divisions(vars[len(vars)-n:], list) <= fewest {
			return n
		}
	}
	return min(1, len(vars))
}

// divisions counts the integer divisions in expressions when vars are collapsed into one
// variable.
func (s *serial) divisions(vars, list []scalar.Expr) int {
	bound := map[string]scalar.Expr{}
	i := scalar.NewVar("flat", ir.I32, 0, int64(max(SizeOf(vars)-1, 0)))
	for k, x := range s.coordinates(i, vars) {
		if vars[k].Op == scalar.OpVar {
			bound[vars[k].Name] = x
		}
	}
	n := 0
	for _, e := range list {
		scalar.Walk(s.e.Simplify(scalar.SubstituteVars(e, bound)), func(x scalar.Expr) {
			switch x.Op {
			case scalar.OpDiv, scalar.OpRem, scalar.OpFloorDiv, scalar.OpMod:
				if x.Type.IsInteger() {
					n++
				}
			}
		})
	}
	return n
}

// BindAll binds variables to values.
func BindAll(bound map[string]scalar.Expr, vars, values []scalar.Expr) {
	for i, v := range vars {
		if v.Op == scalar.OpVar {
			bound[v.Name] = values[i]
		}
	}
}

// Long kernels of one thread are divided into several workgroups, which engines with threads
// run in parallel.
const (
	// maxShares is the maximum number of workgroups: web pages get few processors.
	maxShares = 8
	// shareMultiple is the granularity of a share of a loop over lanes: whole vectors, and
	// whole cache lines.
	shareMultiple = 16
)

// division is the division of a kernel: along its outermost loop, if there is only one.
type division struct {
	e       *emit.Emitter
	shares  int // 1: not divided
	depth   int // nesting depth of the loops being written
	regions int // outermost regions so far
	begin   int // the last region's first statement
	end     int
}

// outermost writes, by f, a region that may be divided if it is not nested in another; divided
// reports whether it is.
func (d *division) outermost(f func(divided bool)) {
	if d.depth == 0 {
		d.regions++
		d.begin = len(d.e.Body)
		defer func() { d.end = len(d.e.Body) }()
	}
	d.depth++
	f(d.depth == 1 && d.shares > 1)
	d.depth--
}

// interval is a range of iterations.
type interval struct{ from, to scalar.Expr }

// share returns the workgroup's part of [0, n), in multiples of step.
func (d *division) share(n, step int) interval {
	size := roundUp(emit.CeilDiv(n, d.shares), step)
	return d.portion(d.e.LinearGroup(emit.CeilDiv(n, size)), n, size)
}

// portion returns part i of [0, n), split into parts of a size.
func (d *division) portion(i scalar.Expr, n, size int) interval {
	if size >= n {
		return interval{loop.Int(0), loop.Int(n)}
	}
	from := d.e.Let("from", scalar.Mul(i, loop.Int(size)))
	return interval{from, d.e.Let("to", scalar.Min(loop.Int(n), scalar.Add(from, loop.Int(size))))}
}

// chooseShares returns the number of workgroups that the cost of the written statements justifies, 1 if they
// cannot be divided.
func (d *division) chooseShares() int {
	isLet := func(x loop.Stmt) bool { _, ok := x.(*loop.Let); return ok }
	outside := slices.Concat(d.e.Body[:d.begin], d.e.Body[d.end:])
	if d.e.Caps.ShareOps == 0 || d.regions != 1 || slices.ContainsFunc(outside, func(x loop.Stmt) bool { return !isLet(x) }) || hasChecks(d.e.Body) {
		return 1
	}
	return int(max(1, min(maxShares, operations(d.e.Body)/float64(d.e.Caps.ShareOps))))
}

// hasChecks reports whether statements check indices: the report of the first bad index takes
// several words.
func hasChecks(body []loop.Stmt) bool {
	found := false
	check := func(x scalar.Expr) bool { return x.Op == scalar.OpCheck }
	loop.Walk(body, func(s loop.Stmt) { found = found || loop.AnyNode(s, check) })
	return found
}

// operations estimates the cost of statements in operations.
func operations(body []loop.Stmt) float64 {
	n := 0.
	for _, s := range body {
		loop.EachExpr(s, func(e scalar.Expr) { n += float64(scalar.Count(e)) })
		switch s := s.(type) {
		case *loop.For:
			n += tripCount(s) * operations(s.Body)
		case *loop.If:
			n += operations(s.Then) + operations(s.Else)
		}
	}
	return n
}

// tripCount returns the maximum number of iterations of a loop.
func tripCount(s *loop.For) float64 {
	lo, _, _ := scalar.Range(s.Start)
	_, hi, _ := scalar.Range(s.End)
	step, _ := s.Step.IntConst()
	return float64(hi-lo) / float64(max(step, 1))
}
