package cpu

import (
	"fmt"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// instr is one instruction of a nest, still without the registers of a worker.
type instr struct {
	kind opKind
	node scalar.Expr // for apply and check: the operation
	dst  register
	args [3]register
	one  bool // of one lane, however many the block has
	// uniform marks a select whose condition has one lane, unlike its result.
	uniform bool
	buf     *buffer  // for load and store
	at      *address // for load and store
	fused   *fused
}

type opKind uint8

const (
	opApply opKind = iota
	opConst        // the value of node in all lanes
	opSplat        // lane 0 of args[0] in all lanes
	opMove         // args[0]
	opLoad
	opStore // args[0]
	opCounter
	opScalar
	opCheck // where args[0] is 0, the code node.Ref
	opFused // many as a kernel
)

// value is what an expression has become.
type value struct {
	reg   register
	level level
	wide  bool
	loop  int // for levels perInner and perElement: the loop it is computed in
}

// maker makes a nest of the code of a group.
type maker struct {
	n       *nest
	buffers map[int]*buffer // by the ID of the tensor
	named   map[string]value
	made    map[scalar.Expr]value
	same    map[signature]value
	coords  map[string]*axis
	p       *phase
	loop    int // the number of the loop over inner points at work, 0 outside
	loops   int
	err     error
}

// signature is what two equal instructions have in common.
type signature struct {
	op     scalar.Op
	dtype  ir.DType
	bits   uint64
	ref    int
	name   string
	args   [3]register
	splat  bool
	buffer *buffer
}

// blocking says what blocks run along: the last coordinates, wide of them, of the
// outer or the inner ones.
type blocking struct {
	inner bool
	wide  int
}

// newMaker begins a nest over the given coordinates.
func newMaker(name string, outer, inner []scalar.Expr, outerDims, innerDims []int, b blocking, buffers map[int]*buffer) *maker {
	n := &nest{name: name, wideInner: b.inner}
	if b.inner {
		n.outer, n.inner = newSpace(outer, outerDims, 0), newSpace(inner, innerDims, b.wide)
	} else {
		n.outer, n.inner = newSpace(outer, outerDims, b.wide), newSpace(inner, innerDims, 0)
	}
	m := &maker{
		n: n, buffers: buffers,
		named: map[string]value{}, made: map[scalar.Expr]value{}, same: map[signature]value{}, coords: map[string]*axis{},
	}
	m.place(&n.outer, perRow, perBlock)
	m.place(&n.inner, perInner, perElement)
	m.nextPhase()
	return m
}

// place gives the coordinates of a space their registers.
func (m *maker) place(s *space, scalar, wide level) {
	s.start = m.n.sizes.add(classInt, 1)
	for i := range s.vars {
		a := &s.vars[i]
		m.coords[a.name] = a
		if i < len(s.vars)-s.wide {
			a.reg = m.n.sizes.add(classInt, 1)
			m.named[a.name] = value{reg: a.reg, level: scalar}
			continue
		}
		a.reg = m.n.sizes.add(classInt, s.coordinateLanes())
		m.named[a.name] = value{reg: a.reg, level: wide, wide: true}
	}
}

// width is how many lanes wide registers have.
func (m *maker) width() int {
	if m.n.wideInner {
		return m.n.inner.lanes()
	}
	return m.n.outer.lanes()
}

func (m *maker) nextPhase() {
	m.p = &phase{stretch: lanes}
	m.n.phases = append(m.n.phases, m.p)
	m.loop = 0
}

// enterLoop makes what is compiled from now on part of the phase's loop over
// the inner points.
func (m *maker) enterLoop() {
	m.loops++
	m.loop = m.loops
	m.p.loop = true
}

func (m *maker) fail(format string, args ...any) {
	if m.err == nil {
		m.err = ir.Errorf(ir.ErrUnsupported, "%s: %s", m.n.name, fmt.Sprintf(format, args...))
	}
}

// emit adds an instruction to the code of a level.
func (m *maker) emit(at level, in instr) {
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

// expr compiles an expression and returns where its value is.
func (m *maker) expr(e scalar.Expr) value {
	if v, ok := m.made[e]; ok && m.fresh(v) {
		return v
	}
	v := m.node(e)
	m.made[e] = v
	return v
}

// fresh reports whether a value made before can be used here: those of another
// loop over the inner points are gone.
func (m *maker) fresh(v value) bool { return v.level < perInner || v.loop == m.loop }

func (m *maker) node(e scalar.Expr) value {
	switch e.Op {
	case scalar.OpConst:
		return m.once(signature{op: e.Op, dtype: e.Type, bits: e.Bits}, instr{kind: opConst, node: e}, e.Type, atStart, false)
	case scalar.OpVar:
		return m.variable(e)
	case scalar.OpLoad:
		return m.load(e)
	case scalar.OpCheck:
		x, cond := m.expr(e.Args[0]), m.expr(e.Args[1])
		m.check(e, cond)
		return x
	case scalar.OpFloorDiv, scalar.OpMod:
		return m.expr(scalar.ExpandFloorDiv(e))
	case scalar.OpMakeComplex:
		if _, ok := e.Value(); ok {
			return m.once(signature{op: scalar.OpConst, dtype: e.Type, bits: e.Args[0].Bits, name: fmt.Sprint(e.Args[1].Bits)}, instr{kind: opConst, node: e}, e.Type, atStart, false)
		}
	}
	return m.apply(e)
}

// once adds an instruction unless its like was added before.
func (m *maker) once(s signature, in instr, d ir.DType, at level, wide bool) value {
	if v, ok := m.same[s]; ok && m.fresh(v) {
		return v
	}
	in.one = !wide
	width := 1
	if wide {
		width = m.width()
		if at == perInner { // lanes are outer points: it is for all of them
			at = perElement
		}
	}
	in.dst = m.n.sizes.add(classOf(d), width)
	m.emit(at, in)
	v := value{reg: in.dst, level: at, wide: wide, loop: m.loop}
	m.same[s] = v
	return v
}

func (m *maker) variable(e scalar.Expr) value {
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
		return m.once(s, instr{kind: opCounter, node: e, args: [3]register{{index: index}}}, e.Type, perRun, false)
	case loop.BuiltinScalar:
		return m.once(s, instr{kind: opScalar, node: e, args: [3]register{{index: index}}}, e.Type, perRun, false)
	}
	m.fail("variable %s is not known here", e.Name)
	return m.once(s, instr{kind: opConst, node: scalar.Const(e.Type, 0)}, e.Type, atStart, false)
}

// apply compiles an operation on values.
func (m *maker) apply(e scalar.Expr) value {
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
		case e.Op == scalar.OpSelect && i == 0: // one choice for all lanes
			in.uniform = true
		default:
			vals[i] = m.widen(vals[i])
		}
		in.args[i] = vals[i].reg
	}
	s.args = in.args
	if len(e.Args) > 0 { // conversions differ by where they come from
		s.ref = int(e.Args[len(e.Args)-1].Type)
	}
	return m.once(s, in, e.Type, at, wide)
}

