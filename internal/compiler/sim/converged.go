package sim

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

func (c *compiler) barrier() {
	m := c.m
	c.add(func(active []int32) {
		if m.converged(active) {
			m.epoch++
			m.part.since = m.epoch
			if m.opts.Counts != nil {
				m.opts.Counts.Barriers++
			}
		}
	})
}

func (c *compiler) atomic(s *loop.AtomicOp) (defined []string) {
	a, at, value := c.m.arrays[s.Array], c.expr(s.At), c.expr(s.Value)
	old := newColumn(a.DType, c.m.threads)
	if s.Old != "" {
		old = c.define(s.Old, a.DType)
		defined = append(defined, s.Old)
	}
	m, op, result := c.m, c.operation(s.Op, a.DType), newColumn(a.DType, c.m.threads)
	c.add(func(active []int32) {
		for _, t := range active {
			elem := m.index(a, at.i[t], t)
			if elem < 0 {
				return
			}
			if c := m.opts.Counts; c != nil {
				c.Read, c.Written = c.Read+a.size, c.Written+a.size
			}
			a.get(elem, t, old)
			result.set(t, op(old.value(t), value.value(t)))
			a.put(elem, t, result)
		}
		m.countAccess(a, at, active)
	})
	return defined
}

// operation returns op on two values of type t.
func (c *compiler) operation(op scalar.Op, t dtype.DType) func(a, b scalar.Value) scalar.Value {
	n := &scalar.Node{Op: op, Type: t, Args: []scalar.Expr{scalar.Arg(0, t), scalar.Arg(1, t)}}
	return func(a, b scalar.Value) scalar.Value { return scalar.Apply(n, [3]scalar.Value{a, b}) }
}

// subgroup reduces over subgroups: runs of threads in the order of their local index.
func (c *compiler) subgroup(s *loop.Subgroup) []string {
	t := s.Value.Type
	value, op := c.expr(s.Value), c.operation(s.Op, t)
	out := c.define(s.Name, t)
	m := c.m
	c.add(func(active []int32) {
		if !m.converged(active) {
			return
		}
		first, end := int(active[0]), int(active[0])+len(active)
		for from := first; from < end; from += m.lanes {
			to := min(from+m.lanes, end)
			sum := value.value(int32(from))
			for t := from + 1; t < to; t++ {
				sum = op(sum, value.value(int32(t)))
			}
			for t := from; t < to; t++ {
				out.set(int32(t), sum)
			}
		}
	})
	return []string{s.Name}
}
