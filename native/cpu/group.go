package cpu

import (
	"github.com/rlx-go/rlx/ir/kernel/group"
	"github.com/rlx-go/rlx/ir/scalar"
	"github.com/rlx-go/rlx/native/cpu/jit"
)

// makeNest compiles the code of a map or reduction, with blocks along the
// points that promise to be faster.
func makeNest(name string, c *group.Code, outer, inner []int, buffers map[int]*buffer) (*nest, error) {
	var tries []blocking
	for _, w := range widths(outer) {
		tries = append(tries, blocking{false, w})
	}
	if len(inner) > 0 {
		for _, w := range widths(inner) {
			tries = append(tries, blocking{true, w})
		}
	}
	var best *nest
	for _, b := range tries {
		n, err := buildNest(name, c, outer, inner, b, buffers)
		if err != nil {
			return nil, err
		}
		if best == nil || n.cost < best.cost {
			best = n
		}
	}
	return best, nil
}

// noInnerPoints takes out what is done for inner points where there are none, so
// that nothing of it is done ahead either.
func noInnerPoints(c *group.Code) {
	for _, s := range c.Stages {
		for _, r := range s.Reductions {
			for i, a := range r.Accumulators {
				r.Elements[i] = a.Init
			}
		}
	}
	c.Points = nil
}

func buildNest(name string, c *group.Code, outer, inner []int, b blocking, buffers map[int]*buffer) (*nest, error) {
	m := newMaker(name, c.Outer, c.Inner, outer, inner, b, buffers)
	for _, s := range c.Stages {
		m.lets(s.Lets)
		m.reductions(s.Reductions)
	}
	m.stores(c.Rows)
	if len(c.Points) > 0 {
		m.enterLoop()
		m.stores(c.Points)
	}
	m.n.cost = m.n.estimate()
	return m.n, m.err
}

// lets names values of the outer point.
func (m *maker) lets(list []scalar.Binding) {
	for _, b := range list {
		v := m.expr(b.Value)
		v.level = max(v.level, perBlock)
		m.named[b.Var.Name] = v
	}
}

// reductions compiles one loop over the inner points for all of the
// reductions, and names their results in the next phase.
func (m *maker) reductions(list []group.Reduction) {
	if len(list) == 0 {
		return
	}
	m.enterLoop()
	for _, r := range list {
		m.reduction(r)
	}
	m.nextPhase()
	for _, r := range list {
		m.lets(r.Results)
	}
}

func (m *maker) reduction(r group.Reduction) {
	c := &combining{}
	accs, others := make([]scalar.Expr, len(r.Elements)), make([]scalar.Expr, len(r.Elements))
	for i, a := range r.Accumulators {
		init, err := constantValue(a.Init)
		if err != nil && m.err == nil {
			m.err = err
		}
		class := classOf(a.DType)
		acc, other := m.n.sizes.add(class, m.width()), m.n.sizes.add(class, m.width())
		m.p.running = append(m.p.running, running{acc, init})
		c.acc, c.other = append(c.acc, acc), append(c.other, other)
		accs[i], others[i] = r.Running[i], scalar.FreeVar(r.Running[i].Name+"_other", a.DType)
		m.named[accs[i].Name] = value{reg: acc, level: perElement, wide: true}
		m.named[others[i].Name] = value{reg: other, level: perElement, wide: true}
	}
	m.merge(c, r.Combine(accs, r.Elements))
	if m.n.wideInner {
		m.combine(c, r.Combine(accs, others))
	}
	for i := range accs {
		m.named[accs[i].Name] = value{reg: c.acc[i], level: perBlock, wide: !m.n.wideInner}
	}
}

// combine compiles the merging of running values with those of other lanes.
func (m *maker) combine(c *combining, merged []scalar.Expr) {
	before := m.p.element
	m.p.element = nil
	m.merge(c, merged)
	c.code = m.p.element
	m.p.element = before
	m.p.combining = append(m.p.combining, c)
}

