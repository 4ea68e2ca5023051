package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/cpu/jit"
)

// longestRow is the most lanes of a row that one kernel goes through: longer rows
// are cut into blocks, which is worth more than what a kernel for many rows saves.
const longestRow = longStretch

// byRows makes one kernel of all that is done for a row, and of the loop over rows,
// where all of it is kernels and arithmetic on single numbers of 32 bits: short rows
// then cost what their lanes cost.
func (f *fuser) byRows() {
	n := f.n
	if !n.hasRows() {
		return
	}
	b := &rowBuilder{fuser: f, straight: f.segment(), lanes: n.lanesOfRow()}
	for _, p := range n.phases {
		if !b.phase(p) {
			return
		}
	}
	b.end()
	steps, ok := b.steps()
	if !ok {
		return
	}
	kernels := &jit.Rows{Kernels: b.kernels, Steps: steps}
	n.sweep = []instr{{kind: opFused, fused: &fused{kernels: kernels, arrays: b.arrays}}}
	n.phases = nil
}

// hasRows reports whether a nest has several rows of lanes that nothing is
// computed for but in its phases, and that fill registers.
func (n *nest) hasRows() bool {
	row := n.lanesOfRow()
	space := &n.outer
	if n.wideInner {
		space = &n.inner
	}
	return len(n.rows) == 0 && n.outer.rows > 1 && (!n.wideInner || n.inner.rows == 1) &&
		row <= longestRow && row%jit.Width() == 0 && !space.usesWides()
}

// lanesOfRow returns how many points lie in a row along blocks.
func (n *nest) lanesOfRow() int {
	if n.wideInner {
		return n.inner.row
	}
	return n.outer.row
}

// rowBuilder collects the kernels of a row.
type rowBuilder struct {
	*fuser
	lanes    int
	straight *segment // what is done between kernels
	kernels  []*jit.Kernel
	arrays   []fusedArray
}

// phase adds a phase; false where it cannot be part of the kernel.
func (b *rowBuilder) phase(p *phase) bool {
	if p.loop && (!b.n.wideInner || !p.whole && len(p.running) > 0) {
		return false
	}
	for _, list := range [][]instr{p.block, p.inner, p.element} {
		for i := range list {
			if !b.add(&list[i]) {
				return false
			}
		}
	}
	return true
}

func (b *rowBuilder) add(in *instr) bool {
	if in.kind == opFused {
		return b.loop(in.fused)
	}
	if len(b.straight.code) == 0 {
		b.straight.k.After()
	}
	if !in.one || !b.straight.addSingle(in) {
		return false
	}
	b.straight.code = append(b.straight.code, *in)
	in.registers(func(r *register, result bool) {
		if !result {
			b.straight.reads[*r]++
		}
	})
	return true
}

// loop adds a kernel that goes through the lanes of a row.
func (b *rowBuilder) loop(x *fused) bool {
	if needLanes(x.arrays) || b.lanes%x.kernels.Width() != 0 {
		return false
	}
	for _, a := range x.arrays {
		if a.access != nil && a.access.node == guarded {
			return false
		}
	}
	b.end()
	b.kernels, b.arrays = append(b.kernels, x.kernels.Kernels...), append(b.arrays, x.arrays...)
	return true
}

// end makes a kernel of what is done with single numbers, which it leaves in their
// registers for those to come.
func (b *rowBuilder) end() {
	s := b.straight
	if len(s.code) == 0 {
		return
	}
	for _, r := range s.written {
		if s.fuser.reads[r] > s.reads[r] { // others read it
			v, t := s.single[r], wordType(r)
			if s.k.IsTruth(v) {
				t = jit.Truths
			}
			s.k.Store(s.array(fusedArray{reg: r, single: true, stores: true}), t, v)
		}
	}
	b.kernels, b.arrays = append(b.kernels, s.k), append(b.arrays, s.arrays...)
	b.straight = b.segment()
}

// steps returns by how many bytes the arrays grow from row to row.
func (b *rowBuilder) steps() ([]int, bool) {
	axis := b.n.rowAxis().reg
	steps := make([]int, len(b.arrays))
	for i, a := range b.arrays {
		if a.access != nil {
			steps[i] = a.access.at.coef(axis) * a.access.buf.dtype.Size()
		}
		if int(int32(steps[i])) != steps[i] {
			return nil, false
		}
	}
	return steps, true
}

// rowAxis returns the coordinate that tells neighbouring rows apart.
func (n *nest) rowAxis() *axis {
	return &n.outer.vars[len(n.outer.scalars())-1]
}

// coef returns the multiple of a register in an address.
func (a *address) coef(r register) int {
	for _, t := range a.terms {
		if t.reg == r {
			return t.coef
		}
	}
	return 0
}

// addSingle makes an instruction on single numbers part of a kernel.
func (s *segment) addSingle(in *instr) bool {
	switch in.kind {
	case opMove:
		if !in.dst.of32() {
			return false
		}
		v := s.spread(in.args[0], wordType(in.dst))
		s.writeSingle(in.dst, v)
	case opLoad:
		if !in.isWord() {
			return false
		}
		s.writeSingle(in.dst, s.k.Spread(s.array(fusedArray{access: in}), in.buf.dtype))
	case opStore:
		if !in.isWord() || in.node == guarded {
			return false
		}
		v := s.spread(in.args[0], in.buf.dtype)
		if s.k.IsTruth(v) {
			return false
		}
		s.k.StoreFirst(s.array(fusedArray{access: in, stores: true}), v)
	case opApply:
		return s.applySingle(in)
	default:
		return false
	}
	return true
}

// isWord reports whether a load or store of one element is of 32 bits and its place
// a sum of coordinates.
func (in *instr) isWord() bool {
	switch in.buf.dtype {
	case ir.F32, ir.I32, ir.U32:
		return !in.at.general && in.at.mask == nil
	}
	return false
}

func (s *segment) applySingle(in *instr) bool {
	o := in.operation()
	if !jit.Has(o) || !in.dst.of32() {
		return false
	}
	args := make([]jit.Value, len(in.node.Args))
	for i, a := range in.node.Args {
		if args[i] = s.spread(in.args[i], a.Type); s.k.IsTruth(args[i]) != a.Type.IsBool() {
			return false
		}
	}
	v, _ := s.k.Apply(o, args...)
	s.writeSingle(in.dst, v)
	return true
}

func (s *segment) writeSingle(r register, v jit.Value) {
	if !slices.Contains(s.written, r) {
		s.written = append(s.written, r)
	}
	s.single[r] = v
}