// widen returns a value in all lanes.
func (m *maker) widen(v value) value {
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

func (m *maker) check(e scalar.Expr, cond value) {
	m.emit(max(cond.level, perRun), instr{kind: opCheck, node: e, args: [3]register{cond.reg}, one: !cond.wide})
}

// load compiles the load of an element.
func (m *maker) load(e scalar.Expr) value {
	buf := m.buffers[e.Ref]
	if buf == nil {
		m.fail("tensor %d has no memory", e.Ref)
		return m.once(signature{op: scalar.OpConst, dtype: e.Type}, instr{kind: opConst, node: scalar.Const(e.Type, 0)}, e.Type, atStart, false)
	}
	at := m.address(e.Args[0])
	s := signature{op: e.Op, dtype: e.Type, ref: e.Ref, name: at.key(), buffer: buf}
	return m.once(s, instr{kind: opLoad, node: e, buf: buf, at: at}, e.Type, max(at.level, perRun), at.wide)
}

// store compiles the store of an element. It is done for each point: of the
// outer space outside loops, of both inside.
func (m *maker) store(s group.ElementStore, v value) {
	buf := m.buffers[s.Tensor.ID]
	if buf == nil {
		m.fail("tensor %s has no memory", s.Tensor.Name)
		return
	}
	at := m.address(s.Offset)
	where := perBlock
	if m.loop > 0 {
		where = perElement
	}
	if at.wide {
		v = m.widen(v)
	}
	in := instr{kind: opStore, buf: buf, at: at, args: [3]register{v.reg}, one: !at.wide}
	if s.Guarded {
		in.node = guarded
	}
	m.emit(where, in)
}

// guarded marks stores that must not happen once a check has failed.
var guarded = scalar.ConstBool(true)

// move puts a value into a register of its own.
func (m *maker) move(dst register, v value, at level) {
	m.emit(at, instr{kind: opMove, dst: dst, args: [3]register{v.reg}})
}
