package cpu

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

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
func (m *maker) store(s fusion.ElementStore, v value) {
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
