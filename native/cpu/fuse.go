package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir/scalar"
)

// fused is a stretch of instructions as one kernel, or all that is done for rows as
// a few of them.
type fused struct {
	kernels *jit.Rows
	code    *jit.Code // of the kernels, once it is known which there will be
	arrays  []fusedArray
}

// fusedArray is an array of a kernel: a register, or the elements side by side
// that a load or store of a tensor names.
type fusedArray struct {
	reg    register
	single bool // of a register of one lane
	access *instr
	stores bool
}

// fuser makes kernels of the code of a nest.
type fuser struct {
	n   *nest
	set *jit.Set
	// spreads are the registers that have one value in all lanes, with where
	// it comes from; constants are those of one lane that never change.
	spreads   map[register]register
	constants map[register]scalar.Expr
	reads     map[register]int // how many instructions read a register
}

// fuse makes kernels of all stretches of instructions that it can.
func (n *nest) fuse(set *jit.Set) {
	if !jit.Available() {
		return
	}
	f := &fuser{n: n, set: set, spreads: map[register]register{}, constants: map[register]scalar.Expr{}, reads: map[register]int{}}
	n.keep(func(r register) { f.reads[r] = math.MaxInt / 2 })
	n.eachList(func(code *[]instr) { f.look(*code) })
	for _, p := range n.phases {
		f.tighten(p)
		f.unroll(p)
	}
	n.eachList(func(code *[]instr) { *code = f.list(*code) })
	n.eachList(func(code *[]instr) { *code = f.needed(*code) })
	n.lengthen()
	f.byRows()
	n.eachList(func(code *[]instr) { f.compile(*code) })
}

func (f *fuser) compile(code []instr) {
	for i := range code {
		if x := code[i].fused; x != nil {
			x.code = f.set.Compile(x.kernels)
		}
	}
}

// eachList shows the lists of instructions of a nest.
func (n *nest) eachList(f func(code *[]instr)) {
	for _, code := range []*[]instr{&n.starts, &n.runs, &n.rows, &n.sweep} {
		f(code)
	}
	for _, p := range n.phases {
		for _, code := range []*[]instr{&p.block, &p.inner, &p.element, &p.several, &p.finish, &p.tail, &p.carry, &p.total} {
			f(code)
		}
		for _, c := range p.combining {
			f(&c.code)
		}
	}
}

// look notes where the values of a list come from.
func (f *fuser) look(code []instr) {
	for i := range code {
		in := &code[i]
		in.registers(func(r *register, result bool) {
			if !result {
				f.reads[*r]++
			}
		})
		switch in.kind {
		case opSplat:
			f.spreads[in.dst] = in.args[0]
		case opConst:
			if in.one && in.dst.inKernels() {
				f.constants[in.dst] = in.node
			}
		}
	}
}

// inKernels reports whether kernels compute with the lanes of a register.
func (r register) inKernels() bool {
	return r.class == classF32 || r.class == classInt || r.class == classF64 || r.class == classLong
}

// list returns a list with kernels in place of what they can do. What they
// cannot do, and does not depend on it, comes before.
func (f *fuser) list(code []instr) []instr {
	var out []instr
	s := f.segment()
	end := func() {
		out = append(out, s.finish()...)
		s = f.segment()
	}
	for i := range code {
		in := &code[i]
		switch {
		case s.add(in):
		case s.before(in):
			out = append(out, *in)
		default:
			end()
			if !s.add(in) {
				out = append(out, *in)
			}
		}
	}
	end()
	return out
}

// needed leaves out what spreads a value that no instruction reads any more.
func (f *fuser) needed(code []instr) []instr {
	kept := code[:0]
	for _, in := range code {
		if in.kind != opSplat || f.reads[in.dst] > 0 {
			kept = append(kept, in)
		}
	}
	return kept
}

// lengthen lets kernels that need no registers of lanes take long stretches.
func (n *nest) lengthen() {
	if n.inner.usesWides() {
		return
	}
	for _, p := range n.phases {
		if p.whole || p.finish != nil || len(p.running) == 0 {
			long := true
			for i := range p.element {
				long = long && p.element[i].kind == opFused && !n.needLanes(p.element[i].fused.arrays)
			}
			if long {
				p.stretch = p.longest()
			}
		}
	}
}

// usesWides reports whether code reads the coordinates along a block.
func (s *space) usesWides() bool {
	return slices.ContainsFunc(s.wides(), func(a axis) bool { return a.used })
}

// needLanes reports whether a kernel reads or writes registers of lanes, of which
// coordinates have as many as a row.
func (n *nest) needLanes(arrays []fusedArray) bool {
	return slices.ContainsFunc(arrays, func(a fusedArray) bool {
		return a.access == nil && !a.single && !slices.ContainsFunc(n.along().wides(), func(x axis) bool { return x.reg == a.reg })
	})
}
