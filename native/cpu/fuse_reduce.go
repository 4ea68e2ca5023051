package cpu

import (
	"maps"
	"math"
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// maxBlockPoints is the maximum number of inner points of one kernel call without lane
// registers.
const maxBlockPoints = 4096

// blockLimit returns the maximum number of inner points of one call of the phase's code. A sum
// restarts in each block, which bounds the length of a lane's chain of additions.
func (p *phase) blockLimit() int {
	switch {
	case p.sets > 1:
		return min(maxBlockPoints, p.even*fusion.SumBlockLen)
	case p.sets == 1:
		return min(maxBlockPoints, oneSetPoints())
	}
	return maxBlockPoints
}

// oneSetPoints returns the maximum number of inner points of one call of a kernel with one set
// of accumulators.
func oneSetPoints() int { return 2 * fusion.SumBlockLen * jit.Width() }

// fuseReduction makes one kernel of the loop over inner points of a reduction whose lanes are
// inner points, with the accumulators in machine registers.
func (f *fuser) fuseReduction(p *phase) {
	if !f.n.wideInner || !p.loop || len(p.merges) == 0 {
		return
	}
	kind, ok := kindOfAccumulators(p.accumulators)
	if !ok || len(p.accumulators) > jit.MaxAccumulators() {
		return
	}
	if inner := &f.n.inner; inner.rows == 1 && inner.row <= oneSetPoints() { // a single block
		f.dropCompensation(p, 0)
		p.compensated = nil
	}
	switch {
	case f.reduceWhole(p, kind):
		f.dropCompensation(p, 0)
		p.compensated = nil
	case f.reduceBlocks(p, kind):
		f.dropCompensation(p, jit.MaxLanes)
	default:
		return
	}
	for _, c := range p.merges {
		f.uncount(c.code)
		for i := range c.acc {
			f.n.sizes[c.acc[i].class][c.acc[i].index] = jit.MaxLanes
			f.n.sizes[c.other[i].class][c.other[i].index] = 0
		}
	}
	p.merges = nil
}

// uncount subtracts the reads of instructions that a kernel replaces.
func (f *fuser) uncount(code []instr) {
	for i := range code {
		code[i].registers(func(r *register, result bool) {
			if !result {
				f.reads[*r]--
			}
		})
	}
}

// accumulatorSets is the number of independent copies of the accumulators in an unrolled
// kernel, which hides the latency of the operations.
const accumulatorSets = 4

// reduceWhole makes a kernel for all inner points that also folds the lanes; false where they fill no
// vectors or are too many.
func (f *fuser) reduceWhole(p *phase, kind laneKind) bool {
	inner := &f.n.inner
	sets, width := f.setsOf(p, inner.row, kind), kind.width()
	long := inner.row > blockLanes // too long for lane registers
	overlap := inner.row%width != 0
	if inner.rows != 1 || inner.row > maxBlockPoints || inner.row%(sets*width) != 0 && (sets > 1 || !mayOverlap(inner.row)) {
		return false
	}
	s := f.segmentOf(kind)
	s.k.Full = !overlap
	accs := make([]map[register]jit.Value, sets)
	for i := range accs {
		s.k.At(i)
		accs[i] = s.initAccumulators(p)
		if hoisted, ok := s.loop(p, accs[i]); !ok || len(hoisted) > 0 {
			return false
		}
	}
	if long && f.n.usesLaneRegisters(s.arrays) {
		return false
	}
	s.after()
	for _, c := range p.merges {
		for i := range accs {
			if !s.combine(c, accs[0], accs[i], i > 0) {
				return false
			}
		}
		if !s.fold(c) {
			return false
		}
	}
	f.uncount(p.element)
	p.element, p.whole = []instr{s.kernel()}, true
	p.element[0].fused.kernels.Overlap = overlap
	return true
}

// reduceBlocks makes a kernel for a block of inner points, which merges its accumulators with
// those of the blocks before, and one that folds the lanes at the end. Long rows have a kernel
// with several sets of accumulators, and one for the remainder.
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
	one, hoisted, ok := f.blockKernel(p, kind, 1)
	if !ok {
		return false
	}
	f.uncount(one.code[:one.looped])
	p.sets, p.finish = 1, []instr{last.kernel()}
	if even := accumulatorSets * kind.width(); f.n.inner.row > oneSetPoints() && len(hoisted) == 0 && f.fitsRegisters(p) {
		if several, _, ok := f.blockKernel(p, kind, accumulatorSets); ok {
			p.sets, p.even = accumulatorSets, even
			p.element, p.tail = []instr{several.kernel()}, []instr{one.kernel()}
			return true
		}
	}
	p.element = append(hoisted, one.kernel())
	if len(hoisted) == 0 {
		f.sweepInner(p, one)
	}
	return true
}

