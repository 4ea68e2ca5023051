package cpu

import (
	"math"

	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/jit"
)

// longStretch is the most inner points that a kernel takes at once where it needs no
// registers of lanes.
const longStretch = 4096

// stretch is how many it takes. Sums begin anew in each stretch, so that many terms
// are not added to one lane one after the other: the fewer lanes, the shorter.
func stretch() int {
	switch jit.Width() {
	case 4:
		return 512
	case 8:
		return 2048
	}
	return longStretch
}

// tighten makes one kernel of what a reduction does with inner points, where the
// lanes are these: running values stay in registers.
func (f *fuser) tighten(p *phase) {
	if !f.n.wideInner || !p.loop || len(p.combining) == 0 {
		return
	}
	kind, ok := kindOfRunning(p.running)
	if !ok || len(p.running) > jit.MostRunning() {
		return
	}
	if !f.atOnce(p, kind) && !f.byStretches(p, kind) {
		return
	}
	for _, c := range p.combining {
		f.replaced(c.code)
		for i := range c.acc {
			f.n.sizes[c.acc[i].class][c.acc[i].index] = jit.Lanes
			f.n.sizes[c.other[i].class][c.other[i].index] = 0
		}
	}
	p.combining = nil
}

// replaced takes instructions that kernels stand for out of the counts of reads.
func (f *fuser) replaced(code []instr) {
	for i := range code {
		code[i].registers(func(r *register, result bool) {
			if !result {
				f.reads[*r]--
			}
		})
	}
}

// copies is how many sets of running values a short loop has, so that one need
// not wait for the other.
const copies = 4

// atOnce makes a kernel that goes through all inner points and folds the lanes;
// false where their number is no multiple of its lanes or too large.
func (f *fuser) atOnce(p *phase, kind kind) bool {
	inner := &f.n.inner
	sets, width := copies, kind.width()
	if inner.row%(copies*width) != 0 || len(p.element) > 4*copies || copies*len(p.running) > jit.MostRunning() {
		sets = 1
	}
	long := inner.row > lanes // for registers of lanes
	if inner.rows != 1 || inner.row > longStretch || inner.row%(sets*width) != 0 {
		return false
	}
	s := f.segmentOf(kind)
	running := make([]map[register]jit.Value, sets)
	for i := range running {
		s.k.At(i)
		running[i] = s.begin(p)
		if ahead, ok := s.loop(p, running[i]); !ok || len(ahead) > 0 {
			return false
		}
	}
	if long && f.n.needLanes(s.arrays) {
		return false
	}
	s.after()
	for _, c := range p.combining {
		for i := range running {
			if !s.combine(c, running[0], running[i], i > 0) {
				return false
			}
		}
		if !s.fold(c) {
			return false
		}
	}
	f.replaced(p.element)
	p.element, p.whole = []instr{s.kernel()}, true
	return true
}

// byStretches makes a kernel for a stretch of inner points, which merges its
// running values with those of the stretches before, and one that folds the lanes
// at the end.
func (f *fuser) byStretches(p *phase, kind kind) bool {
	s, last := f.segmentOf(kind), f.segmentOf(kind)
	running := s.begin(p)
	ahead, ok := s.loop(p, running)
	if !ok {
		return false
	}
	looped := len(s.code)
	s.after()
	for _, c := range p.combining {
		if !s.combine(c, running, s.load(c), true) {
			return false
		}
		s.keep(c)
		clear(last.values)
		for acc, v := range last.load(c) {
			last.values[acc] = v
		}
		if !last.fold(c) {
			return false
		}
	}
	f.replaced(s.code[:looped])
	p.element, p.finish = append(ahead, s.kernel()), []instr{last.kernel()}
	return true
}

// begin gives running values their registers.
func (s *segment) begin(p *phase) map[register]jit.Value {
	clear(s.values)
	clear(s.reads)
	s.written = nil
	running := map[register]jit.Value{}
	for _, r := range p.running {
		running[r.acc] = s.k.Running(wordType(r.acc), wordOf(r.acc, r.init))
		s.values[r.acc] = running[r.acc]
	}
	return running
}

// wordOf returns the first value of a running one by its bits.
func wordOf(r register, v scalar.Value) uint64 {
	switch r.class {
	case classF64:
		return math.Float64bits(v.F)
	case classF32:
		return uint64(math.Float32bits(float32(v.F)))
	case classLong:
		return uint64(v.I)
	}
	return uint64(uint32(v.I))
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

// after ends the loop, whose values are gone but for the running ones.
func (s *segment) after() {
	s.k.After()
	clear(s.values)
	clear(s.single)
}
