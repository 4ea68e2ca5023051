package persistent

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/serial"
	"github.com/rlx-go/rlx/internal/format"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds of loops that run as one persistent kernel. A step of a workgroup must take no more
// cycles than a launch of each group on the whole device, 2 to 3 µs each. Points and elements
// of sums take the cycles below per thread; a multiprocessor gets some 64 bytes per cycle from
// the shared cache, from which it reads all weights in each step. The whole must end before the
// device's watchdog fires.
const (
	launchCycles     = 4096
	pointCycles      = 64
	elementCycles    = 6
	barrierCycles    = 128
	elementsPerCycle = 16      // elements of sums that a multiprocessor loads per cycle, two operands each
	maxCycles        = 1 << 27 // of all steps: 75 ms or so
	maxStepElements  = 1 << 17 // elements per step of one row
	minLoopSteps     = 4       // the minimum number of steps
)

// persistent is a loop whose iterations all run in one kernel. Each row of its values belongs
// to a workgroup, which keeps its carries and the values between the groups of the body in
// workgroup memory, so that a step waits for barriers only.
type persistent struct {
	*emit.Emitter
	l       *fusion.Loop
	caps    loop.Caps
	rows    int
	row     scalar.Expr       // of the workgroup
	count   string            // the body's loop counter
	stages  [][]*rowPart      // the parts of each group, with a barrier after each
	parts   []*rowPart        // of all stages
	kept    map[int]*keptRows // by tensor ID
	order   []*keptRows
	written map[int]*fusion.Tensor // tensors that the body stores, by ID
	stacked map[int]bool           // whether each step stores a slice of it
	step    int                    // elements per step of a row
	bytes   int                    // size of kept rows
}

// Emit returns the launch of a kernel that runs all iterations of a loop, after launches
// that pack its weights. It reports false where the rows of the loop's values are not
// independent, or too large. A compiler bug is returned as an error.
func Emit(l *fusion.Loop, caps loop.Caps) (out []emit.Launch, ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = format.Errorf("sched: cannot make a kernel of a loop, %s: %v", l.Node.Op(), r)
		}
	}()
	if l.Count < minLoopSteps || caps.Invocations < emit.GroupThreads {
		return out, false, nil
	}
	for _, rows := range []int{rowsOf(l), 1} {
		p := &persistent{l: l, caps: caps, rows: rows, kept: map[int]*keptRows{}, written: map[int]*fusion.Tensor{}, stacked: map[int]bool{}}
		p.count = loop.Counter(l.Body.Depth() - 1).Name
		if rows > 0 && p.plan() && p.pays() && p.bytes <= caps.SharedBytes {
			out = p.pack()
			last := p.write()
			return append(out, last), len(last.Args) <= caps.Tensors(), nil
		}
	}
	return out, false, nil
}

// rowsOf returns the number of rows of a loop's values: the first coordinate of its groups, 0
// where they have none in common.
func rowsOf(l *fusion.Loop) int {
	rows := 0
	for _, item := range l.Body.Items {
		g, ok := item.(*fusion.Group)
		if !ok {
			return 0
		}
		for _, part := range g.HorizontalParts() {
			if len(part.Outer) == 0 || rows > 0 && part.Outer[0] != rows {
				return 0
			}
			rows = part.Outer[0]
		}
	}
	return rows
}

// plan lowers the groups of the body and checks that their rows are independent.
func (p *persistent) plan() bool {
	for _, item := range p.l.Body.Items {
		g, ok := item.(*fusion.Group)
		if !ok || g.Long() { // indices of workgroup memory are I32
			return false
		}
		var parts []*rowPart
		for _, part := range g.HorizontalParts() {
			x, ok := p.newRowPart(part)
			if !ok {
				return false
			}
			parts = append(parts, x)
			p.step += x.points * x.each
			for _, s := range x.code.Rows {
				p.written[s.Tensor.ID] = s.Tensor
				p.stacked[s.Tensor.ID] = p.stacked[s.Tensor.ID] || mentions(s.Offset, p.count)
			}
		}
		p.stages, p.parts = append(p.stages, parts), append(p.parts, parts...)
	}
	return p.keepCarries() && p.keepRest() && !slices.ContainsFunc(p.parts, func(x *rowPart) bool { return !p.inRows(x) })
}

