package sched

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// productBlock is [fusion.SumBlock] for products, whose sums need not be as exact.
const productBlock = 8 * fusion.SumBlock

// carriedSum is a sum of f32 that goes by blocks: what those before come to, and what
// rounding left out of that. There are slots for sums of lanes.
type carriedSum struct {
	of                int // the number of the running value
	sum, rest         scalar.Expr
	sumSlot, restSlot int
}

// beginSums declares the sums of blocks beside running values.
func (f *fold) beginSums() {
	if !f.single {
		return
	}
	for i := range f.carried {
		x := &f.carried[i]
		x.sum, x.rest = f.s.variable("sum", scalar.Const(ir.F32, 0)), f.s.variable("rest", scalar.Const(ir.F32, 0))
	}
}

// beginLaneSums declares those beside the running values of lanes.
func (f *fold) beginLaneSums(width int) {
	for i := range f.carried {
		x := &f.carried[i]
		x.sumSlot, x.restSlot = f.s.shared(f.s.name("sums"), ir.F32, 1, width), f.s.shared(f.s.name("rests"), ir.F32, 1, width)
	}
	f.lanes = width
	f.eachLaneSum(func(x *carriedSum, l scalar.Expr) {
		f.s.put(x.sumSlot, l, scalar.Const(ir.F32, 0))
		f.s.put(x.restSlot, l, scalar.Const(ir.F32, 0))
	})
}

func (f *fold) eachLaneSum(write func(x *carriedSum, l scalar.Expr)) {
	if len(f.carried) == 0 {
		return
	}
	f.s.lanes(f.lanes, func(l scalar.Expr) {
		for i := range f.carried {
			write(&f.carried[i], l)
		}
	})
}

// over writes loops over coordinates, in which f adds some terms to each sum. The
// innermost ones that add more than a block go by blocks.
func (f *fold) over(vars []scalar.Expr, terms int, write func()) {
	k := len(vars)
	for k > 0 && terms <= f.block {
		k--
		terms *= sizeOf(vars[k : k+1])
	}
	if len(f.carried) == 0 || terms <= f.block || k == len(vars) {
		f.s.all(vars, write)
		return
	}
	n := sizeOf(vars[k : k+1])
	f.s.all(vars[:k], func() {
		f.blocks(n, max(1, f.block/(terms/n)), 1, func(i scalar.Expr) {
			f.s.bind(vars[k:k+1], []scalar.Expr{i})
			f.s.all(vars[k+1:], write)
		})
	})
}

// along writes a loop over points that adds a term to each sum in a turn.
func (f *fold) along(n, step int, write func(i scalar.Expr)) {
	if len(f.carried) == 0 || n/step <= f.block {
		f.s.count("r", loop.Int(0), loop.Int(n), step, n-step, false, write)
		return
	}
	f.blocks(n, f.block*step, step, write)
}

// blocks writes a loop over blocks of a size, and one over the turns of each.
func (f *fold) blocks(n, size, step int, write func(i scalar.Expr)) {
	s := f.s
	s.count("block", loop.Int(0), loop.Int(n), size, (n-1)/size*size, false, func(from scalar.Expr) {
		to := scalar.Add(from, loop.Int(size))
		if n%size != 0 {
			to = s.let("to", scalar.Min(to, loop.Int(n)))
		}
		s.count("r", from, to, step, n-step, false, write)
		f.carry()
	})
}

// carry adds what a block came to, and begins another.
func (f *fold) carry() {
	zero := scalar.Const(ir.F32, 0)
	if f.slots != nil {
		f.eachLaneSum(func(x *carriedSum, l scalar.Expr) {
			sum, rest := scalar.LoadAt(x.sumSlot, ir.F32, l), scalar.LoadAt(x.restSlot, ir.F32, l)
			next, left := scalar.TwoSum(sum, f.at(l)[x.of])
			values := []scalar.Expr{next, scalar.Add(rest, left)}
			f.s.add(f.s.nameAll(values)...)
			f.s.put(x.sumSlot, l, values[0])
			f.s.put(x.restSlot, l, values[1])
			f.s.put(f.slots[x.of], l, zero)
		})
	}
	if !f.single {
		return
	}
	for _, x := range f.carried {
		next, left := scalar.TwoSum(x.sum, f.running[x.of])
		f.s.setAll([]scalar.Expr{x.sum, x.rest, f.running[x.of]}, []scalar.Expr{next, scalar.Add(x.rest, left), zero})
	}
}

// end leaves in the running values what the blocks come to.
func (f *fold) end() {
	f.carry()
	if f.slots != nil {
		f.eachLaneSum(func(x *carriedSum, l scalar.Expr) {
			f.s.put(f.slots[x.of], l, scalar.Compensated(scalar.LoadAt(x.sumSlot, ir.F32, l), scalar.LoadAt(x.restSlot, ir.F32, l)))
		})
	}
	if !f.single {
		return
	}
	for _, x := range f.carried {
		f.s.set(f.running[x.of], scalar.Compensated(x.sum, x.rest))
	}
}
