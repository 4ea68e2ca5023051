package cpu

import (
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/jit"
)

// fused is a stretch of instructions as one kernel.
type fused struct {
	code   *jit.Code
	arrays []fusedArray
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
	}
	n.eachList(func(code *[]instr) { *code = f.list(*code) })
	n.eachList(func(code *[]instr) { *code = f.needed(*code) })
	n.lengthen()
}

// eachList shows the lists of instructions of a nest.
func (n *nest) eachList(f func(code *[]instr)) {
	for _, code := range []*[]instr{&n.starts, &n.runs, &n.rows} {
		f(code)
	}
	for _, p := range n.phases {
		for _, code := range []*[]instr{&p.block, &p.inner, &p.element, &p.finish} {
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
			if in.one && in.dst.of32() {
				f.constants[in.dst] = in.node
			}
		}
	}
}

// of32 reports whether a register has lanes of 32 bits.
func (r register) of32() bool { return r.class == classF32 || r.class == classInt }

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

// segment is a stretch of instructions that becomes a kernel.
type segment struct {
	*fuser
	k        *jit.Kernel
	code     []instr
	arrays   []fusedArray
	values   map[register]jit.Value // of registers of many lanes, now
	single   map[register]jit.Value // of those of one, for all lanes
	written  []register             // in the order in which they were
	reads    map[register]int       // by the segment's own instructions
	hasStore bool
}

func (f *fuser) segment() *segment {
	return &segment{
		fuser: f, k: &jit.Kernel{}, reads: map[register]int{},
		values: map[register]jit.Value{}, single: map[register]jit.Value{},
	}
}

// before reports whether an instruction that is no part of the kernel can come
// before it.
func (s *segment) before(in *instr) bool {
	if s.hasStore || in.kind == opStore || in.kind == opCheck {
		return len(s.code) == 0
	}
	own := false
	in.registers(func(r *register, _ bool) {
		own = own || slices.Contains(s.written, *r)
	})
	return !own
}

// add makes an instruction part of the kernel; it reports false, and does
// nothing, where it cannot be.
func (s *segment) add(in *instr) bool {
	if in.one || !s.adds(in) {
		return false
	}
	in.registers(func(r *register, result bool) {
		if !result {
			s.reads[*r]++
		}
	})
	s.code = append(s.code, *in)
	return true
}

func (s *segment) adds(in *instr) bool {
	switch in.kind {
	case opMove:
		if !in.dst.of32() {
			return false
		}
		v, ok := s.value(in.args[0], wordType(in.dst))
		if !ok {
			return false
		}
		s.write(in.dst, v)
	case opLoad:
		if !in.sideBySide() {
			return false
		}
		s.write(in.dst, s.k.Load(s.array(fusedArray{access: in}), in.buf.dtype))
	case opStore:
		if !in.sideBySide() {
			return false
		}
		v, ok := s.value(in.args[0], in.buf.dtype)
		if !ok {
			return false
		}
		s.k.Store(s.array(fusedArray{access: in, stores: true}), in.buf.dtype, v)
		s.hasStore = true
	case opApply:
		return s.apply(in)
	default:
		return false
	}
	return true
}

// operation is what an instruction applies, in the terms of kernels.
func (in *instr) operation() jit.Operation {
	return jit.Operation{Op: in.node.Op, From: in.node.Args[len(in.node.Args)-1].Type, To: in.node.Type}
}

func (s *segment) apply(in *instr) bool {
	o := in.operation()
	if !jit.Has(o) {
		return false
	}
	args := make([]jit.Value, len(in.node.Args))
	for i, a := range in.node.Args {
		ok := true
		if in.uniform && i == 0 {
			args[i] = s.spread(in.args[0], a.Type)
		} else {
			args[i], ok = s.value(in.args[i], a.Type)
		}
		if !ok {
			return false
		}
	}
	v, _ := s.k.Apply(o, args...)
	s.write(in.dst, v)
	return true
}

func (s *segment) array(a fusedArray) int {
	s.arrays = append(s.arrays, a)
	return s.k.Array()
}

// wordType is a type of the lanes of a register, of integers and truths alike.
func wordType(r register) ir.DType {
	if r.class == classF32 {
		return ir.F32
	}
	return ir.I32
}

func (s *segment) write(r register, v jit.Value) {
	if !slices.Contains(s.written, r) {
		s.written = append(s.written, r)
	}
	s.values[r] = v
}

// value returns what is in a register of many lanes, as a value of type t; false
// where it is known as a number and is to be a truth, or the other way round.
func (s *segment) value(r register, t ir.DType) (jit.Value, bool) {
	v, ok := s.values[r]
	if !ok {
		if from, ok := s.spreads[r]; ok {
			return s.spread(from, t), true
		}
		if t.IsFloat() {
			t = ir.F32
		}
		v = s.k.Load(s.array(fusedArray{reg: r}), t)
		s.values[r] = v
	}
	return v, s.k.IsTruth(v) == t.IsBool()
}

// spread returns what is in a register of one lane, for all lanes.
func (s *segment) spread(r register, t ir.DType) jit.Value {
	if v, ok := s.single[r]; ok {
		return v
	}
	var v jit.Value
	if c, ok := s.constants[r]; ok {
		v = s.k.Const(c)
	} else {
		v = s.k.Spread(s.array(fusedArray{reg: r, single: true}), t)
	}
	s.single[r] = v
	return v
}

// finish returns the kernel as an instruction; the instructions themselves where
// there are too few.
func (s *segment) finish() []instr {
	if len(s.code) == 0 || len(s.code) == 1 && s.code[0].kind != opApply {
		return s.code
	}
	s.count()
	for _, r := range s.written {
		if s.fuser.reads[r] == 0 {
			continue
		}
		t := wordType(r)
		if s.k.IsTruth(s.values[r]) {
			t = jit.Truths
		}
		s.k.Store(s.array(fusedArray{reg: r, stores: true}), t, s.values[r])
	}
	return []instr{s.kernel()}
}

// count takes the instructions of the kernel out of the counts of reads.
func (s *segment) count() {
	for r, n := range s.reads {
		s.fuser.reads[r] -= n
	}
}

func (s *segment) kernel() instr {
	for _, a := range s.arrays {
		if a.access == nil && !a.stores {
			s.fuser.reads[a.reg]++
		}
	}

	return instr{kind: opFused, fused: &fused{code: s.set.Compile(s.k), arrays: s.arrays}}
}

// registers shows the registers of a kernel, its results last.
func (x *fused) registers(f func(r *register, result bool)) {
	for _, results := range []bool{false, true} {
		for i := range x.arrays {
			switch a := &x.arrays[i]; {
			case a.access != nil:
				if !results {
					a.access.registers(func(r *register, result bool) {
						if !result {
							f(r, false)
						}
					})
				}
			case a.stores == results:
				f(&a.reg, results)
			}
		}
	}
}