// pays reports whether one workgroup per row is as fast as launches of all groups in each step.
func (p *persistent) pays() bool {
	threads, cycles := p.workgroupSize(), barrierCycles*len(p.stages)
	for _, x := range p.parts {
		cycles += emit.CeilDiv(x.points, threads) * (pointCycles + x.each*elementCycles)
	}
	return cycles <= launchCycles*len(p.stages) && cycles <= maxCycles/p.l.Count && p.step <= maxStepElements && p.spares()
}

// spares reports whether the multiprocessors take less time to load the elements of a step than for launches. Where a launch
// takes longer, as in WebGPU, more rows pay.
func (p *persistent) spares() bool {
	if !emit.WithMma || p.caps.Dialect != dtype.CUDA {
		return true
	}
	return int64(p.rows)*int64(p.step) <= launchCycles*int64(len(p.stages))*elementsPerCycle*int64(p.caps.Profile().Processors)
}

// workgroupSize returns the workgroup size that leaves the fewest threads idle in the last pass
// over the points of a row.
func (p *persistent) workgroupSize() int {
	points := 1
	for _, x := range p.parts {
		points = max(points, x.points)
	}
	passes := emit.CeilDiv(points, emit.GroupThreads)
	return max(32, emit.CeilDiv(emit.CeilDiv(points, passes), 32)*32)
}

// write writes the kernel.
func (p *persistent) write() emit.Launch {
	p.Emitter = emit.New(p.l.Body, p.caps).WithThreads(p.workgroupSize())
	row, exists := p.BoundedGroup(p.rows)
	p.row = row
	for _, k := range p.order {
		k.slot = p.Shared(p.Name("kept"), k.dtype, 1, k.length)
	}
	p.each(func(k *keptRows) bool { return k.from != nil }, func(k *keptRows, i, at scalar.Expr) {
		p.Put(k.slot, i, scalar.LoadAt(k.from.ID, k.dtype, p.Simplify(at)))
	})
	p.Barrier()
	p.Times("round", p.l.Count, func(round scalar.Expr) { p.writeStep(round, exists) })
	p.each(func(k *keptRows) bool { return k.to != nil }, func(k *keptRows, i, at scalar.Expr) {
		p.When(exists, func() {
			p.Add(&loop.Store{Array: k.to.ID, At: p.Simplify(at), Value: scalar.LoadAt(k.slot, k.dtype, i)})
		})
	})
	return p.Launch("loop_" + p.l.Body.Items[0].(*fusion.Group).Name())
}

// writeStep writes a step: its groups in order, then the update of the carries.
func (p *persistent) writeStep(round, exists scalar.Expr) {
	for _, parts := range p.stages {
		for _, x := range parts {
			p.writePoints(x, round, exists)
		}
		p.Barrier()
	}
	if len(p.l.Swaps) == 0 {
		return
	}
	p.each(func(k *keptRows) bool { return k.next != nil }, func(k *keptRows, i, _ scalar.Expr) {
		p.Put(k.slot, i, scalar.LoadAt(k.next.slot, k.dtype, i))
	})
	p.Barrier()
}

// keptRows is the row of a tensor that a workgroup keeps in workgroup memory.
type keptRows struct {
	slot, length int
	dtype        ir.DType
	// from and to hold a carry before the first and after the last step, next its next value:
	// nil for tensors that are no carry, or updated in place.
	from, to *fusion.Tensor
	next     *keptRows
}

// keepCarries allocates workgroup memory for the carries.
func (p *persistent) keepCarries() bool {
	for _, swap := range p.l.Swaps {
		begin, other := swap[0].Root(), swap[1].Root()
		old, next := p.keep(begin), p.keep(other)
		if old == nil || next == nil || swap[0].IsSlice() || swap[1].IsSlice() {
			return false
		}
		old.from, old.to, old.next = begin, begin, next
		if p.l.Count%2 == 1 {
			old.to = other
		}
	}
	for _, t := range p.l.Writes() { // carries updated in place
		root := t.Root()
		if p.written[root.ID] == nil || p.kept[root.ID] != nil || p.stacked[root.ID] {
			continue
		}
		k := p.keep(root)
		if k == nil || t.IsSlice() {
			return false
		}
		k.from, k.to = root, root
	}
	return true
}

