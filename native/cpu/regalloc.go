package cpu

import (
	"github.com/rlx-go/rlx/internal/codegen/jit"
)

// allocateRegisters lets values with disjoint live ranges share registers, so that long code stays
// in the first-level cache. It handles each list of instructions separately, and only registers
// that occur in no other list.
func (n *nest) allocateRegisters() {
	var lists [][]instr
	n.eachList(func(code *[]instr) { lists = append(lists, *code) })
	home := map[register]int{} // the only list in which a register occurs, -1 for several
	for i, code := range lists {
		for k := range code {
			code[k].registers(func(r *register, result bool) {
				// A register that is read before it is written is live in.
				if at, seen := home[*r]; seen && at != i || !seen && !result {
					home[*r] = -1
				} else {
					home[*r] = i
				}
			})
		}
	}
	n.eachLiveIn(func(r register) { home[r] = -1 })
	used := map[register]bool{}
	for i, code := range lists {
		n.sizes.reuseRegisters(code, func(r register) bool { return home[r] == i })
		for k := range code {
			code[k].registers(func(r *register, _ bool) { used[*r] = true })
		}
	}
	for r, at := range home {
		if at >= 0 && !used[r] {
			n.sizes[r.class][r.index] = 0
		}
	}
}

// isContiguous reports whether a load or store is of contiguous elements that kernels can
// access in place.
func (in *instr) isContiguous() bool {
	return !in.scalar && !in.at.general && in.at.mask == nil && in.at.run == 0 && in.at.stride == 1 && (in.parts || in.buf.dtype.IsBool() || jit.Stored(in.buf.dtype))
}

// runs returns the runs of a load or store where kernels can access them in place, or false. Blocks
// then have whole vectors and start at a run's start or are within a run: the lengths of runs and
// blocks are powers of two.
func (in *instr) runs() (jit.Runs, bool) {
	r := jit.Runs{Length: in.at.run, Jump: in.at.jump, Stride: in.at.stride}
	ok := !in.scalar && !in.at.general && in.at.mask == nil && in.at.run > 0 && in.at.row%jit.Width() == 0
	return r, ok && jit.HasRuns(r, in.buf.dtype, in.kind == opStore)
}

// isInKernels reports whether kernels can access what a load or store does.
func (in *instr) isInKernels() bool {
	if in.isContiguous() {
		return true
	}
	_, ok := in.runs()
	return ok || in.isGathered()
}

// isGathered reports whether kernels gather the elements of a load.
func (in *instr) isGathered() bool { return in.kind == opLoad && !in.scalar && in.at.span > 0 }

// eachLiveIn calls f for the registers that are live outside the lists of instructions:
// coordinates, accumulators and their merge operands.
func (n *nest) eachLiveIn(f func(r register)) {
	for _, s := range []*space{&n.outer, &n.inner} {
		f(s.start)
		for _, a := range s.vars {
			f(a.reg)
		}
	}
	for _, x := range n.failures {
		f(x.reg)
	}
	for _, p := range n.phases {
		for _, r := range p.accumulators {
			f(r.acc)
		}
		for _, x := range p.compensated {
			f(x.sum)
			f(x.err)
		}
		for _, c := range p.merges {
			for i := range c.acc {
				f(c.acc[i])
				f(c.other[i])
			}
		}
	}
}

// reuseRegisters renames the registers of a list for which own is true; each is free again
// after its last use.
func (s *sizes) reuseRegisters(code []instr, own func(r register) bool) {
	last := map[register]int{}
	for i := range code {
		code[i].registers(func(r *register, _ bool) { last[*r] = i })
	}
	type kind struct {
		class class
		width int
	}
	kindOf := func(r register) kind { return kind{r.class, s[r.class][r.index]} }
	free := map[kind][]register{}
	now := map[register]register{}
	for i := range code {
		var ended []register
		code[i].registers(func(r *register, result bool) {
			if !own(*r) {
				return
			}
			old := *r
			k := kindOf(old)
			if _, known := now[old]; !known {
				now[old] = old
				if list := free[k]; result && len(list) > 0 {
					now[old], free[k] = list[len(list)-1], list[:len(list)-1]
				}
			}
			*r = now[old]
			if last[old] == i {
				ended = append(ended, old)
			}
		})
		for _, old := range ended {
			if r, ok := now[old]; ok {
				k := kindOf(old)
				free[k] = append(free[k], r)
				delete(now, old)
				delete(last, old)
			}
		}
	}
}

// registers calls f for each register of an instruction, the result last. f may replace it.
func (in *instr) registers(f func(r *register, result bool)) {
	if in.kind == opFused {
		in.fused.registers(f)
		return
	}
	count := 1
	switch in.kind {
	case opApply:
		count = len(in.node.Args)
	case opStore:
		if in.parts {
			count = 2
		}
	case opConst, opLoad, opCounter, opScalar:
		count = 0
	}
	for i := range in.args[:count] {
		f(&in.args[i], false)
	}
	if in.at != nil {
		for i := range in.at.terms {
			f(&in.at.terms[i].reg, false)
		}
		if in.at.run > 0 {
			f(&in.at.start, false)
		}
		if in.at.general {
			f(&in.at.index, false)
		}
		if in.at.mask != nil {
			f(&in.at.mask.reg, false)
		}
	}
	switch in.kind {
	case opStore, opCheck:
		return
	}
	f(&in.dst, true)
}