// sweepInner lets one call of a phase's kernel do the rows along the last coordinate of the inner points that
// is not in the lanes.
func (f *fuser) sweepInner(p *phase, s *segment) {
	inner, rows := &f.n.inner, f.n.inner.scalars()
	if len(p.inner) > 0 || inner.rows < 2 || inner.row > oneSetPoints() || inner.row%s.kind.width() != 0 && !mayOverlap(inner.row) {
		return
	}
	last, x := rows[len(rows)-1], p.element[0].fused
	if inner.row > blockLanes && f.n.usesLaneRegisters(x.arrays) || slices.ContainsFunc(x.arrays, func(a fusedArray) bool { return a.access == nil && a.reg == last.reg }) {
		return
	}
	if steps := s.steps(last.reg, 1); steps != nil {
		x.kernels.Strides, x.kernels.Overlap, p.sweeps = steps, inner.row%s.kind.width() != 0, true
	}
}

// setsOf returns the number of sets of accumulators for a row: about [accumulatorSets] that divide its vectors, or one.
func (f *fuser) setsOf(p *phase, row int, kind laneKind) int {
	for _, sets := range []int{accumulatorSets, 5, 3, 2} {
		if row%(sets*kind.width()) == 0 && f.fitsRegisters(p) && sets*len(p.accumulators) <= jit.MaxAccumulators() {
			return sets
		}
	}
	return 1
}

// fitsRegisters reports whether several sets of accumulators and of an inner point's values
// fit the machine registers.
func (f *fuser) fitsRegisters(p *phase) bool {
	return len(p.element) <= 4*accumulatorSets && accumulatorSets*len(p.accumulators) <= jit.MaxAccumulators()
}

// blockKernel makes the kernel of a block with the given number of accumulator sets.
func (f *fuser) blockKernel(p *phase, kind laneKind, sets int) (s *segment, hoisted []instr, ok bool) {
	s = f.segmentOf(kind)
	s.k.Full = sets > 1 // what remains has a kernel of its own
	accs := make([]map[register]jit.Value, sets)
	for i := range accs {
		s.k.At(i)
		accs[i] = s.initAccumulators(p)
		if hoisted, ok = s.loop(p, accs[i]); !ok {
			return nil, nil, false
		}
	}
	s.looped = len(s.code)
	s.after()
	for _, c := range p.merges {
		for i := range accs {
			if !s.combine(c, accs[0], accs[i], i > 0) {
				return nil, nil, false
			}
		}
		if !p.isCompensated(c) {
			if !s.combine(c, accs[0], s.loadMerge(c), true) {
				return nil, nil, false
			}
			s.storeMerge(c)
		}
	}
	return s, hoisted, s.carry(p)
}

// initAccumulators creates the accumulators of one set.
func (s *segment) initAccumulators(p *phase) map[register]jit.Value {
	clear(s.values)
	clear(s.reads)
	s.written = nil
	accs := map[register]jit.Value{}
	for _, r := range p.accumulators {
		accs[r.acc] = s.k.Accumulator(wordType(r.acc), wordOf(r.acc, r.init))
		s.values[r.acc] = accs[r.acc]
	}
	return accs
}

// wordOf returns the bits of an accumulator's initial value.
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

// loop adds the work on an inner point to the kernel, and returns the instructions to hoist
// before it. It reports false where others remain, or where lanes other than accumulators are
// used later.
func (s *segment) loop(p *phase, accs map[register]jit.Value) (hoisted []instr, ok bool) {
	for i := range p.element {
		in := &p.element[i]
		switch {
		case s.add(in):
		case s.canHoist(in):
			hoisted = append(hoisted, *in)
		default:
			return nil, false
		}
	}
	for _, r := range s.written {
		if _, carried := accs[r]; !carried && s.fuser.reads[r] > s.reads[r] {
			return nil, false
		}
	}
	for _, r := range p.accumulators {
		if s.k.IsBool(s.values[r.acc]) {
			return nil, false
		}
		s.k.Next(accs[r.acc], s.values[r.acc])
	}
	return hoisted, true
}