// keepRest allocates workgroup memory for values within a step.
func (p *persistent) keepRest() bool {
	for _, x := range p.parts {
		for _, s := range x.code.Rows {
			if p.kept[s.Tensor.ID] != nil || p.stacked[s.Tensor.ID] {
				continue
			}
			if !slices.Contains(p.l.Body.Tensors, s.Tensor) || p.keep(s.Tensor) == nil {
				return false
			}
		}
	}
	return true
}

// keep allocates workgroup memory for the rows of a tensor; nil where that is impossible.
func (p *persistent) keep(t *fusion.Tensor) *keptRows {
	if t.Len() == 0 || t.Len()%p.rows != 0 || !emit.StoresAlone(p.caps, t.DType) || p.kept[t.ID] != nil {
		return nil
	}
	k := &keptRows{length: t.Len() / p.rows, dtype: t.DType}
	p.bytes += k.length * t.DType.Size()
	p.kept[t.ID] = k
	p.order = append(p.order, k)
	return k
}

func mentions(e scalar.Expr, name string) bool {
	return scalar.Any(e, func(n scalar.Expr) bool { return n.Op == scalar.OpVar && n.Name == name })
}

// each writes f for the elements of some kept rows: their index there and in the whole tensor.
func (p *persistent) each(which func(k *keptRows) bool, f func(k *keptRows, i, at scalar.Expr)) {
	threads := p.Workgroup[0]
	for _, k := range p.order {
		if which(k) {
			p.Loop("i", loop.LocalID(0, threads), loop.Int(k.length), threads, k.length-1, func(i scalar.Expr) {
				f(k, i, scalar.Add(scalar.Mul(p.row, loop.Int(k.length)), i))
			})
		}
	}
}

// rowPart is a group of the body of a persistent loop.
type rowPart struct {
	g    *fusion.Group
	code *fusion.Code
	row  scalar.Expr // the row coordinate; nil if there is one row
	rest []scalar.Expr
	// points is the number of points per row, each the number of elements reduced per point.
	points, each int
	// packed holds the operands of sums packed in the order of access, see pack.
	packed map[scalar.Expr]*fusion.Tensor
}

// newRowPart lowers a group, or reports false where it is not computed point by point.
func (p *persistent) newRowPart(g *fusion.Group) (*rowPart, bool) {
	switch g.Kind {
	case fusion.ContractKind:
		g = g.Reduction()
	case fusion.MapKind, fusion.ReduceKind:
	default:
		return nil, false
	}
	x := &rowPart{g: g, code: g.Code()}
	x.rest = x.code.Outer
	if p.rows > 1 {
		x.row, x.rest = x.code.Outer[0], x.code.Outer[1:]
	}
	x.points, x.each = serial.SizeOf(x.rest), max(1, serial.SizeOf(x.code.Inner))
	if len(x.code.Points) > 0 || serial.SizeOf(x.code.Inner) == 0 {
		return nil, false
	}
	for _, s := range x.code.Rows {
		if s.Guarded || !emit.StoresAlone(p.caps, s.Tensor.DType) {
			return nil, false
		}
	}
	return x, true
}

// exprs returns all expressions of the part.
func (x *rowPart) exprs() []scalar.Expr {
	var out []scalar.Expr
	for _, s := range x.code.Stages {
		for _, b := range s.Lets {
			out = append(out, b.Value)
		}
		for _, r := range s.Reductions {
			out = append(out, r.Elements...)
			for _, b := range r.Results {
				out = append(out, b.Value)
			}
		}
	}
	for _, s := range x.code.Rows {
		out = append(out, s.Value)
	}
	return out
}

