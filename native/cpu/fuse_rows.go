package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
)

// maxRowLanes is the maximum length of a row that one kernel handles: longer rows are split
// into blocks, which balance better across cores.
const maxRowLanes = maxBlockPoints

// fuseRows makes one kernel of all the work of a row and of the loop over rows, where it
// consists of kernels and scalar arithmetic: short rows then have no call overhead. Where the
// work before a row cannot be fused, or computes an address, the kernel does one row at a
// time.
func (f *fuser) fuseRows() {
	if !f.n.hasRows() {
		return
	}
	if f.fuseSweep(f.n.rows) {
		f.n.rows = nil
		return
	}
	f.fuseSweep(nil)
}

// fuseSweep makes a kernel of the phases and of the code before a row; false where it cannot.
func (f *fuser) fuseSweep(before []instr) bool {
	b := &rowBuilder{fuser: f, straight: f.segment(), computed: map[register]bool{}}
	if !b.list(before) {
		return false
	}
	for _, p := range f.n.phases {
		if !b.phase(p) {
			return false
		}
	}
	b.end()
	steps, ok := b.strides()
	if !ok || !sameKind(b.kernels) {
		return false
	}
	kernels := &jit.Rows{Kernels: b.kernels, Strides: steps, Counter: b.counter()}
	f.n.rowKernel = []instr{{kind: opFused, fused: &fused{kernels: kernels, arrays: b.arrays}}}
	f.n.phases = nil
	return true
}

// sameKind reports whether kernels have one lane width.
func sameKind(list []*jit.Kernel) bool {
	return !slices.ContainsFunc(list, func(k *jit.Kernel) bool { return k.Long != list[0].Long })
}

// hasRows reports whether a nest has several rows, each a multiple of the vector length.
func (n *nest) hasRows() bool {
	s := n.blockSpace()
	return n.outer.rows > 1 && (!n.wideInner || n.inner.rows == 1) &&
		s.row <= maxRowLanes && s.row%jit.Width() == 0 && !n.rowAxis().long
}

// blockSpace returns the space that blocks run along.
func (n *nest) blockSpace() *space {
	if n.wideInner {
		return &n.inner
	}
	return &n.outer
}

// rowBuilder collects the kernels of a row.
type rowBuilder struct {
	*fuser
	straight *segment // scalar code between kernels
	kernels  []*jit.Kernel
	arrays   []fusedArray
	computed map[register]bool // registers that each row computes
}

// phase adds a phase; false where it cannot be part of the kernel.
func (b *rowBuilder) phase(p *phase) bool {
	if p.loop && (!b.n.wideInner || !p.whole && len(p.accumulators) > 0) {
		return false
	}
	return b.list(p.block) && b.list(p.inner) && b.list(p.element)
}

func (b *rowBuilder) list(code []instr) bool {
	for i := range code {
		if !b.add(&code[i]) {
			return false
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
	if !in.scalar || !b.straight.addScalar(in) {
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

// loop adds a kernel over the lanes of a row.
func (b *rowBuilder) loop(x *fused) bool {
	row := b.n.blockSpace().row
	if row%x.kernels.Width() != 0 || row > blockLanes && b.n.usesLaneRegisters(x.arrays) {
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

// end makes a kernel of the scalar code so far, which stores the results that later kernels
// read.
func (b *rowBuilder) end() {
	s := b.straight
	if len(s.code) == 0 {
		return
	}
	for _, r := range s.written {
		b.computed[r] = true
		if s.fuser.reads[r] > s.reads[r] { // others read it
			v, t := s.uniform[r], wordType(r)
			if s.k.IsBool(v) {
				t = jit.BoolWords
			}
			s.k.Store(s.array(fusedArray{reg: r, scalar: true, stores: true}), t, v)
		}
	}
	b.kernels, b.arrays = append(b.kernels, s.k), append(b.arrays, s.arrays...)
	b.straight = b.segment()
}

// strides returns the byte strides of the arrays from row to row; false where one is not
// constant.
func (b *rowBuilder) strides() ([]int, bool) {
	axis := b.n.rowAxis().reg
	steps := make([]int, len(b.arrays))
	for i, a := range b.arrays {
		if a.access == nil {
			continue
		}
		steps[i] = a.access.at.coef(axis) * a.access.buf.dtype.Size()
		if int(int32(steps[i])) != steps[i] || slices.ContainsFunc(a.access.at.terms, func(t term) bool { return b.computed[t.reg] }) {
			return nil, false
		}
	}
	return steps, true
}

// counter returns the array that holds the coordinate of the row, or -1.
func (b *rowBuilder) counter() int {
	axis := b.n.rowAxis().reg
	return slices.IndexFunc(b.arrays, func(a fusedArray) bool { return a.access == nil && a.reg == axis })
}

// rowAxis returns the coordinate that advances from row to row.
func (n *nest) rowAxis() *axis {
	return &n.outer.vars[len(n.outer.scalars())-1]
}

// coef returns the coefficient of a register in an address.
func (a *address) coef(r register) int {
	for _, t := range a.terms {
		if t.reg == r {
			return t.coef
		}
	}
	return 0
}
