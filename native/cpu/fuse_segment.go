package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/ir"
)

// segment is a stretch of instructions that becomes a kernel.
type segment struct {
	*fuser
	k        *jit.Kernel
	kind     kind
	code     []instr
	arrays   []fusedArray
	values   map[register]jit.Value // of registers of many lanes, now
	single   map[register]jit.Value // of those of one, for all lanes
	written  []register             // in the order in which they were
	reads    map[register]int       // by the segment's own instructions
	looped   int                    // how much of code is of the loop, where some comes after it
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
	if in.one || !s.ofKind(in, s.adds) {
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
		if !in.dst.inKernels() {
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
		array := s.array(fusedArray{access: in})
		if in.buf.dtype.IsBool() {
			s.write(in.dst, s.k.LoadBools(array))
		} else {
			s.write(in.dst, s.k.Load(array, in.buf.dtype))
		}
	case opStore:
		if !in.sideBySide() {
			return false
		}
		v, ok := s.value(in.args[0], in.buf.dtype)
		if !ok {
			return false
		}
		array := s.array(fusedArray{access: in, stores: true})
		if in.buf.dtype.IsBool() {
			s.k.StoreBools(array, v)
		} else {
			s.k.Store(array, in.buf.dtype, v)
		}
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
	if _, one := s.spreads[in.args[0]]; one && in.changesWidth() {
		return false // which kernels have in lanes' width alone
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
	switch r.class {
	case classF32:
		return ir.F32
	case classF64:
		return ir.F64
	case classLong:
		return ir.I64
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
		held := t
		if t.Size() < 4 && !t.IsBool() {
			held = wordType(r)
		}
		v = s.k.Load(s.array(fusedArray{reg: r}), held)
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
		s.k.Store(s.array(fusedArray{reg: r, stores: true}), s.storedAs(r), s.values[r])
	}
	return []instr{s.kernel()}
}

// storedAs is the type that the value of a register is stored as.
func (s *segment) storedAs(r register) ir.DType {
	if s.k.IsTruth(s.values[r]) {
		return jit.Truths
	}
	return wordType(r)
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
	return instr{kind: opFused, fused: &fused{kernels: jit.One(s.k), arrays: s.arrays}}
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
