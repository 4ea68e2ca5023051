package cpu

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// makeNest compiles the code of a map or a reduction. It builds a nest for every way to
// vectorise it and returns the cheapest.
func makeNest(name string, c *fusion.Code, outer, inner []int, buffers map[int]*buffer) (*nest, error) {
	var tries []blocking
	for _, w := range blockWidths(outer) {
		// Calls for long sums cost little, and lanes of several rows are gathered: two vectors of a row are enough.
		if w > 1 && product(inner) > maxWindow && product(outer[len(outer)-w+1:]) >= 2*jit.Width() {
			break
		}
		tries = append(tries, blocking{false, w})
	}
	if len(inner) > 0 {
		for _, w := range blockWidths(inner) {
			tries = append(tries, blocking{true, w})
		}
	}
	var best *nest
	for _, b := range tries {
		n, err := buildNest(name, c, outer, inner, b, buffers)
		if err != nil {
			return nil, err
		}
		if best == nil || n.cost < best.cost {
			best = n
		}
	}
	return best, nil
}

// dropInnerWork removes the inner points where there are none: accumulators keep their initial values, which are
// then values of the outer point.
func dropInnerWork(c *fusion.Code) {
	for i := range c.Stages {
		s := &c.Stages[i]
		for _, r := range s.Reductions {
			for k, a := range r.Accumulators {
				s.Lets = append(s.Lets, scalar.Local{Var: r.Running[k], Value: a.Init})
			}
			s.Lets = append(s.Lets, r.Results...)
		}
		s.Reductions = nil
	}
	c.Inner, c.Points = nil, nil
}

func buildNest(name string, c *fusion.Code, outer, inner []int, b blocking, buffers map[int]*buffer) (*nest, error) {
	rows := points{c.Outer, outer}
	if b.inner && product(inner) >= jit.Width() {
		rows = rows.longLast()
	}
	m := newNestBuilder(name, rows, points{c.Inner, inner}, b, buffers)
	for _, s := range c.Stages {
		m.lets(s.Lets)
		m.reductions(s.Reductions)
	}
	m.stores(c.Rows)
	if len(c.Points) > 0 {
		m.enterLoop()
		m.stores(c.Points)
	}
	m.n.cost = m.n.estimate()
	return m.n, m.err
}

// lets binds the names of values of the outer point.
func (m *nestBuilder) lets(list []scalar.Local) {
	for _, b := range list {
		v := m.expr(b.Value)
		v.level = max(v.level, perBlock)
		m.named[b.Var.Name] = v
	}
}

// reductions compiles one loop over the inner points for all reductions, and binds their
// results in the next phase.
func (m *nestBuilder) reductions(list []fusion.Reduction) {
	if len(list) == 0 {
		return
	}
	m.enterLoop()
	for _, r := range list {
		m.reduction(r)
	}
	m.nextPhase()
	for _, r := range list {
		m.lets(r.Results)
	}
}

func (m *nestBuilder) reduction(r fusion.Reduction) {
	c := &laneMerge{}
	accs, others := make([]scalar.Expr, len(r.Elements)), make([]scalar.Expr, len(r.Elements))
	for i, a := range r.Accumulators {
		init, err := constantValue(a.Init)
		if err != nil && m.err == nil {
			m.err = err
		}
		class := classOf(a.DType)
		acc, other := m.n.sizes.add(class, m.width()), m.n.sizes.add(class, m.width())
		m.p.accumulators = append(m.p.accumulators, accumulator{acc, init})
		c.acc, c.other = append(c.acc, acc), append(c.other, other)
		accs[i], others[i] = r.Running[i], scalar.FreeVar(r.Running[i].Name+"_other", a.DType)
		m.named[accs[i].Name] = value{reg: acc, level: perElement, wide: true}
		m.named[others[i].Name] = value{reg: other, level: perElement, wide: true}
	}
	m.moveAll(c.acc, r.Combine(accs, r.Elements))
	if m.n.wideInner {
		m.invalidate(accs) // the last element's values of them are stale
		c.code = m.capture(func() { m.moveAll(c.acc, r.Combine(accs, others)) })
		m.p.merges = append(m.p.merges, c)
	}
	if r.Sums() && m.n.inner.points() > fusion.SumBlockLen {
		for i := range accs {
			m.compensate(accs[i], c.acc[i])
		}
	}
	for i := range accs {
		m.named[accs[i].Name] = value{reg: c.acc[i], level: perBlock, wide: !m.n.wideInner}
	}
}

