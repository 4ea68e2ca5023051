package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// carry has a running sum, in the register acc, go by blocks.
func (m *maker) carry(running scalar.Expr, acc register) {
	x := carried{acc: acc, sum: m.n.sizes.add(classF32, m.width()), rest: m.n.sizes.add(classF32, m.width())}
	sum, rest := scalar.FreeVar(running.Name+"_sum", ir.F32), scalar.FreeVar(running.Name+"_rest", ir.F32)
	m.named[sum.Name] = value{reg: x.sum, level: perElement, wide: true}
	m.named[rest.Name] = value{reg: x.rest, level: perElement, wide: true}
	all := []scalar.Expr{running, sum, rest}
	set := func(to []register, list ...scalar.Expr) []instr {
		m.forget(all)
		return m.aside(func() { m.moveAll(to, list) })
	}
	next, left := scalar.TwoSum(sum, running)
	m.p.carry = append(m.p.carry, set([]register{x.sum, x.rest, acc}, next, scalar.Add(rest, left), scalar.Const(ir.F32, 0))...)
	m.p.total = append(m.p.total, set([]register{acc}, scalar.Compensated(sum, rest))...)
	m.forget(all)
	m.p.carried = append(m.p.carried, x)
}

// moveAll computes expressions, and then moves them to registers.
func (m *maker) moveAll(to []register, list []scalar.Expr) {
	values := make([]value, len(list))
	for i, e := range list {
		values[i] = m.widen(m.expr(e))
	}
	for i, v := range values {
		m.move(to[i], v, perElement)
	}
}

// uncarried takes the code of blocks out where kernels stand for it, which leave so many
// lanes between them.
func (f *fuser) uncarried(p *phase, lanes int) {
	for _, x := range p.carried {
		f.n.sizes[classF32][x.sum.index], f.n.sizes[classF32][x.rest.index] = lanes, lanes
	}
	f.replaced(p.carry)
	f.replaced(p.total)
	p.carry, p.total = nil, nil
}

// carry adds what a stretch came to in s.values to the blocks before.
func (s *segment) carry(p *phase) bool {
	for _, x := range p.carried {
		s.values[x.sum], s.values[x.rest] = s.loadSingle(x.sum), s.loadSingle(x.rest)
	}
	if !s.addAll(p.carry) {
		return false
	}
	for _, x := range p.carried {
		s.keepSingle(x.sum)
		s.keepSingle(x.rest)
	}
	return true
}

// total makes running values of what the blocks came to.
func (s *segment) total(p *phase) bool {
	for _, x := range p.carried {
		s.values[x.sum], s.values[x.rest] = s.loadSingle(x.sum), s.loadSingle(x.rest)
	}
	return s.addAll(p.total)
}

// isCarried reports whether running values go by blocks.
func (p *phase) isCarried(c *combining) bool {
	for _, x := range p.carried {
		if x.acc == c.acc[0] {
			return true
		}
	}
	return false
}

// blocks counts the steps of a block of sums, each of which adds some terms to one lane.
type blocks struct {
	code *boundPhase
	n    int // lanes
	done int
}

// add counts terms, and carries where a block is full. To begin the code for that takes as
// long as some terms do, so that blocks are twice as long as need be.
func (b *blocks) add(terms int) {
	if b.done += terms; b.done >= 2*fusion.SumBlock && len(b.code.carry) > 0 {
		runAll(b.code.carry, b.n)
		b.done = 0
	}
}

// end leaves the sums in the running values.
func (b *blocks) end() {
	if len(b.code.carry) > 0 {
		runAll(b.code.carry, b.n)
		runAll(b.code.total, b.n)
	}
}
