package cpu

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/scalar"
)

// prefix compiles a running combination: lanes are the points of the other
// axes, and the axis is gone along point by point.
func (c *compiler) prefix(g *kernel.Group) error {
	x := g.Prefix()
	var outer []scalar.Expr
	var dims []int
	for i, at := range x.At {
		if i != x.Axis {
			outer, dims = append(outer, at), append(dims, x.Dims[i])
		}
	}
	// The axis counts from the end where the combination does.
	place := x.At[x.Axis]
	count := scalar.NewVar("along", ir.I32, place.Lo, place.Hi)
	along := scalar.Expr(count)
	if x.Reverse {
		along = scalar.Sub(scalar.ConstI(ir.I32, int64(x.Dims[x.Axis]-1)), count)
	}
	here := func(e scalar.Expr) scalar.Expr {
		return scalar.Substitute(e, func(n scalar.Expr) (scalar.Expr, bool) {
			return along, n.Op == scalar.OpVar && n.Name == place.Name
		})
	}
	x.Combined, x.Store.Value, x.Store.Offset = here(x.Combined), here(x.Store.Value), here(x.Store.Offset)
	n, err := prefixNest(g.Name(), x, outer, dims, count, c.buffers)
	if err != nil {
		return err
	}
	c.add(newNestStep(n, c.env))
	return nil
}

func prefixNest(name string, x *kernel.Prefix, outer []scalar.Expr, dims []int, count scalar.Expr, buffers map[int]*buffer) (*nest, error) {
	m := newMaker(name, outer, []scalar.Expr{count}, dims, x.Dims[x.Axis:x.Axis+1], blocking{wide: len(dims)}, buffers)
	init, err := constantValue(x.Init)
	if err != nil {
		return nil, err
	}
	acc := m.n.sizes.add(classOf(x.Running.Type), m.width())
	m.enterLoop()
	m.p.running = []running{{acc, init}}
	m.named[x.Running.Name] = value{reg: acc, level: perElement, wide: true}
	step := func() {
		m.move(acc, m.widen(m.expr(x.Combined)), perElement)
		m.forget(x.Running)
	}
	if !x.Exclusive {
		step()
	}
	m.store(x.Store, m.expr(x.Store.Value))
	if x.Exclusive {
		step()
	}
	m.n.cost = m.n.estimate()
	return m.n, m.err
}

// forget drops what was compiled of expressions with a variable whose register
// has another value now.
func (m *maker) forget(v scalar.Expr) {
	clear(m.made)
	for s := range m.same {
		if slices.Contains(s.args[:], m.named[v.Name].reg) {
			delete(m.same, s)
		}
	}
}
