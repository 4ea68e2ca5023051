package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/internal/codegen/jit"
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// estimate returns the estimated nanoseconds of one worker for the whole nest.
func (n *nest) estimate() float64 {
	blocks, price := float64(n.outer.rows*n.outer.blocks()), n.price()
	total := float64(n.outer.rows) * (price.row + price.of(n.rows, 1))
	total += float64(n.outer.points()) * n.outer.coordinateCost()
	outerWidth := float64(n.outer.row) / float64(max(1, n.outer.blocks()))
	if n.wideInner {
		outerWidth = 1
	}
	for _, p := range n.phases {
		total += blocks * price.of(p.block, outerWidth)
		if !p.loop {
			continue
		}
		rows, steps, width := float64(n.inner.rows), float64(n.inner.rows), outerWidth
		if n.wideInner {
			steps *= float64(n.inner.blocks())
			width = float64(n.inner.points()) / max(steps, 1)
		}
		total += blocks * float64(n.inner.points()) * n.inner.coordinateCost()
		element := price
		element.kernel /= float64(n.callsFor(p))
		total += blocks * (rows*price.of(p.inner, 1) + steps*element.of(p.element, width))
		for _, c := range p.merges { // merging the lanes
			total += blocks * price.fold(c.code, width)
		}
	}
	return total
}

// callsFor returns the number of inner points, or of rows of them, that a call of a phase's kernel does.
func (n *nest) callsFor(p *phase) int {
	times, last := n.unrolls(p), n.inner.scalars()
	if times == 1 || len(last) > 1 {
		return 1
	}
	for i := range p.element {
		if !p.element[i].scalar && !p.element[i].fuses() {
			return 1
		}
	}
	return max(times, min(last[0].size, 2*fusion.SumBlockLen))
}

// coordinateCost returns the nanoseconds per lane of writing the coordinates along blocks that
// code reads. A single block is written once for all rows.
func (s *space) coordinateCost() float64 {
	cost := 0.0
	for _, a := range s.wides() {
		if a.used && s.blocks() > 1 {
			cost += 0.7
		}
	}
	return cost
}

// price is the overhead in nanoseconds of work that is not per lane: an instruction on a block, one
// on a scalar, a kernel call, and a row.
type price struct {
	call, scalar, kernel, row float64
	rowKernel                 bool // one kernel does whole rows
}

// price returns the overheads of the nest's code, which are lower where one kernel may do
// whole rows.
func (n *nest) price() price {
	switch {
	case !jit.Available() || !n.hasRows() || !n.fusesRows():
		return price{call: 4, scalar: 3, kernel: 25}
	case len(n.rows) > 0 && !n.sweeps():
		return price{call: 1, scalar: 2, kernel: 3, row: 60, rowKernel: true}
	}
	return price{call: 1, scalar: 1, kernel: 3, rowKernel: true}
}

// sweeps reports whether the code before a row can be part of the row kernel, so that one call does
// many rows. Of splats nothing is left there: kernels read the uniform value.
func (n *nest) sweeps() bool {
	computed := map[register]bool{}
	for i := range n.rows {
		computed[n.rows[i].dst] = true
	}
	reaches := func(in *instr) bool {
		return in.at == nil || in.at.most > 0 && jit.HasIndirect() ||
			!slices.ContainsFunc(in.at.terms, func(t term) bool { return computed[t.reg] })
	}
	for i := range n.rows {
		in := &n.rows[i]
		fits := in.kind == opCheck || (in.kind == opMove || in.kind == opSplat) && in.dst.inKernels() || in.kind == opLoad && in.isScalarAccess() ||
			in.kind == opApply && jit.Has(in.operation()) && in.dst.inKernels() && !in.changesWidth()
		if !fits || !reaches(in) {
			return false
		}
	}
	for _, p := range n.phases {
		for _, list := range [][]instr{p.block, p.inner, p.element} {
			for i := range list {
				if !reaches(&list[i]) {
					return false
				}
			}
		}
	}
	return true
}

// fusesRows reports whether one kernel can do all the work of a row.
func (n *nest) fusesRows() bool {
	for _, p := range n.phases {
		if p.loop && !n.wideInner {
			return false
		}
		for _, list := range [][]instr{p.block, p.inner, p.element} {
			for i := range list {
				if in := &list[i]; in.kind == opCheck || !in.scalar && !in.fuses() {
					return false
				}
			}
		}
	}
	return true
}

// of returns the nanoseconds of code for a block of n lanes.
func (p price) of(code []instr, n float64) float64 {
	total, kernels := 0.0, 0.0
	for i := range code {
		in := &code[i]
		switch {
		case in.scalar:
			total += p.scalar
		case in.fuses():
			kernels = p.kernel
			total += n * in.fusedCost()
		default:
			total += p.call + n*in.laneCost()
		}
	}
	return total + kernels
}

// fold returns the nanoseconds of merging n lanes of accumulators.
func (p price) fold(code []instr, n float64) float64 {
	if p.rowKernel {
		const halves = 4
		return halves * p.scalar * float64(len(code))
	}
	return p.of(code, n) + 9*p.of(code, 0)
}

// fuses reports whether an instruction can be part of a kernel.
func (in *instr) fuses() bool {
	switch in.kind {
	case opLoad, opStore:
		return jit.Available() && in.isInKernels()
	case opSplat, opMove:
		return jit.Available() && in.dst.inKernels()
	case opApply:
		return jit.Available() && jit.Has(in.operation())
	}
	return false
}

// fusedCost returns the nanoseconds per lane of an instruction in a kernel, as measured on Zen
// 5 with AVX-512.
func (in *instr) fusedCost() float64 {
	const step, access, gathered, apart = 0.008, 0.02, 0.6, 1. // gathers as measured on Zen 4
	switch in.kind {
	case opLoad, opStore:
		switch {
		case in.isGathered() && in.at.apart:
			return apart
		case in.isGathered() && in.buf.dtype.Size() == 2:
			return gathered + 6*step // takes them out of pairs
		case in.isGathered():
			return gathered
		}
		cost := access * float64(max(in.buf.dtype.Size(), 4)) / 4
		switch run := in.at.run; {
		case run >= jit.Width():
			return 1.5 * cost
		case run > 0: // loads or stores one piece for each run in a vector
			return cost * float64(1+jit.Width()/run)
		}
		return cost
	case opApply:
		return step * float64(jit.Steps(in.operation())) * float64(in.dst.class.size()) / 4
	}
	return 0
}

// laneCost returns the nanoseconds per lane of an instruction outside kernels.
func (in *instr) laneCost() float64 {
	switch in.kind {
	case opSplat, opMove, opConst, opCounter, opScalar:
		return 0.1
	case opLoad, opStore:
		switch {
		case in.buf.dtype.IsFloat() && in.buf.dtype.Size() < 4: // converts element by element
			return 6
		case in.at.general, in.at.mask != nil && in.at.mask.wide:
			return 1.5
		case in.at.run > 0 && in.at.stride <= 1:
			return 0.4 + 2/float64(in.at.run)
		case in.at.stride < 0 || in.at.stride > 1:
			return 1
		}
		return 0.3
	case opApply:
		switch in.node.Op {
		case scalar.OpExp, scalar.OpLog, scalar.OpTanh, scalar.OpErf, scalar.OpSin, scalar.OpCos, scalar.OpPow, scalar.OpSigmoid:
			return 8
		case scalar.OpDiv, scalar.OpRem, scalar.OpMod, scalar.OpFloorDiv, scalar.OpSqrt:
			return 2
		}
	}
	return 0.6
}