// after ends the loop. Only the accumulators are live after it.
func (s *segment) after() {
	s.k.After()
	clear(s.values)
	clear(s.uniform)
}

// combine sets the current accumulators to a, or with merged merges them (initially a) with b.
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

// fold merges the lanes of accumulators by halves, and stores them.
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

// loadMerge loads the lanes of the accumulators of a merge.
func (s *segment) loadMerge(c *laneMerge) map[register]jit.Value {
	out := map[register]jit.Value{}
	for _, acc := range c.acc {
		out[acc] = s.loadLanes(acc)
	}
	return out
}

// loadLanes loads one vector of lanes of a register.
func (s *segment) loadLanes(r register) jit.Value {
	return s.k.Load(s.array(fusedArray{reg: r, scalar: true}), wordType(r))
}

// storeLanes stores the current value of a register as one vector.
func (s *segment) storeLanes(r register) {
	s.k.Store(s.array(fusedArray{reg: r, scalar: true, stores: true}), wordType(r), s.values[r])
}

// storeMerge stores the lanes of the accumulators of a merge.
func (s *segment) storeMerge(c *laneMerge) {
	for _, acc := range c.acc {
		s.storeLanes(acc)
	}
}

// compensate splits the sum of an accumulator into blocks and compensates the rounding errors
// of adding them up (TwoSum).
func (m *nestBuilder) compensate(sumVar scalar.Expr, acc register) {
	x := compensated{acc: acc, sum: m.n.sizes.add(classF32, m.width()), err: m.n.sizes.add(classF32, m.width())}
	sum, rest := scalar.FreeVar(sumVar.Name+"_sum", ir.F32), scalar.FreeVar(sumVar.Name+"_rest", ir.F32)
	m.named[sum.Name] = value{reg: x.sum, level: perElement, wide: true}
	m.named[rest.Name] = value{reg: x.err, level: perElement, wide: true}
	all := []scalar.Expr{sumVar, sum, rest}
	set := func(to []register, list ...scalar.Expr) []instr {
		m.invalidate(all)
		return m.capture(func() { m.moveAll(to, list) })
	}
	next, left := scalar.TwoSum(sum, sumVar)
	m.p.carry = append(m.p.carry, set([]register{x.sum, x.err, acc}, next, scalar.Add(rest, left), scalar.Const(ir.F32, 0))...)
	m.p.total = append(m.p.total, set([]register{acc}, scalar.Compensated(sum, rest))...)
	m.invalidate(all)
	m.p.compensated = append(m.p.compensated, x)
}

// moveAll computes all expressions before it moves any to its register.
func (m *nestBuilder) moveAll(to []register, list []scalar.Expr) {
	values := make([]value, len(list))
	for i, e := range list {
		values[i] = m.splat(m.expr(e))
	}
	for i, v := range values {
		m.move(to[i], v, perElement)
	}
}

// dropCompensation removes the code of blocks that kernels include. The registers of the
// compensated sums keep the given number of lanes.
func (f *fuser) dropCompensation(p *phase, lanes int) {
	for _, x := range p.compensated {
		f.n.sizes[classF32][x.sum.index], f.n.sizes[classF32][x.err.index] = lanes, lanes
	}
	f.uncount(p.carry)
	f.uncount(p.total)
	p.carry, p.total = nil, nil
}

// carry adds the block sum in s.values to the blocks before.
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

// total moves the compensated totals to the accumulators.
func (s *segment) total(p *phase) bool {
	for _, x := range p.compensated {
		s.values[x.sum], s.values[x.err] = s.loadLanes(x.sum), s.loadLanes(x.err)
	}
	return s.addAll(p.total)
}

// isCompensated reports whether the sums of a merge are split into blocks.
func (p *phase) isCompensated(c *laneMerge) bool {
	return slices.ContainsFunc(p.compensated, func(x compensated) bool { return x.acc == c.acc[0] })
}

// sumBlocks counts the terms of the current block of a compensated sum.
type sumBlocks struct {
	code *boundPhase
	n    int // lanes
	done int
}