// capture returns the code that f adds at level perElement.
func (m *nestBuilder) capture(f func()) []instr {
	before := m.p.element
	m.p.element = nil
	f()
	code := m.p.element
	m.p.element = before
	return code
}

// stores computes all values before it stores any.
func (m *nestBuilder) stores(list []fusion.ElementStore) {
	values := make([]takenValue, len(list))
	for i, s := range list {
		values[i] = m.takes(s)
	}
	for i, s := range list {
		m.store(s, values[i])
	}
}

// nestBuilder compiles the scalar expressions of a group to the instructions of a nest. It
// hoists each instruction to the lowest [level] that its operands allow, and emits equal
// instructions once.
type nestBuilder struct {
	n       *nest
	buffers map[int]*buffer // by the ID of the tensor
	named   map[string]value
	made    map[scalar.Expr]value
	same    map[signature]value
	coords  map[string]*axis
	p       *phase
	loop    int // number of the current loop over inner points, 0 outside
	loops   int
	err     error
}

// blocking describes how a nest is vectorised: over the last wide coordinates of the inner or the
// outer space.
type blocking struct {
	inner bool
	wide  int
}

// newNestBuilder starts a nest over outer and inner points.
func newNestBuilder(name string, outer, inner points, b blocking, buffers map[int]*buffer) *nestBuilder {
	n := &nest{name: name, wideInner: b.inner}
	if b.inner {
		n.outer, n.inner = newSpace(outer, 0), newSpace(inner, b.wide)
	} else {
		n.outer, n.inner = newSpace(outer, b.wide), newSpace(inner, 0)
	}
	m := &nestBuilder{
		n: n, buffers: buffers,
		named: map[string]value{}, made: map[scalar.Expr]value{}, same: map[signature]value{}, coords: map[string]*axis{},
	}
	m.place(&n.outer, perRow, perBlock)
	m.place(&n.inner, perInner, perElement)
	m.nextPhase()
	return m
}

// place assigns registers to the coordinates of a space.
func (m *nestBuilder) place(s *space, scalar, wide level) {
	s.start = m.n.sizes.add(s.startClass(), 1)
	for i := range s.vars {
		a := &s.vars[i]
		m.coords[a.name] = a
		if i < len(s.vars)-s.wide {
			a.reg = m.n.sizes.add(a.class(), 1)
			m.named[a.name] = value{reg: a.reg, level: scalar}
			continue
		}
		a.reg = m.n.sizes.add(a.class(), s.coordinateLanes())
		m.named[a.name] = value{reg: a.reg, level: wide, wide: true}
	}
}

// width returns the number of lanes of a wide register.
func (m *nestBuilder) width() int {
	if m.n.wideInner {
		return m.n.inner.lanes()
	}
	return m.n.outer.lanes()
}

func (m *nestBuilder) nextPhase() {
	m.p = &phase{maxPoints: blockLanes}
	m.n.phases = append(m.n.phases, m.p)
	m.loop = 0
}

// enterLoop starts the phase's loop over the inner points: later code is part of it.
func (m *nestBuilder) enterLoop() {
	m.loops++
	m.loop = m.loops
	m.p.loop = true
}

func (m *nestBuilder) fail(format string, args ...any) {
	if m.err == nil {
		m.err = ir.Errorf(ir.ErrUnsupported, "%s: %s", m.n.name, fmt.Sprintf(format, args...))
	}
}

// emit appends an instruction to the code of a level.
func (m *nestBuilder) emit(at level, in instr) {
	switch at {
	case atStart:
		m.n.starts = append(m.n.starts, in)
	case perRun:
		m.n.runs = append(m.n.runs, in)
	case perRow:
		m.n.rows = append(m.n.rows, in)
	case perBlock:
		m.p.block = append(m.p.block, in)
	case perInner:
		m.p.inner = append(m.p.inner, in)
	default:
		m.p.element = append(m.p.element, in)
	}
}

// expr compiles an expression and returns its value.
func (m *nestBuilder) expr(e scalar.Expr) value {
	if v, ok := m.made[e]; ok && m.fresh(v) {
		return v
	}
	v := m.node(e)
	m.made[e] = v
	return v
}

