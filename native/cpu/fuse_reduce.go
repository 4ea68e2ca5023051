package cpu

import (
	"math"

	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/jit"
)

// longStretch is how many inner points a kernel takes at once where it needs no
// registers of lanes. Sums begin anew in each stretch, so that many terms are not
// added to one lane one after the other.
const longStretch = 4096

// tighten makes one kernel of what a reduction does with inner points, where the
// lanes are these: running values stay in registers, are merged with those of
// other stretches after each, and with those of other lanes at the end.
func (f *fuser) tighten(p *phase) {
	if !f.n.wideInner || !p.loop || len(p.combining) == 0 {
		return
	}
	s, last := f.segment(), f.segment()
	before := map[register]jit.Value{}
	for _, r := range p.running {
		if !r.acc.of32() {
			return
		}
		before[r.acc] = s.k.Running(wordType(r.acc), wordOf(r.acc, r.init))
		s.values[r.acc] = before[r.acc]
	}
	ahead, ok := s.loop(p, before)
	if !ok || !s.merge(p.combining, before) || !last.fold(p.combining) {
		return
	}
	s.count()
	p.element, p.finish = append(ahead, s.kernel()), []instr{last.kernel()}
	for _, c := range p.combining {
		for i := range c.acc {
			f.n.sizes[c.acc[i].class][c.acc[i].index] = jit.Lanes
			f.n.sizes[c.other[i].class][c.other[i].index] = 0
		}
	}
	p.combining = nil
}

// wordOf returns the first value of a running one in 32 bits.
func wordOf(r register, v scalar.Value) uint32 {
	if r.class == classF32 {
		return math.Float32bits(float32(v.F))
	}
	return uint32(v.I)
}

// loop adds what is done for inner points to the kernel but for what can come before it, which it
// returns. It reports false where there is more, or where lanes are kept for
// later.
func (s *segment) loop(p *phase, before map[register]jit.Value) (ahead []instr, ok bool) {
	for i := range p.element {
		in := &p.element[i]
		switch {
		case s.add(in):
		case s.before(in):
			ahead = append(ahead, *in)
		default:
			return nil, false
		}
	}
	for _, r := range s.written {
		if _, runs := before[r]; !runs && s.fuser.reads[r] > s.reads[r] {
			return nil, false
		}
	}
	for _, r := range p.running {
		if s.k.IsTruth(s.values[r.acc]) {
			return nil, false
		}
		s.k.Next(before[r.acc], s.values[r.acc])
	}
	return ahead, true
}

// merge ends the loop, and merges running values with those in memory.
func (s *segment) merge(combining []*combining, running map[register]jit.Value) bool {
	s.k.After()
	clear(s.values)
	clear(s.single)
	for _, c := range combining {
		for i, acc := range c.acc {
			s.values[acc], s.values[c.other[i]] = running[acc], s.load(acc)
		}
		if !s.addAll(c.code) {
			return false
		}
		s.keep(c)
	}
	return true
}

// fold merges the lanes of running values, by halves.
func (s *segment) fold(combining []*combining) bool {
	for _, c := range combining {
		for _, acc := range c.acc {
			s.values[acc] = s.load(acc)
		}
		for by := jit.Width() / 2; by > 0; by /= 2 {
			for i, acc := range c.acc {
				s.values[c.other[i]] = s.k.Rotate(s.values[acc], by)
			}
			if !s.addAll(c.code) {
				return false
			}
		}
		s.keep(c)
	}
	return true
}

func (s *segment) addAll(code []instr) bool {
	for i := range code {
		if !s.add(&code[i]) && code[i].kind != opSplat {
			return false
		}
	}
	return true
}

// load reads the lanes of a running value.
func (s *segment) load(acc register) jit.Value {
	return s.k.Load(s.array(fusedArray{reg: acc, single: true}), wordType(acc))
}

// keep writes the lanes of running values.
func (s *segment) keep(c *combining) {
	for _, acc := range c.acc {
		s.k.Store(s.array(fusedArray{reg: acc, single: true, stores: true}), wordType(acc), s.values[acc])
	}
}

// lengthen lets kernels that need no registers of lanes take long stretches.
func (n *nest) lengthen() {
	for _, a := range n.inner.wides() {
		if a.used {
			return
		}
	}
	for _, p := range n.phases {
		if n.wideInner && p.finish != nil || len(p.running) == 0 {
			long := true
			for i := range p.element {
				long = long && p.element[i].kind == opFused && !p.element[i].fused.needsLanes()
			}
			if long {
				p.stretch = longStretch
			}
		}
	}
}

// needsLanes reports whether a kernel reads or writes registers of lanes.
func (x *fused) needsLanes() bool {
	for _, a := range x.arrays {
		if a.access == nil && !a.single {
			return true
		}
	}
	return false
}
