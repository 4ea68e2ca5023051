package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir/scalar"
)

// makeNest compiles the code of a map or reduction, with blocks along the
// points that promise to be faster.
func makeNest(name string, c *fusion.Code, outer, inner []int, buffers map[int]*buffer) (*nest, error) {
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
func noInnerPoints(c *fusion.Code) {
	for _, s := range c.Stages {
		for _, r := range s.Reductions {
			for i, a := range r.Accumulators {
				r.Elements[i] = a.Init
			}
		}
	}
	c.Points = nil
}

func buildNest(name string, c *fusion.Code, outer, inner []int, b blocking, buffers map[int]*buffer) (*nest, error) {
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
func (m *maker) lets(list []scalar.Local) {
	for _, b := range list {
		v := m.expr(b.Value)
		v.level = max(v.level, perBlock)
		m.named[b.Var.Name] = v
	}
}

// reductions compiles one loop over the inner points for all of the
// reductions, and names their results in the next phase.
func (m *maker) reductions(list []fusion.Reduction) {
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

func (m *maker) reduction(r fusion.Reduction) {
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
		m.forget(accs) // what the last element found out about them
		m.combine(c, r.Combine(accs, others))
	}
	if r.Sums() && m.n.inner.points() > fusion.SumBlock {
		for i := range accs {
			m.carry(accs[i], c.acc[i])
		}
	}
	for i := range accs {
		m.named[accs[i].Name] = value{reg: c.acc[i], level: perBlock, wide: !m.n.wideInner}
	}
}

// combine compiles the merging of running values with those of other lanes.
func (m *maker) combine(c *combining, merged []scalar.Expr) {
	c.code = m.aside(func() { m.merge(c, merged) })
	m.p.combining = append(m.p.combining, c)
}

// aside returns the code that f adds to what is done for each element.
func (m *maker) aside(f func()) []instr {
	before := m.p.element
	m.p.element = nil
	f()
	code := m.p.element
	m.p.element = before
	return code
}

// merge makes values the new running ones.
func (m *maker) merge(c *combining, merged []scalar.Expr) {
	m.moveAll(c.acc, merged)
}

// stores compiles all values, and then the stores of them.
func (m *maker) stores(list []fusion.ElementStore) {
	values := make([]value, len(list))
	for i, s := range list {
		values[i] = m.expr(s.Value)
	}
	for i, s := range list {
		m.store(s, values[i])
	}
}
