package cpu

import (
	"maps"
	"math"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxBlockPoints is the most inner points that a kernel takes at once where it needs no
// registers of lanes.
const maxBlockPoints = 4096

// blockLimit is how many inner points the code of a phase takes at once. Sums begin anew in each stretch, so
// that few terms are added to one lane one after the other.
func (p *phase) blockLimit() int {
	switch {
	case p.sets > 1:
		return min(maxBlockPoints, p.even*fusion.SumBlock)
	case p.sets == 1:
		return min(maxBlockPoints, oneSetPoints())
	}
	return maxBlockPoints
}

// oneSetPoints is how many inner points a kernel with one set of running values takes at once.
func oneSetPoints() int { return 2 * fusion.SumBlock * jit.Width() }

// fuseReduction makes one kernel of what a reduction does with inner points, where the
// lanes are these: running values stay in registers.
func (f *fuser) fuseReduction(p *phase) {
	if !f.n.wideInner || !p.loop || len(p.merges) == 0 {
		return
	}
	kind, ok := kindOfAccumulators(p.accumulators)
	if !ok || len(p.accumulators) > jit.MaxAccumulators() {
		return
	}
	if inner := &f.n.inner; inner.rows == 1 && inner.row <= oneSetPoints() { // one block is all
		f.dropCompensation(p, 0)
		p.compensated = nil
	}
	switch {
	case f.reduceWhole(p, kind):
		f.dropCompensation(p, 0)
		p.compensated = nil
	case f.reduceBlocks(p, kind):
		f.dropCompensation(p, jit.Lanes)
	default:
		return
	}
	for _, c := range p.merges {
		f.uncount(c.code)
		for i := range c.acc {
			f.n.sizes[c.acc[i].class][c.acc[i].index] = jit.Lanes
			f.n.sizes[c.other[i].class][c.other[i].index] = 0
		}
	}
	p.merges = nil
}

// uncount takes instructions that kernels stand for out of the counts of reads.
func (f *fuser) uncount(code []instr) {
	for i := range code {
		code[i].registers(func(r *register, result bool) {
			if !result {
				f.reads[*r]--
			}
		})
	}
}

// accumulatorSets is how many sets of running values a short loop has, so that one need
// not wait for the other.
const accumulatorSets = 4

// reduceWhole makes a kernel that goes through all inner points and folds the lanes;
// false where their number is no multiple of its lanes or too large.
func (f *fuser) reduceWhole(p *phase, kind laneKind) bool {
	inner := &f.n.inner
	sets, width := accumulatorSets, kind.width()
	if inner.row%(accumulatorSets*width) != 0 || !f.fitsRegisters(p) {
		sets = 1
	}
	long := inner.row > lanes // for registers of lanes
	if inner.rows != 1 || inner.row > maxBlockPoints || inner.row%(sets*width) != 0 {
		return false
	}
	s := f.segmentOf(kind)
	running := make([]map[register]jit.Value, sets)
	for i := range running {
		s.k.At(i)
		running[i] = s.initAccumulators(p)
		if ahead, ok := s.loop(p, running[i]); !ok || len(ahead) > 0 {
			return false
		}
	}
	if long && f.n.usesLaneRegisters(s.arrays) {
		return false
	}
	s.after()
	for _, c := range p.merges {
		for i := range running {
			if !s.combine(c, running[0], running[i], i > 0) {
				return false
			}
		}
		if !s.fold(c) {
			return false
		}
	}
	f.uncount(p.element)
	p.element, p.whole = []instr{s.kernel()}, true
	return true
}

// reduceBlocks makes a kernel for a stretch of inner points, which merges its
// running values with those of the stretches before, and one that folds the lanes
// at the end. Rows that are long enough have one for whole turns of several sets of
// running values, and one for what is left.
func (f *fuser) reduceBlocks(p *phase, kind laneKind) bool {
	last := f.segmentOf(kind)
	if !last.total(p) {
		return false
	}
	for _, c := range p.merges {
		if !p.isCompensated(c) {
			maps.Copy(last.values, last.loadMerge(c))
		}
		if !last.fold(c) {
			return false
		}
	}
	one, ahead, ok := f.blockKernel(p, kind, 1)
	if !ok {
		return false
	}
	f.uncount(one.code[:one.looped])
	p.sets, p.finish = 1, []instr{last.kernel()}
	if even := accumulatorSets * kind.width(); f.n.inner.row > oneSetPoints() && len(ahead) == 0 && f.fitsRegisters(p) {
		if several, _, ok := f.blockKernel(p, kind, accumulatorSets); ok {
			p.sets, p.even = accumulatorSets, even
			p.element, p.tail = []instr{several.kernel()}, []instr{one.kernel()}
			return true
		}
	}
	p.element = append(ahead, one.kernel())
	return true
}

// fitsRegisters reports whether there are registers for several sets of running values, and of
// what an inner point takes.
func (f *fuser) fitsRegisters(p *phase) bool {
	return len(p.element) <= 4*accumulatorSets && accumulatorSets*len(p.accumulators) <= jit.MaxAccumulators()
}

// blockKernel makes the kernel of a stretch with so many sets of running values.
func (f *fuser) blockKernel(p *phase, kind laneKind, sets int) (s *segment, ahead []instr, ok bool) {
	s = f.segmentOf(kind)
	running := make([]map[register]jit.Value, sets)
	for i := range running {
		s.k.At(i)
		running[i] = s.initAccumulators(p)
		if ahead, ok = s.loop(p, running[i]); !ok {
			return nil, nil, false
		}
	}
	s.looped = len(s.code)
	s.after()
	for _, c := range p.merges {
		for i := range running {
			if !s.combine(c, running[0], running[i], i > 0) {
				return nil, nil, false
			}
		}
		if !p.isCompensated(c) {
			if !s.combine(c, running[0], s.loadMerge(c), true) {
				return nil, nil, false
			}
			s.storeMerge(c)
		}
	}
	return s, ahead, s.carry(p)
}

// initAccumulators gives running values their registers.
func (s *segment) initAccumulators(p *phase) map[register]jit.Value {
	clear(s.values)
	clear(s.reads)
	s.written = nil
	running := map[register]jit.Value{}
	for _, r := range p.accumulators {
		running[r.acc] = s.k.Accumulator(wordType(r.acc), wordOf(r.acc, r.init))
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
		case s.canHoist(in):
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
	for _, r := range p.accumulators {
		if s.k.IsBool(s.values[r.acc]) {
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
	clear(s.uniform)
}

// mergeLanes makes running values those of a, or where merged is set those of a
// merged with those of b.
func (s *segment) combine(c *laneMerge, a, b map[register]jit.Value, merged bool) bool {
	if !merged {
		for _, acc := range c.acc {
			s.values[acc] = a[acc]
		}
		return true
	}
	for i, acc := range c.acc {
		if _, known := s.values[acc]; !known {
			s.values[acc] = a[acc]
		}
		s.values[c.other[i]] = b[acc]
	}
	return s.addAll(c.code)
}

// fold merges the lanes of running values, by halves, and stores them.
func (s *segment) fold(c *laneMerge) bool {
	for by := s.k.Width() / 2; by > 0; by /= 2 {
		for i, acc := range c.acc {
			s.values[c.other[i]] = s.k.Rotate(s.values[acc], by)
		}
		if !s.addAll(c.code) {
			return false
		}
	}
	s.storeMerge(c)
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

// loadMerge reads the lanes of running values.
func (s *segment) loadMerge(c *laneMerge) map[register]jit.Value {
	out := map[register]jit.Value{}
	for _, acc := range c.acc {
		out[acc] = s.loadLanes(acc)
	}
	return out
}

// loadLanes reads the lanes of a value that one register has.
func (s *segment) loadLanes(r register) jit.Value {
	return s.k.Load(s.array(fusedArray{reg: r, single: true}), wordType(r))
}

// storeLanes writes them.
func (s *segment) storeLanes(r register) {
	s.k.Store(s.array(fusedArray{reg: r, single: true, stores: true}), wordType(r), s.values[r])
}

// keep writes the lanes of running values.
func (s *segment) storeMerge(c *laneMerge) {
	for _, acc := range c.acc {
		s.storeLanes(acc)
	}
}

// compensate has a running sum, in the register acc, go by blocks.
func (m *nestBuilder) compensate(running scalar.Expr, acc register) {
	x := compensated{acc: acc, sum: m.n.sizes.add(classF32, m.width()), err: m.n.sizes.add(classF32, m.width())}
	sum, rest := scalar.FreeVar(running.Name+"_sum", ir.F32), scalar.FreeVar(running.Name+"_rest", ir.F32)
	m.named[sum.Name] = value{reg: x.sum, level: perElement, wide: true}
	m.named[rest.Name] = value{reg: x.err, level: perElement, wide: true}
	all := []scalar.Expr{running, sum, rest}
	set := func(to []register, list ...scalar.Expr) []instr {
		m.invalidate(all)
		return m.capture(func() { m.moveAll(to, list) })
	}
	next, left := scalar.TwoSum(sum, running)
	m.p.carry = append(m.p.carry, set([]register{x.sum, x.err, acc}, next, scalar.Add(rest, left), scalar.Const(ir.F32, 0))...)
	m.p.total = append(m.p.total, set([]register{acc}, scalar.Compensated(sum, rest))...)
	m.invalidate(all)
	m.p.compensated = append(m.p.compensated, x)
}

// moveAll computes expressions, and then moves them to registers.
func (m *nestBuilder) moveAll(to []register, list []scalar.Expr) {
	values := make([]value, len(list))
	for i, e := range list {
		values[i] = m.splat(m.expr(e))
	}
	for i, v := range values {
		m.move(to[i], v, perElement)
	}
}

// dropCompensation takes the code of blocks out where kernels stand for it, which leave so many
// lanes between them.
func (f *fuser) dropCompensation(p *phase, lanes int) {
	for _, x := range p.compensated {
		f.n.sizes[classF32][x.sum.index], f.n.sizes[classF32][x.err.index] = lanes, lanes
	}
	f.uncount(p.carry)
	f.uncount(p.total)
	p.carry, p.total = nil, nil
}

// compensate adds what a stretch came to in s.values to the blocks before.
func (s *segment) carry(p *phase) bool {
	for _, x := range p.compensated {
		s.values[x.sum], s.values[x.err] = s.loadLanes(x.sum), s.loadLanes(x.err)
	}
	if !s.addAll(p.carry) {
		return false
	}
	for _, x := range p.compensated {
		s.storeLanes(x.sum)
		s.storeLanes(x.err)
	}
	return true
}

// total makes running values of what the blocks came to.
func (s *segment) total(p *phase) bool {
	for _, x := range p.compensated {
		s.values[x.sum], s.values[x.err] = s.loadLanes(x.sum), s.loadLanes(x.err)
	}
	return s.addAll(p.total)
}

// isCompensated reports whether running values go by blocks.
func (p *phase) isCompensated(c *laneMerge) bool {
	for _, x := range p.compensated {
		if x.acc == c.acc[0] {
			return true
		}
	}
	return false
}

// sumBlocks counts the steps of a block of sums, each of which adds some terms to one lane.
type sumBlocks struct {
	code *boundPhase
	n    int // lanes
	done int
}

// add counts terms, and carries where a block is full. To begin the code for that takes as
// long as some terms do, so that blocks are twice as long as need be.
func (b *sumBlocks) add(terms int) {
	if b.done += terms; b.done >= 2*fusion.SumBlock && len(b.code.carry) > 0 {
		runAll(b.code.carry, b.n)
		b.done = 0
	}
}

// end leaves the sums in the running values.
func (b *sumBlocks) end() {
	if len(b.code.carry) > 0 {
		runAll(b.code.carry, b.n)
		runAll(b.code.total, b.n)
	}
}

// maxUnroll and maxStreams are how many inner points one kernel takes at most where
// lanes are outer points, and how many places in memory it reads from.
const (
	maxUnroll  = 8
	maxStreams = 24
)

// unroll makes a kernel of what a reduction does with several inner points, one after
// the other, where the lanes are outer points: running values then stay in registers
// between them, and less time goes into beginning kernels than into short rows of lanes.
func (f *fuser) unroll(p *phase) {
	inner := f.n.inner.scalars()
	if f.n.wideInner || !p.loop || len(p.accumulators) == 0 || len(p.inner) > 0 || len(inner) == 0 {
		return
	}
	last := inner[len(inner)-1]
	loads := 0
	for i := range p.element {
		in := &p.element[i]
		if in.kind == opLoad {
			loads++
		} else if in.readsAny(last.reg) {
			return
		}
	}
	times := maxUnroll
	for times*loads > maxStreams || times > last.size || len(inner) > 1 && last.size%times != 0 {
		times /= 2
	}
	if times > 1 {
		f.unrolledKernel(p, last.reg, times)
	}
}

// several makes the kernel of an unrolled loop, along whose last coordinate, in a
// register, the points lie.
func (f *fuser) unrolledKernel(p *phase, along register, times int) {
	s := f.segment()
	for i := range times {
		for k := range p.element {
			in := p.element[k].shifted(along, i)
			if !s.add(&in) && in.kind != opSplat {
				return
			}
		}
	}
	for _, r := range s.written {
		if f.reads[r] > s.reads[r]/times { // others read it
			s.k.Store(s.array(fusedArray{reg: r, stores: true}), s.storedAs(r), s.values[r])
		}
	}
	p.unrolled, p.factor = []instr{s.kernel()}, times
}

// readsAny reports whether an instruction reads a register other than for an address.
func (in *instr) readsAny(r register) bool {
	found := false
	in.registers(func(x *register, result bool) { found = found || !result && *x == r })
	return found
}

// shifted returns a load as one from where a coordinate, in a register, is larger by some;
// other instructions as they are.
func (in *instr) shifted(coordinate register, by int) instr {
	out := *in
	if in.kind == opLoad {
		at := *in.at
		at.base += by * at.coef(coordinate)
		out.at = &at
	}
	return out
}