// add counts terms, and carries a full block. Blocks are twice as long as accuracy needs, as
// starting the code for it takes as long as several terms.
func (b *sumBlocks) add(terms int) {
	if b.done += terms; b.done >= 2*fusion.SumBlockLen && len(b.code.carry) > 0 {
		runAll(b.code.carry, b.n)
		b.done = 0
	}
}

// end moves the totals to the accumulators.
func (b *sumBlocks) end() {
	if len(b.code.carry) > 0 {
		runAll(b.code.carry, b.n)
		runAll(b.code.total, b.n)
	}
}

// maxUnroll is the maximum number of inner points of one kernel call where lanes are outer
// points, maxStreams the maximum number of addresses it reads from.
const (
	maxUnroll  = 8
	maxStreams = 24
)

// unroll makes a kernel for several consecutive inner points of a reduction whose lanes are outer
// points: the accumulators stay in registers between them, and short rows of lanes have less call
// overhead.
func (f *fuser) unroll(p *phase) {
	if times := f.n.unrolls(p); times > 1 {
		inner := f.n.inner.scalars()
		f.unrolledKernel(p, inner[len(inner)-1].reg, times)
	}
}

// unrolls returns the number of inner points for which a phase may be unrolled, 1 for none.
func (n *nest) unrolls(p *phase) int {
	inner := n.inner.scalars()
	if n.wideInner || !p.loop || len(p.accumulators) == 0 || len(inner) == 0 {
		return 1
	}
	last := inner[len(inner)-1]
	loads := 0
	for i := range p.inner {
		in := &p.inner[i]
		switch {
		case in.kind == opSplat && in.args[0] != last.reg:
		case in.kind == opLoad && in.isScalarAccess():
			loads++
		default:
			return 1
		}
	}
	for i := range p.element {
		in := &p.element[i]
		if in.kind == opLoad {
			loads++
		} else if in.readsAny(last.reg) {
			return 1
		}
	}
	times := maxUnroll
	for times > 1 && (times*loads > maxStreams || times > last.size || len(inner) > 1 && last.size%times != 0) {
		times /= 2
	}
	return times
}

// unrolledKernel makes the kernel for the given number of points along a coordinate, which is
// in a register.
func (f *fuser) unrolledKernel(p *phase, along register, times int) {
	s := f.segment()
	for i := range times {
		for k := range p.inner { // numbers that are the same for all lanes
			in := p.inner[k].shifted(along, i)
			if in.kind == opLoad && !s.addScalar(&in) {
				return
			}
		}
		for k := range p.element {
			in := p.element[k].shifted(along, i)
			if !s.add(&in) && in.kind != opSplat {
				return
			}
		}
	}
	for _, r := range s.written {
		if _, uniform := s.uniform[r]; !uniform && f.reads[r] > s.reads[r]/times { // others read it
			s.k.Store(s.array(fusedArray{reg: r, stores: true}), s.storedAs(r), s.values[r])
		}
	}
	kernel := s.kernel()
	if steps := s.steps(along, times); steps != nil && len(f.n.inner.scalars()) == 1 {
		kernel.fused.kernels.Strides = steps
	}
	p.unrolled, p.factor = []instr{kernel}, times
}

// steps returns, for each array of a kernel, the bytes from a point to the one the given number of points later
// along a coordinate, so that a call can do several times that number; nil where they do not fit 32 bits.
func (s *segment) steps(along register, points int) []int {
	out := make([]int, len(s.arrays))
	for i, a := range s.arrays {
		if a.access == nil {
			continue
		}
		out[i] = points * a.access.at.coef(along) * a.access.buf.dtype.Size()
		if int(int32(out[i])) != out[i] {
			return nil
		}
	}
	return out
}

// readsAny reports whether an instruction reads a register other than for an address.
func (in *instr) readsAny(r register) bool {
	found := false
	in.registers(func(x *register, result bool) { found = found || !result && *x == r })
	return found
}

// shifted returns a load moved along a coordinate; other instructions are unchanged.
func (in *instr) shifted(coordinate register, by int) instr {
	out := *in
	if in.kind == opLoad {
		at := *in.at
		at.base += by * at.coef(coordinate)
		out.at = &at
	}
	return out
}