// inRows reports whether a part accesses only rows of its own number of what the loop writes,
// and checks no index.
func (p *persistent) inRows(x *rowPart) bool {
	isCheck := func(n scalar.Expr) bool { return n.Op == scalar.OpCheck }
	if slices.ContainsFunc(x.exprs(), func(e scalar.Expr) bool { return scalar.Any(e, isCheck) }) {
		return false
	}
	return x.row == nil || x.g.Rows().AreIndependent(func(t *fusion.Tensor) bool { return p.written[t.ID] != nil || p.kept[t.ID] != nil })
}

// writePoints writes the work of a workgroup for a part: a point per thread at a time.
func (p *persistent) writePoints(x *rowPart, round, exists scalar.Expr) {
	threads := p.Workgroup[0]
	p.Loop("point", loop.LocalID(0, threads), loop.Int(x.points), threads, x.points-1, func(point scalar.Expr) {
		e := &rowPoint{p: p, part: x, point: point, bound: map[string]scalar.Expr{p.count: round}}
		if x.row != nil {
			e.bound[x.row.Name] = p.row
		}
		e.bind(x.rest, p.Unflatten(point, serial.SizesOf(x.rest)))
		for _, s := range x.code.Stages {
			for _, b := range s.Lets {
				e.bound[b.Var.Name] = p.Let("v", e.expr(b.Value))
			}
			for _, r := range s.Reductions {
				e.reduce(r, x.code.Inner)
			}
		}
		e.store(x, exists)
	})
}

// rowPoint writes one point of a part.
type rowPoint struct {
	p              *persistent
	bound          map[string]scalar.Expr // values of the code's variables
	part           *rowPart
	point, element scalar.Expr // the index of the point and of the element of a sum
}

func (e *rowPoint) bind(vars, values []scalar.Expr) { serial.BindAll(e.bound, vars, values) }

// expr returns an expression of the code in the kernel's variables, with kept rows in workgroup
// memory.
func (e *rowPoint) expr(x scalar.Expr) scalar.Expr {
	return e.p.Simplify(scalar.Substitute(x, func(n scalar.Expr) (scalar.Expr, bool) {
		switch n.Op {
		case scalar.OpVar:
			v, ok := e.bound[n.Name]
			return v, ok
		case scalar.OpLoad:
			if k := e.p.kept[n.Ref]; k != nil {
				return scalar.LoadAt(k.slot, n.Type, e.place(k, n.Args[0])), true
			}
			if t := e.part.packed[n]; t != nil {
				at := scalar.Add(scalar.Mul(e.element, loop.Int(e.part.points)), e.point)
				return scalar.LoadAt(t.ID, n.Type, e.p.Simplify(at)), true
			}
		}
		return nil, false
	}))
}

// place returns the index of a tensor's element in its kept row.
func (e *rowPoint) place(k *keptRows, at scalar.Expr) scalar.Expr {
	return e.p.Simplify(scalar.Sub(e.expr(at), scalar.Mul(e.p.row, loop.Int(k.length))))
}

// reduce writes the loop of a reduction at the point, unrolled to keep several loads in flight.
func (e *rowPoint) reduce(r fusion.Reduction, inner []scalar.Expr) {
	running := make([]scalar.Expr, len(r.Running))
	for i, a := range r.Accumulators {
		running[i] = e.p.Var("running", e.expr(a.Init))
	}
	n, at := serial.SizeOf(inner), 8
	for n%at != 0 {
		at /= 2
	}
	e.p.Loop("r", loop.Int(0), loop.Int(n), at, n-at, func(first scalar.Expr) {
		elements := make([][]scalar.Expr, at)
		for i := range elements {
			e.element = e.p.Simplify(scalar.Add(first, loop.Int(i)))
			e.bind(inner, e.p.Unflatten(e.element, serial.SizesOf(inner)))
			for _, x := range r.Elements {
				elements[i] = append(elements[i], e.p.Let("element", e.expr(x)))
			}
		}
		for _, x := range elements {
			e.p.SetAll(running, r.Combine(running, x))
		}
	})
	e.bind(r.Running, running)
	for _, b := range r.Results {
		e.bound[b.Var.Name] = e.p.Let("v", e.expr(b.Value))
	}
}

