package cpu

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// bind gives an instruction the registers of a machine.
func (m *machine) bind(in *instr) op {
	if !in.one {
		return m.bindWide(in)
	}
	if o := singleOp(m.files, in); o != nil {
		return o
	}
	o := m.bindWide(in)
	return func(int) { o(1) }
}

func (m *machine) bindWide(in *instr) op {
	f := m.files
	to := f.of(in.dst)
	switch in.kind {
	case opConst:
		v, _ := in.node.Value()
		return func(int) { to.set(in.dst.index, 0, v) }
	case opSplat:
		return to.splat(in.dst.index, in.args[0].index)
	case opMove:
		return to.move(in.dst.index, in.args[0].index)
	case opCounter:
		d, i := &f.ints[in.dst.index][0], in.args[0].index
		return func(int) { *d = m.env.counters[i] }
	case opScalar:
		i := in.args[0].index
		return func(int) { to.set(in.dst.index, 0, m.env.scalars[i]) }
	case opCheck:
		return m.bindCheck(in)
	case opFused:
		return m.bindFused(in.fused)
	case opLoad:
		return m.bindLoad(in)
	case opStore:
		store := m.bindStore(in)
		if in.node != guarded {
			return store
		}
		return func(n int) {
			if !m.env.status.failed() {
				store(n)
			}
		}
	}
	return bindApply(f, in)
}

func (m *machine) bindCheck(in *instr) op {
	cond, code := m.files.ints[in.args[0].index], uint32(in.node.Ref)
	return func(n int) {
		for _, ok := range cond[:n] {
			if ok == 0 {
				m.env.status.fail(code)
				return
			}
		}
	}
}

// bindApply returns the loop of an operation: one of those written out, or the
// evaluator of package scalar lane by lane.
func bindApply(f *files, in *instr) op {
	if o := fastOp(f, in); o != nil {
		return o
	}
	node, arity := in.node, len(in.node.Args)
	narrow := node.Type == ir.F16 || node.Type == ir.BF16
	from, to := [3]registerFile{}, f.of(in.dst)
	for k := range arity {
		from[k] = f.of(in.args[k])
	}
	return func(n int) {
		var v [3]scalar.Value
		for i := range n {
			for k := range arity {
				v[k] = from[k].value(in.args[k].index, i, node.Args[k].Type)
			}
			r := scalar.Apply(node, v)
			if narrow {
				r.F = node.Type.Round(r.F)
			}
			to.set(in.dst.index, i, r)
		}
	}
}
