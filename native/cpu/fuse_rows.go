package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
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
	b := &rowBuilder{fuser: f, straight: f.segment(), computed: map[register]int{}}
	if !b.list(before) {
		return false
	}
	for _, p := range f.n.phases {
		if !b.phase(p) {
			return false
		}
	}
	b.end()
	steps, indirect, ok := b.strides()
	overlap := f.n.wideSpace().row%jit.Width() != 0
	inPlace := overlap && writesWhatItReads(b.arrays)
	if !ok || !sameKind(b.kernels) || inPlace && slices.ContainsFunc(b.kernels, func(k *jit.Kernel) bool { return !k.StoresOnce() }) {
		return false
	}
	kernels := &jit.Rows{Kernels: b.kernels, Strides: steps, Counter: b.counter(), Indirect: indirect, Overlap: overlap, InPlace: inPlace}
	f.n.failures = b.failures
	f.n.rowKernel = []instr{{kind: opFused, fused: &fused{kernels: kernels, arrays: b.arrays}}}
	f.n.phases = nil
	return true
}

// writesWhatItReads reports whether kernels write a tensor that they read.
func writesWhatItReads(arrays []fusedArray) bool {
	return slices.ContainsFunc(arrays, func(a fusedArray) bool {
		return a.access != nil && a.stores && slices.ContainsFunc(arrays, func(b fusedArray) bool {
			return b.access != nil && !b.stores && b.access.buf == a.access.buf
		})
	})
}

// sameKind reports whether kernels have one lane width.
func sameKind(list []*jit.Kernel) bool {
	return !slices.ContainsFunc(list, func(k *jit.Kernel) bool { return k.Long != list[0].Long })
}

// hasRows reports whether a nest has several rows, each of whole vectors, or of one that overlaps the one
// before.
func (n *nest) hasRows() bool {
	s := n.wideSpace()
	return n.outer.rows > 1 && (!n.wideInner || n.inner.rows == 1) &&
		s.row <= maxRowLanes && (s.row%jit.Width() == 0 || mayOverlap(s.row)) && !n.rowAxis().long
}

// mayOverlap reports whether a kernel can do rows of n lanes that fill no whole vectors.
func mayOverlap(n int) bool { return jit.HasOverlap() && n > jit.Width() }

// rowBuilder collects the kernels of a row.
type rowBuilder struct {
	*fuser
	straight *segment // scalar code between kernels
	kernels  []*jit.Kernel
	arrays   []fusedArray
	computed map[register]int // for registers that each row computes, how many kernels that takes
	failures []rowFailure
}

// rowFailure is a check in a row kernel: the register is not 0 once it has failed.
type rowFailure struct {
	reg  register
	code uint32
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
	if in.at != nil && slices.ContainsFunc(in.at.terms, func(t term) bool { return slices.Contains(b.straight.written, t.reg) }) {
		b.end() // computes the address
	}
	if len(b.straight.code) == 0 {
		b.straight.k.After()
	}
	if !in.scalar || in.kind == opCheck && !b.check(in) || in.kind != opCheck && !b.straight.addScalar(in) {
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

// check adds a check, which sets a register where it fails.
func (b *rowBuilder) check(in *instr) bool {
	s := b.straight
	if s.kind == kind64 {
		return false
	}
	s.kind = kind32
	failed := b.n.sizes.add(classInt, 1)
	fails, _ := s.k.Apply(jit.Operation{Op: scalar.OpNot, From: ir.Bool, To: ir.Bool}, s.splat(in.args[0], ir.Bool))
	word, _ := s.k.Apply(jit.Operation{Op: scalar.OpConvert, From: ir.Bool, To: ir.I32}, fails)
	word, _ = s.k.Apply(jit.Operation{Op: scalar.OpOr, From: ir.I32, To: ir.I32}, s.splat(failed, ir.I32), word)
	s.writeScalar(failed, word)
	s.fuser.reads[failed] = math.MaxInt / 2
	b.failures = append(b.failures, rowFailure{failed, uint32(in.node.Ref)})
	return true
}

// loop adds a kernel over the lanes of a row.
func (b *rowBuilder) loop(x *fused) bool {
	row := b.n.wideSpace().row
	if row%x.kernels.Width() != 0 && (row%jit.Width() == 0 || !x.fitsOverlap()) || row > blockLanes && b.n.usesLaneRegisters(x.arrays) {
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

// fitsOverlap reports whether a kernel may compute lanes twice: it is not unrolled and reads no lanes that it
// writes.
func (x *fused) fitsOverlap() bool {
	return x.kernels.Width() <= jit.Width() && !slices.ContainsFunc(x.arrays, func(a fusedArray) bool {
		return a.access == nil && !a.scalar && a.stores && slices.ContainsFunc(x.arrays, func(b fusedArray) bool {
			return b.access == nil && !b.scalar && !b.stores && b.reg == a.reg
		})
	})
}

// end makes a kernel of the scalar code so far, which stores the results that later kernels
// read.
func (b *rowBuilder) end() {
	s := b.straight
	if len(s.code) == 0 {
		return
	}
	for _, r := range s.written {
		b.computed[r] = len(b.kernels) + 1
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

// strides returns the byte strides of the arrays from row to row and the arrays at computed
// addresses, or false where a kernel cannot access them.
func (b *rowBuilder) strides() ([]int, []jit.Indirect, bool) {
	axis := b.n.rowAxis().reg
	steps := make([]int, len(b.arrays))
	var indirect []jit.Indirect
	for i, a := range b.arrays[:len(steps)] {
		if a.access == nil {
			continue
		}
		step := a.access.at.coef(axis) * a.access.buf.dtype.Size()
		if int(int32(step)) != step {
			return nil, nil, false
		}
		if !slices.ContainsFunc(a.access.at.terms, b.isComputed) {
			steps[i] = step
			continue
		}
		place, ok := b.place(i)
		if !ok {
			return nil, nil, false
		}
		indirect, steps = append(indirect, place), append(steps, step)
	}
	return steps, indirect, true
}

func (b *rowBuilder) isComputed(t term) bool { return b.computed[t.reg] > 0 }

// place makes an array indirect, and adds its base; false where a kernel cannot compute its place.
func (b *rowBuilder) place(array int) (jit.Indirect, bool) {
	a := &b.arrays[array]
	x := jit.Indirect{Array: array, Base: len(b.arrays), Index: -1, Most: a.access.at.most}
	if !jit.HasIndirect() || x.Most == 0 || a.stores {
		return x, false
	}
	base, at := *a.access, *a.access.at
	at.terms = nil
	for _, t := range a.access.at.terms {
		if !b.isComputed(t) {
			at.terms = append(at.terms, t)
			continue
		}
		x.Scale, x.After = t.coef*a.access.buf.dtype.Size(), b.computed[t.reg]
		x.Index = slices.IndexFunc(b.arrays, func(x fusedArray) bool { return x.access == nil && x.stores && x.reg == t.reg })
		if t.reg.class != classInt {
			return x, false
		}
	}
	base.at, a.indirect = &at, true
	b.arrays = append(b.arrays, fusedArray{access: &base, base: true})
	return x, x.Index >= 0 && int(int32(x.Scale)) == x.Scale
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
