package cpu

import (
	"maps"
	"math"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// longStretch is the most inner points that a kernel takes at once where it needs no
// registers of lanes.
const longStretch = 4096

// longest is how many inner points the code of a phase takes at once. Sums begin anew in each stretch, so
// that few terms are added to one lane one after the other.
func (p *phase) longest() int {
	switch {
	case p.sets > 1:
		return min(longStretch, p.even*fusion.SumBlock)
	case p.sets == 1:
		return min(longStretch, oneStretch())
	}
	return longStretch
}

// oneStretch is how many inner points a kernel with one set of running values takes at once.
func oneStretch() int { return 2 * fusion.SumBlock * jit.Width() }

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
	if inner := &f.n.inner; inner.rows == 1 && inner.row <= oneStretch() { // one block is all
		f.uncarried(p, 0)
		p.carried = nil
	}
	switch {
	case f.atOnce(p, kind):
		f.uncarried(p, 0)
		p.carried = nil
	case f.byStretches(p, kind):
		f.uncarried(p, jit.Lanes)
	default:
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
	if inner.row%(copies*width) != 0 || !f.light(p) {
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
// at the end. Rows that are long enough have one for whole turns of several sets of
// running values, and one for what is left.
func (f *fuser) byStretches(p *phase, kind kind) bool {
	last := f.segmentOf(kind)
	if !last.total(p) {
		return false
	}
	for _, c := range p.combining {
		if !p.isCarried(c) {
			maps.Copy(last.values, last.load(c))
		}
		if !last.fold(c) {
			return false
		}
	}
	one, ahead, ok := f.stretchOf(p, kind, 1)
	if !ok {
		return false
	}
	f.replaced(one.code[:one.looped])
	p.sets, p.finish = 1, []instr{last.kernel()}
	if even := copies * kind.width(); f.n.inner.row > oneStretch() && len(ahead) == 0 && f.light(p) {
		if several, _, ok := f.stretchOf(p, kind, copies); ok {
			p.sets, p.even = copies, even
			p.element, p.tail = []instr{several.kernel()}, []instr{one.kernel()}
			return true
		}
	}
	p.element = append(ahead, one.kernel())
	return true
}

// light reports whether there are registers for several sets of running values, and of
// what an inner point takes.
func (f *fuser) light(p *phase) bool {
	return len(p.element) <= 4*copies && copies*len(p.running) <= jit.MostRunning()
}

// stretchOf makes the kernel of a stretch with so many sets of running values.
func (f *fuser) stretchOf(p *phase, kind kind, sets int) (s *segment, ahead []instr, ok bool) {
	s = f.segmentOf(kind)
	running := make([]map[register]jit.Value, sets)
	for i := range running {
		s.k.At(i)
		running[i] = s.begin(p)
		if ahead, ok = s.loop(p, running[i]); !ok {
			return nil, nil, false
		}
	}
	s.looped = len(s.code)
	s.after()
	for _, c := range p.combining {
		for i := range running {
			if !s.combine(c, running[0], running[i], i > 0) {
				return nil, nil, false
			}
		}
		if !p.isCarried(c) {
			if !s.combine(c, running[0], s.load(c), true) {
				return nil, nil, false
			}
			s.keep(c)
		}
	}
	return s, ahead, s.carry(p)
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
