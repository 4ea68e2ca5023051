package serial

import (
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// vectorLanes is the number of vector lanes of targets with one thread, and wideLanes the
// number of independent accumulators of a reduction, to hide the latency of their dependency
// chains.
const (
	vectorLanes = 4
	wideLanes   = 16
	// maxWideWeight is the maximum number of operations of an element that is reduced in
	// wideLanes accumulators.
	maxWideWeight = 16
	// maxColumnWeight is the maximum number of operations of an element that is reduced for
	// several vectors of rows at once. Those of a padded tensor's guard are among them.
	maxColumnWeight = 64
)

// reduce writes the rows of a reduction over some points, one by one, or vectorised across adjacent rows if
// these read adjacent elements. Sums of f32 are blocked by the given number of terms.
func (s *serial) reduce(code *fusion.Code, adjacent bool, points, block int) {
	columns := adjacent && len(code.Outer) > 0 && SizeOf(code.Outer[len(code.Outer)-1:]) >= vectorLanes
	if columns && points > 0 && s.columns(code, block) {
		return
	}
	rows := len(code.Outer)
	if columns {
		rows--
	} else {
		s.keepElements(code)
	}
	var write func(i int)
	write = func(i int) {
		if i < len(code.Outer) {
			s.collapsed(code.Outer[i:i+1], i == rows, func() { write(i + 1) })
			return
		}
		for _, stage := range code.Stages {
			s.stage(code, newFold(s, stage.Reductions, block, points), stage, points, !columns)
		}
		s.storeAll(code.Rows)
		if len(code.Points) > 0 && points > 0 {
			s.split(code.Inner, storedBy(code.Points), func(outer, flat []scalar.Expr) {
				s.loops(outer, func() { s.collapsed(flat, !columns, func() { s.storeAll(code.Points) }) })
			})
		}
	}
	write(0)
}

// loadsAdjacent reports whether adjacent rows read elements that are adjacent, or a small stride apart, or the
// same, inside the guards of their loads: those of a convolution of planes do.
func (s *serial) loadsAdjacent(code *fusion.Code) bool {
	if len(code.Outer) == 0 {
		return false
	}
	last := code.Outer[len(code.Outer)-1]
	adjacent, apart := false, false
	for _, r := range code.Stages[0].Reductions {
		for _, e := range r.Elements {
			e = s.e.Simplify(e)
			scalar.Walk(scalar.Assume(e, guardsOf(e)...), func(n scalar.Expr) {
				if !isLoad(n) {
					return
				}
				step, known := StepOf(n.Args[0], last.Name)
				near := known && step >= 0 && step <= vectorLanes
				adjacent, apart = adjacent || near && step > 0, apart || !near
			})
		}
	}
	return adjacent && !apart
}

// stage writes the reductions of a stage over the inner points, vectorised along them if lanes
// is set.
func (s *serial) stage(code *fusion.Code, f *fold, stage fusion.Stage, points int, lanes bool) {
	for _, b := range stage.Lets {
		s.define(b)
	}
	if len(stage.Reductions) == 0 {
		return
	}
	if points == 0 {
		f.begin()
		f.results()
		return
	}
	s.split(code.Inner, f.elements, func(outer, flat []scalar.Expr) {
		width := f.width(SizeOf(flat))
		if !lanes || width == 0 {
			f.begin()
			f.loopCoords(outer, SizeOf(flat), func() {
				f.loopPoints(SizeOf(flat), 1, func(i scalar.Expr) {
					s.bind(flat, s.coordinates(i, flat))
					f.step()
				})
			})
			f.end()
			return
		}
		f.single = len(outer) > 0 && SizeOf(flat)%width != 0 // a remainder without lanes
		if len(outer) == 0 && SizeOf(flat)/width <= f.block {
			f.compensated = nil
		}
		f.beginLanes(width)
		f.loopCoords(outer, SizeOf(flat)/width, func() { f.stepLanes(flat, width) })
		f.end()
		f.joinLanes(width)
	})
	f.results()
}

// fold is the reductions of one stage, which share a loop.
type fold struct {
	s           *serial
	reductions  []fusion.Reduction
	elements    []scalar.Expr
	running     []scalar.Expr // accumulators, variables of the kernel
	slots       []int         // accumulators per lane
	compensated []compensatedSum
	block       int  // terms per block of compensated sums
	single      bool // whether accumulators without lanes have compensated sums
	lanes       int
}

// newFold returns the reductions of a stage over some points, with f32 sums blocked.
func newFold(s *serial, reductions []fusion.Reduction, block, points int) *fold {
	f := &fold{s: s, reductions: reductions, block: block, single: true}
	for _, r := range reductions {
		if r.Sums() && points > block {
			for k := range r.Elements {
				f.compensated = append(f.compensated, compensatedSum{of: len(f.elements) + k})
			}
		}
		f.elements = append(f.elements, r.Elements...)
	}
	return f
}

func (f *fold) accumulators() []ir.Accumulator {
	var out []ir.Accumulator
	for _, r := range f.reductions {
		out = append(out, r.Accumulators...)
	}
	return out
}

// width returns the number of accumulator lanes along n points: 0 for too few points, or for
// types without vectors.
func (f *fold) width(n int) int {
	switch {
	case n < 2*vectorLanes || !f.hasVectors():
		return 0
	case n >= 2*wideLanes && f.weight() <= maxWideWeight:
		return wideLanes
	}
	return vectorLanes
}

// columnLanes returns the number of adjacent rows of n that are reduced at once: 0 for types without
// vectors, and for elements of more operations than maxColumnWeight.
func (f *fold) columnLanes(n int) int {
	lanes := wideLanes
	for lanes > n {
		lanes /= 2
	}
	if f.weight() > maxColumnWeight || !f.hasVectors() {
		return 0
	}
	return lanes
}

func (f *fold) hasVectors() bool {
	return !slices.ContainsFunc(f.accumulators(), func(a ir.Accumulator) bool { return loop.DeviceSize(a.DType) != 4 })
}

// weight is the number of operations of the elements of a point.
func (f *fold) weight() int {
	n := 0
	for _, e := range f.elements {
		n += scalar.Count(e)
	}
	return n
}

// begin declares the accumulators.
func (f *fold) begin() {
	f.running = nil
	for _, a := range f.accumulators() {
		f.running = append(f.running, f.s.e.Var("acc", a.Init))
	}
	f.beginSums()
}

// combine combines two sets of running values.
func (f *fold) combine(a, b []scalar.Expr) []scalar.Expr {
	var out []scalar.Expr
	for _, r := range f.reductions {
		n := len(r.Accumulators)
		out = append(out, r.Combine(a[:n], b[:n])...)
		a, b = a[n:], b[n:]
	}
	return out
}

// step accumulates the elements of a point.
func (f *fold) step() { f.s.e.SetAll(f.running, f.combine(f.running, f.point())) }

// point returns the elements of a point, and stores those that are reused.
func (f *fold) point() []scalar.Expr {
	out := f.s.exprs(f.elements)
	for i, e := range f.elements {
		if k, ok := f.s.kept[scalar.Key(e)]; ok {
			out[i] = f.s.e.Let("element", out[i])
			f.s.e.Put(k.slot, f.s.expr(k.at), out[i])
		}
	}
	return out
}

// results names the results of the reductions.
func (f *fold) results() {
	for _, r := range f.reductions {
		n := len(r.Accumulators)
		f.s.bind(r.Running, f.running[:n])
		f.running = f.running[n:]
		for _, b := range r.Results {
			f.s.define(b)
		}
	}
}

// beginLanes declares the accumulators of all lanes.
func (f *fold) beginLanes(width int) {
	f.begin()
	f.slots = nil
	for _, a := range f.accumulators() {
		f.slots = append(f.slots, f.s.e.Shared(f.s.e.Name("lanes"), a.DType, 1, width))
	}
	f.s.lanes(width, func(l scalar.Expr) {
		for i, a := range f.accumulators() {
			f.s.e.Put(f.slots[i], l, a.Init)
		}
	})
	f.beginLaneSums(width)
}

// at returns the accumulators of a lane.
func (f *fold) at(l scalar.Expr) []scalar.Expr {
	out := make([]scalar.Expr, len(f.slots))
	for i, a := range f.accumulators() {
		out[i] = scalar.LoadAt(f.slots[i], a.DType, f.s.e.Simplify(l))
	}
	return out
}

func (f *fold) putAll(l scalar.Expr, values []scalar.Expr) {
	values = slices.Clone(values)
	f.s.e.Add(f.s.e.NameAll(values)...)
	for i, x := range values {
		f.s.e.Put(f.slots[i], l, x)
	}
}

// stepLanes accumulates the elements along a row into the lanes, and the remainder into the
// accumulators without lanes.
func (f *fold) stepLanes(flat []scalar.Expr, width int) {
	s, n := f.s, SizeOf(flat)
	whole := n / width * width
	f.loopPoints(whole, width, func(r scalar.Expr) {
		s.lanes(width, func(l scalar.Expr) {
			s.bind(flat, s.coordinates(scalar.Add(r, l), flat))
			f.putAll(l, f.combine(f.at(l), f.point()))
		})
	})
	if whole < n {
		s.count("r", iterations{from: loop.Int(whole), to: loop.Int(n), step: 1, last: n - 1}, func(r scalar.Expr) {
			s.bind(flat, s.coordinates(r, flat))
			f.step()
		})
	}
}

// joinLanes combines the lanes, by halves down to a vector.
func (f *fold) joinLanes(width int) {
	s := f.s
	for half := width / 2; half >= vectorLanes; half /= 2 {
		s.lanes(half, func(l scalar.Expr) {
			f.putAll(l, f.combine(f.at(l), f.at(scalar.Add(l, loop.Int(half)))))
		})
	}
	for l := range vectorLanes {
		s.e.SetAll(f.running, f.combine(f.running, f.at(loop.Int(l))))
	}
}

// columns writes a reduction of one stage for several vectors of adjacent rows at once, to
// use whole cache lines. It reports whether it could.
func (s *serial) columns(code *fusion.Code, block int) bool {
	first, later := code.Stages[0], code.Stages[1:]
	if len(first.Lets) > 0 || len(code.Points) > 0 || slices.ContainsFunc(later, func(x fusion.Stage) bool { return len(x.Reductions) > 0 }) {
		return false
	}
	last := code.Outer[len(code.Outer)-1]
	n := SizeOf([]scalar.Expr{last})
	f := newFold(s, first.Reductions, block, SizeOf(code.Inner))
	finish := func() {
		f.results()
		for _, x := range later {
			for _, b := range x.Lets {
				s.define(b)
			}
		}
		s.storeAll(code.Rows)
	}
	width := f.columnLanes(n)
	if width == 0 {
		return false
	}
	whole := n / width * width
	s.loops(code.Outer[:len(code.Outer)-1], func() {
		s.count("c", iterations{from: loop.Int(0), to: loop.Int(whole), step: width, last: whole - width}, func(c scalar.Expr) {
			f.single = false
			f.beginLanes(width)
			f.loopCoords(code.Inner, 1, func() {
				s.lanes(width, func(l scalar.Expr) {
					s.bind([]scalar.Expr{last}, []scalar.Expr{s.e.Simplify(scalar.Add(c, l))})
					f.putAll(l, f.combine(f.at(l), s.exprs(f.elements)))
				})
			})
			f.end()
			s.lanes(width, func(l scalar.Expr) {
				s.bind([]scalar.Expr{last}, []scalar.Expr{s.e.Simplify(scalar.Add(c, l))})
				f.running = f.at(l)
				finish()
			})
		})
		if whole == n {
			return
		}
		s.count("c", iterations{from: loop.Int(whole), to: loop.Int(n), step: 1, last: n - 1, lanes: true}, func(c scalar.Expr) {
			s.bind([]scalar.Expr{last}, []scalar.Expr{c})
			f.single, f.slots = true, nil
			f.begin()
			f.loopCoords(code.Inner, 1, f.step)
			f.end()
			finish()
		})
	})
	return true
}

// productBlock is [fusion.SumBlockLen] for contractions, whose sums may be less exact.
const productBlock = 8 * fusion.SumBlockLen

// compensatedSum is a blocked sum of f32: the sum of the blocks so far and its rounding error.
// The slots hold those of lanes.
type compensatedSum struct {
	of               int // index of the accumulator
	sum, err         scalar.Expr
	sumSlot, errSlot int
}

// beginSums declares the compensated sums of accumulators.
func (f *fold) beginSums() {
	if !f.single {
		return
	}
	for i := range f.compensated {
		x := &f.compensated[i]
		x.sum, x.err = f.s.e.Var("sum", scalar.Const(ir.F32, 0)), f.s.e.Var("rest", scalar.Const(ir.F32, 0))
	}
}

// beginLaneSums declares the compensated sums of lanes.
func (f *fold) beginLaneSums(width int) {
	for i := range f.compensated {
		x := &f.compensated[i]
		x.sumSlot, x.errSlot = f.s.e.Shared(f.s.e.Name("sums"), ir.F32, 1, width), f.s.e.Shared(f.s.e.Name("rests"), ir.F32, 1, width)
	}
	f.lanes = width
	f.eachLaneSum(func(x *compensatedSum, l scalar.Expr) {
		f.s.e.Put(x.sumSlot, l, scalar.Const(ir.F32, 0))
		f.s.e.Put(x.errSlot, l, scalar.Const(ir.F32, 0))
	})
}

func (f *fold) eachLaneSum(write func(x *compensatedSum, l scalar.Expr)) {
	if len(f.compensated) == 0 {
		return
	}
	f.s.lanes(f.lanes, func(l scalar.Expr) {
		for i := range f.compensated {
			write(&f.compensated[i], l)
		}
	})
}

// loopCoords writes loops over coordinates whose body adds the given number of terms to each
// sum. The innermost loops that add more than a block are blocked.
func (f *fold) loopCoords(vars []scalar.Expr, terms int, write func()) {
	k := len(vars)
	for k > 0 && terms <= f.block {
		k--
		terms *= SizeOf(vars[k : k+1])
	}
	if len(f.compensated) == 0 || terms <= f.block || k == len(vars) {
		f.s.loops(vars, write)
		return
	}
	n := SizeOf(vars[k : k+1])
	f.s.loops(vars[:k], func() {
		f.loopBlocks(n, max(1, f.block/(terms/n)), 1, func(i scalar.Expr) {
			f.s.bind(vars[k:k+1], []scalar.Expr{i})
			f.s.loops(vars[k+1:], write)
		})
	})
}

// loopPoints writes a loop over points that adds one term per iteration to each sum.
func (f *fold) loopPoints(n, step int, write func(i scalar.Expr)) {
	if len(f.compensated) == 0 || n/step <= f.block {
		f.s.count("r", iterations{from: loop.Int(0), to: loop.Int(n), step: step, last: n - step}, write)
		return
	}
	f.loopBlocks(n, f.block*step, step, write)
}

// loopBlocks writes a loop over blocks of a size and one over the iterations of each.
func (f *fold) loopBlocks(n, size, step int, write func(i scalar.Expr)) {
	s := f.s
	s.count("block", iterations{from: loop.Int(0), to: loop.Int(n), step: size, last: (n - 1) / size * size}, func(from scalar.Expr) {
		to := scalar.Add(from, loop.Int(size))
		if n%size != 0 {
			to = s.e.Let("to", scalar.Min(to, loop.Int(n)))
		}
		s.count("r", iterations{from: from, to: to, step: step, last: n - step}, write)
		f.endBlock()
	})
}

// endBlock adds the sum of a block to the compensated sum and clears it.
func (f *fold) endBlock() {
	zero := scalar.Const(ir.F32, 0)
	if f.slots != nil {
		f.eachLaneSum(func(x *compensatedSum, l scalar.Expr) {
			sum, rest := scalar.LoadAt(x.sumSlot, ir.F32, l), scalar.LoadAt(x.errSlot, ir.F32, l)
			next, left := scalar.TwoSum(sum, f.at(l)[x.of])
			values := []scalar.Expr{next, scalar.Add(rest, left)}
			f.s.e.Add(f.s.e.NameAll(values)...)
			f.s.e.Put(x.sumSlot, l, values[0])
			f.s.e.Put(x.errSlot, l, values[1])
			f.s.e.Put(f.slots[x.of], l, zero)
		})
	}
	if !f.single {
		return
	}
	for _, x := range f.compensated {
		next, left := scalar.TwoSum(x.sum, f.running[x.of])
		f.s.e.SetAll([]scalar.Expr{x.sum, x.err, f.running[x.of]}, []scalar.Expr{next, scalar.Add(x.err, left), zero})
	}
}

// end sets the accumulators to the compensated sums.
func (f *fold) end() {
	f.endBlock()
	if f.slots != nil {
		f.eachLaneSum(func(x *compensatedSum, l scalar.Expr) {
			f.s.e.Put(f.slots[x.of], l, scalar.Compensated(scalar.LoadAt(x.sumSlot, ir.F32, l), scalar.LoadAt(x.errSlot, ir.F32, l)))
		})
	}
	if !f.single {
		return
	}
	for _, x := range f.compensated {
		f.s.e.Set(f.running[x.of], scalar.Compensated(x.sum, x.err))
	}
}

// Bounds of storing the elements of a row for reuse after its reductions: minKeptWeight is the
// minimum number of operations of an element, which must cost more than a store and a load;
// maxKept the maximum number of elements, 64 KiB of f32, which the second-level cache holds.
const (
	minKeptWeight = 8
	maxKept       = 1 << 14
)

// keptElement is the place of an element that a reduction stores for the points of the row.
type keptElement struct {
	slot int
	at   scalar.Expr // in the inner coordinates
}

// keepElements has the reductions of a row store elements that its points reuse, as a softmax
// its exponentials.
func (s *serial) keepElements(code *fusion.Code) {
	s.kept = map[string]keptElement{}
	n := SizeOf(code.Inner)
	if n > maxKept || len(code.Points) == 0 {
		return
	}
	at := scalar.Expr(loop.Int(0))
	for i, v := range code.Inner {
		at = scalar.Add(scalar.Mul(at, loop.Int(SizeOf(code.Inner[i:i+1]))), v)
	}
	for _, stage := range code.Stages {
		for _, r := range stage.Reductions {
			for _, e := range r.Elements {
				s.keepElement(code, e, at)
			}
		}
	}
}

func (s *serial) keepElement(code *fusion.Code, e, at scalar.Expr) {
	key := scalar.Key(e)
	if scalar.Count(expanded(e)) < minKeptWeight {
		return
	}
	for i := range code.Points {
		code.Points[i].Value = scalar.Substitute(code.Points[i].Value, func(n scalar.Expr) (scalar.Expr, bool) {
			if n.Op != e.Op || n.Type != e.Type || scalar.Key(n) != key {
				return nil, false
			}
			k, known := s.kept[key]
			if !known {
				k = keptElement{s.e.Shared(s.e.Name("kept"), e.Type, 1, SizeOf(code.Inner)), at}
				s.kept[key] = k
			}
			return scalar.LoadAt(k.slot, e.Type, at), true
		})
	}
}

// expanded is e as kernels compute it.
func expanded(e scalar.Expr) scalar.Expr { return scalar.Expand(e, scalar.Portable) }