// merge makes values the new running ones.
func (m *maker) merge(c *combining, merged []scalar.Expr) {
	results := make([]value, len(merged))
	for i, e := range merged {
		results[i] = m.widen(m.expr(e))
	}
	for i, v := range results {
		m.move(c.acc[i], v, perElement)
	}
}

// stores compiles all values, and then the stores of them.
func (m *maker) stores(list []group.ElementStore) {
	values := make([]value, len(list))
	for i, s := range list {
		values[i] = m.expr(s.Value)
	}
	for i, s := range list {
		m.store(s, values[i])
	}
}

// estimate returns the nanoseconds that one worker takes for the whole nest.
func (n *nest) estimate() float64 {
	blocks, price := float64(n.outer.rows*n.outer.blocks()), n.price()
	total := float64(n.outer.rows) * (price.row + price.of(n.rows, 1))
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
		total += blocks * (rows*price.of(p.inner, 1) + steps*price.of(p.element, width))
		for _, c := range p.combining { // merging the lanes
			total += blocks * price.fold(c.code, width)
		}
	}
	return total
}

// price is the nanoseconds that it takes to begin what is not done for each lane: an
// instruction for many lanes, one for a single number, a kernel, and a row.
type price struct {
	call, single, kernel, row float64
	byRows                    bool // whether one kernel does all of a row
}

// price returns that of the code of a nest, which is less where one kernel may do
// all of it.
func (n *nest) price() price {
	switch {
	case !jit.Available() || !n.hasRows() || !n.fusesRows():
		return price{call: 4, single: 3, kernel: 25}
	case len(n.rows) > 0:
		return price{call: 1, single: 2, kernel: 3, row: 60, byRows: true}
	}
	return price{call: 1, single: 1, kernel: 3, byRows: true}
}

// fusesRows reports whether all that is done for a row can be one kernel.
func (n *nest) fusesRows() bool {
	for _, p := range n.phases {
		if p.loop && !n.wideInner {
			return false
		}
		for _, list := range [][]instr{p.block, p.inner, p.element} {
			for i := range list {
				if in := &list[i]; in.kind == opCheck || !in.one && !in.fuses() {
					return false
				}
			}
		}
	}
	return true
}

// of returns the nanoseconds of some code for a block of n lanes.
func (p price) of(code []instr, n float64) float64 {
	total, kernels := 0.0, 0.0
	for i := range code {
		in := &code[i]
		switch {
		case in.one:
			total += p.single
		case in.fuses():
			kernels = p.kernel
			total += n * in.fusedCost()
		default:
			total += p.call + n*in.laneCost()
		}
	}
	return total + kernels
}

// fold returns those of merging n lanes of running values.
func (p price) fold(code []instr, n float64) float64 {
	if p.byRows {
		const halves = 4
		return halves * p.single * float64(len(code))
	}
	return p.of(code, n) + 9*p.of(code, 0)
}

// fuses reports whether an instruction can be part of a kernel.
func (in *instr) fuses() bool {
	switch in.kind {
	case opLoad, opStore:
		return jit.Available() && in.sideBySide()
	case opSplat, opMove:
		return jit.Available() && in.dst.of32()
	case opApply:
		return jit.Available() && jit.Has(in.operation())
	}
	return false
}

// fusedCost returns the nanoseconds of an instruction in a kernel for each lane,
// as measured on Zen 5 with AVX-512.
func (in *instr) fusedCost() float64 {
	const step, access = 0.008, 0.02
	switch in.kind {
	case opLoad, opStore:
		return access
	case opApply:
		return step * float64(jit.Steps(in.operation()))
	}
	return 0
}

// laneCost returns the nanoseconds of any other instruction for each lane.
func (in *instr) laneCost() float64 {
	switch in.kind {
	case opSplat, opMove, opConst, opCounter, opScalar:
		return 0.1
	case opLoad, opStore:
		switch {
		case in.at.general, in.at.mask != nil && in.at.mask.wide:
			return 1.5
		case in.at.stride > 1:
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