// store writes the stores of the point.
func (e *rowPoint) store(x *rowPart, exists scalar.Expr) {
	values := make([]scalar.Expr, len(x.code.Rows))
	for i, s := range x.code.Rows {
		values[i] = e.expr(s.Value)
	}
	e.p.Add(e.p.NameAll(values)...)
	for i, s := range x.code.Rows {
		if k := e.p.kept[s.Tensor.ID]; k != nil {
			e.p.Put(k.slot, e.place(k, s.Offset), values[i])
			continue
		}
		e.p.When(exists, func() {
			e.p.Add(&loop.Store{Array: s.Tensor.ID, At: e.expr(s.Offset), Value: values[i]})
		})
	}
}

// pack returns launches that pack, before the loop, what sums load in each step in the order in
// which the threads read it: neighbouring threads have neighbouring points. It packs loads that
// would not be coalesced, such as the transposed weights of a backward step.
func (p *persistent) pack() []emit.Launch {
	var out []emit.Launch
	for _, x := range p.parts {
		x.packed = map[scalar.Expr]*fusion.Tensor{}
		for _, load := range p.uncoalesced(x) {
			if x.packed[load] != nil {
				continue
			}
			t := p.l.Body.Scratch("packed", load.Type, x.each, x.points)
			x.packed[load] = t
			w := emit.New(p.l.Body, p.caps).WithThreads(emit.GroupThreads)
			w.Threads(t.Len(), func(i scalar.Expr) {
				at := w.Unflatten(i, t.Dims)
				bound := map[string]scalar.Expr{}
				serial.BindAll(bound, x.code.Inner, w.Unflatten(at[0], serial.SizesOf(x.code.Inner)))
				serial.BindAll(bound, x.rest, w.Unflatten(at[1], serial.SizesOf(x.rest)))
				w.Save(t, at, scalar.LoadAt(load.Ref, load.Type, w.Simplify(scalar.SubstituteVars(load.Args[0], bound))))
			})
			out = append(out, w.Launch("pack_"+x.g.Name()))
		}
	}
	return out
}

// uncoalesced returns the loads of a part's sums that are invariant over steps and rows, and
// not contiguous across neighbouring points.
func (p *persistent) uncoalesced(x *rowPart) []scalar.Expr {
	var out []scalar.Expr
	if len(x.rest) == 0 || x.each == 1 {
		return nil
	}
	last := x.rest[len(x.rest)-1]
	for _, s := range x.code.Stages {
		for _, r := range s.Reductions {
			for _, e := range r.Elements {
				scalar.Walk(e, func(n scalar.Expr) {
					if n.Op == scalar.OpLoad && p.written[n.Ref] == nil && p.kept[n.Ref] == nil && p.invariant(x, n.Args[0]) && !contiguousIn(n.Args[0], last) {
						out = append(out, n)
					}
				})
			}
		}
	}
	return out
}

// invariant reports whether an expression in a part's coordinates is the same in all steps and
// rows.
func (p *persistent) invariant(x *rowPart, e scalar.Expr) bool {
	known := map[string]bool{}
	for _, v := range append(append([]scalar.Expr{}, x.rest...), x.code.Inner...) {
		known[v.Name] = true
	}
	ok := true
	scalar.Walk(e, func(n scalar.Expr) {
		counter, number := loop.BuiltinOf(n.Name)
		outer := counter == loop.BuiltinCounter && number < p.l.Body.Depth()-1
		ok = ok && n.Op != scalar.OpLoad && (n.Op != scalar.OpVar || known[n.Name] || outer)
	})
	return ok
}

// contiguousIn reports whether an index has stride 0 or 1 in a variable.
func contiguousIn(at, v scalar.Expr) bool {
	if v.Op != scalar.OpVar || v.Hi == 0 {
		return true
	}
	s := scalar.NewSimplifier()
	here := scalar.NewVar(v.Name, ir.I32, 0, v.Hi-1)
	step := s.Simplify(scalar.Sub(
		scalar.SubstituteVars(at, map[string]scalar.Expr{v.Name: scalar.Add(here, loop.Int(1))}),
		scalar.SubstituteVars(at, map[string]scalar.Expr{v.Name: here}),
	))
	n, known := step.IntConst()
	return known && (n == 0 || n == 1)
}