// fresh reports whether a value computed earlier is available here: those of another loop over
// the inner points are not.
func (m *nestBuilder) fresh(v value) bool { return v.level < perInner || v.loop == m.loop }

func (m *nestBuilder) node(e scalar.Expr) value {
	switch e.Op {
	case scalar.OpConst:
		return m.emitOnce(signature{op: e.Op, dtype: e.Type, bits: e.Bits}, instr{kind: opConst, node: e}, e.Type, atStart, false)
	case scalar.OpVar:
		return m.variable(e)
	case scalar.OpLoad:
		return m.load(e)
	case scalar.OpReal, scalar.OpImag:
		if e.Args[0].Op == scalar.OpLoad {
			if v, ok := m.loadPart(e); ok {
				return v
			}
		}
	case scalar.OpCheck:
		x, cond := m.expr(e.Args[0]), m.expr(e.Args[1])
		m.check(e, cond)
		return x
	case scalar.OpFloorDiv, scalar.OpMod:
		return m.expr(scalar.ExpandFloorDiv(e))
	case scalar.OpSelect:
		if c := e.Args[0]; e.Type.IsBool() { // in operations that kernels have
			return m.expr(scalar.Or(scalar.And(c, e.Args[1]), scalar.And(scalar.Not(c), e.Args[2])))
		}
	case scalar.OpClamp:
		return m.expr(scalar.Min(scalar.Max(e.Args[0], e.Args[1]), e.Args[2]))
	case scalar.OpMakeComplex:
		if _, ok := e.Value(); ok {
			return m.emitOnce(signature{op: scalar.OpConst, dtype: e.Type, bits: e.Args[0].Bits, name: fmt.Sprint(e.Args[1].Bits)}, instr{kind: opConst, node: e}, e.Type, atStart, false)
		}
	}
	return m.apply(e)
}

// emitOnce emits an instruction unless an equal one is available.
func (m *nestBuilder) emitOnce(s signature, in instr, d ir.DType, at level, wide bool) value {
	if v, ok := m.same[s]; ok && m.fresh(v) {
		return v
	}
	in.scalar = !wide
	width := 1
	if wide {
		width = m.width()
		if at == perInner { // lanes are outer points, and all need it
			at = perElement
		}
	}
	in.dst = m.n.sizes.add(classOf(d), width)
	m.emit(at, in)
	v := value{reg: in.dst, level: at, wide: wide, loop: m.loop}
	m.same[s] = v
	return v
}

func (m *nestBuilder) variable(e scalar.Expr) value {
	if v, ok := m.named[e.Name]; ok {
		if a := m.coords[e.Name]; a != nil {
			a.used = true
		}
		v.loop = m.loop
		return v
	}
	s := signature{op: e.Op, dtype: e.Type, name: e.Name}
	switch kind, index := loop.BuiltinOf(e.Name); kind {
	case loop.BuiltinCounter:
		return m.emitOnce(s, instr{kind: opCounter, node: e, args: [3]register{{index: index}}}, e.Type, perRun, false)
	case loop.BuiltinScalar:
		return m.emitOnce(s, instr{kind: opScalar, node: e, args: [3]register{{index: index}}}, e.Type, perRun, false)
	}
	m.fail("variable %s is not known here", e.Name)
	return m.emitOnce(s, instr{kind: opConst, node: scalar.Const(e.Type, 0)}, e.Type, atStart, false)
}

// apply compiles an operation.
func (m *nestBuilder) apply(e scalar.Expr) value {
	var vals [3]value
	at, wide := atStart, false
	for i, a := range e.Args {
		vals[i] = m.expr(a)
		at, wide = max(at, vals[i].level), wide || vals[i].wide
	}
	s := signature{op: e.Op, dtype: e.Type}
	in := instr{kind: opApply, node: e}
	for i := range e.Args {
		switch {
		case !wide || vals[i].wide:
		case e.Op == scalar.OpSelect && i == 0: // a uniform condition
			in.uniform = true
		default:
			vals[i] = m.splat(vals[i])
		}
		in.args[i] = vals[i].reg
	}
	s.args = in.args
	if len(e.Args) > 0 { // conversions differ by their source type
		s.ref = int(e.Args[len(e.Args)-1].Type)
	}
	return m.emitOnce(s, in, e.Type, at, wide)
}

// splat returns a value in all lanes.
func (m *nestBuilder) splat(v value) value {
	if v.wide {
		return v
	}
	s := signature{splat: true, args: [3]register{v.reg}}
	if w, ok := m.same[s]; ok && m.fresh(w) {
		return w
	}
	dst := m.n.sizes.add(v.reg.class, m.width())
	m.emit(v.level, instr{kind: opSplat, dst: dst, args: [3]register{v.reg}})
	w := value{reg: dst, level: v.level, wide: true, loop: m.loop}
	m.same[s] = w
	return w
}

func (m *nestBuilder) check(e scalar.Expr, cond value) {
	m.emit(max(cond.level, perRun), instr{kind: opCheck, node: e, args: [3]register{cond.reg}, scalar: !cond.wide})
}

// load compiles the load of an element.
func (m *nestBuilder) load(e scalar.Expr) value {
	buf := m.buffers[e.Ref]
	if buf == nil {
		m.fail("tensor %d has no memory", e.Ref)
		return m.emitOnce(signature{op: scalar.OpConst, dtype: e.Type}, instr{kind: opConst, node: scalar.Const(e.Type, 0)}, e.Type, atStart, false)
	}
	at := m.gathered(m.address(e.Args[0], buf), e.Args[0], buf)
	m.bound(at, e.Args[0], buf)
	s := signature{op: e.Op, dtype: e.Type, ref: e.Ref, name: at.key(), buffer: buf}
	return m.emitOnce(s, instr{kind: opLoad, node: e, buf: buf, at: at}, e.Type, max(at.level, perRun), at.wide)
}

// loadPart compiles the load of a part of complex numbers; false where kernels cannot load it in place.
func (m *nestBuilder) loadPart(e scalar.Expr) (value, bool) {
	load := e.Args[0]
	buf := m.buffers[load.Ref]
	if buf == nil || !hasPairs(buf) {
		return value{}, false
	}
	at := m.address(load.Args[0], buf)
	in := instr{kind: opLoad, node: e, buf: buf, at: at, parts: true, scalar: !at.wide}
	if !in.isContiguous() {
		return value{}, false
	}
	s := signature{op: e.Op, dtype: e.Type, ref: load.Ref, name: at.key(), buffer: buf}
	return m.emitOnce(s, in, e.Type, max(at.level, perRun), true), true
}

// hasPairs reports whether kernels load and store parts of the complex numbers of a buffer.
func hasPairs(b *buffer) bool { return b.dtype.IsComplex() && jit.Available() && jit.HasPairs() }

// takenValue is what a store takes: a value, or the parts of complex numbers.
type takenValue struct {
	parts [2]value
	pair  bool
}

// takes compiles the value of a store; of complex numbers that kernels store in place, both parts.
func (m *nestBuilder) takes(s fusion.ElementStore) takenValue {
	buf, v := m.buffers[s.Tensor.ID], s.Value
	if v.Op == scalar.OpMakeComplex && buf != nil && hasPairs(buf) && !s.Guarded {
		in := instr{kind: opStore, buf: buf, at: m.address(s.Offset, buf), parts: true}
		if in.scalar = !in.at.wide; in.isContiguous() {
			return takenValue{[2]value{m.splat(m.expr(v.Args[0])), m.splat(m.expr(v.Args[1]))}, true}
		}
	}
	return takenValue{parts: [2]value{m.expr(v)}}
}

// store compiles the store of an element for each point: of the outer space outside loops, of
// both spaces inside.
func (m *nestBuilder) store(s fusion.ElementStore, x takenValue) {
	buf := m.buffers[s.Tensor.ID]
	if buf == nil {
		m.fail("tensor %s has no memory", s.Tensor.Name)
		return
	}
	at := m.address(s.Offset, buf)
	where := perBlock
	if m.loop > 0 {
		where = perElement
	}
	if at.wide && !x.pair {
		x.parts[0] = m.splat(x.parts[0])
	}
	in := instr{kind: opStore, buf: buf, at: at, args: [3]register{x.parts[0].reg, x.parts[1].reg}, parts: x.pair, scalar: !at.wide}
	if s.Guarded {
		in.node = guarded
	}
	m.emit(where, in)
}

// guarded marks stores that are skipped once a check has failed.
var guarded = scalar.ConstBool(true)

// move copies a value to a register.
func (m *nestBuilder) move(dst register, v value, at level) {
	m.emit(at, instr{kind: opMove, dst: dst, args: [3]register{v.reg}})
}
