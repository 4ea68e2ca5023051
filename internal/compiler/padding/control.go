package padding

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// control decides about a node with subgraphs and no body.
func (a *Analysis) control(n *ir.Node, in [][]ir.Extent) error {
	switch n.Op() {
	case ops.OpScan:
		return a.scan(n, in)
	case ops.OpCond:
		return a.cond(n, in)
	case ops.OpWhile:
		return a.while(n, in)
	}
	return ir.Errorf(ir.ErrUnsupported, "it has no rule for padding, and one of its sizes is open: %v", errExact)
}

// scan analyses the body of a scan with the extents of the slices. The carries must have their
// padding in the same places before and after a step.
func (a *Analysis) scan(n *ir.Node, in [][]ir.Extent) error {
	s := n.Attrs().(*ops.ScanAttrs)
	first := s.Consts + s.Carries
	ports := slices.Clone(in)
	for i := first; i < len(in); i++ {
		if len(in[i][0]) > 1 && slices.ContainsFunc(in[i][0], a.open) {
			return ir.Errorf(ir.ErrUnsupported, "operand %d has padding between its slices, the parts %s", i, ir.Shape(in[i][0]))
		}
		ports[i] = in[i][1:]
	}
	body, ports, err := a.carried(n.Subgraphs()[0], ports, s.Consts, s.Carries)
	if err != nil {
		return err
	}
	out := body.outputs()
	copy(out, ports[s.Consts:first])
	for i := s.Carries; i < len(out); i++ {
		out[i] = slices.Concat([]ir.Extent{ir.ExtentOf(s.Length)}, out[i])
	}
	a.extents[n.ID()] = out
	if a.open(s.Length) || !body.plain() {
		a.nodes[n.ID()].subs = []*Analysis{body}
	}
	return nil
}

// carried analyses the body of a loop with the given ports as carries, and returns the extents of
// the ports. An axis of a carry along which all elements are equal at first gets the extent that a
// step produces.
func (a *Analysis) carried(g *ir.Graph, in [][]ir.Extent, first, carries int) (*Analysis, [][]ir.Extent, error) {
	ports := slices.Clone(in)
	for {
		body, err := a.inner(g, ports)
		if err != nil {
			return nil, nil, err
		}
		changed := false
		for i, after := range body.outputs()[:carries] {
			before := ports[first+i]
			ports[first+i] = slices.Clone(before)
			for axis := range before {
				e, err := unify(a.open, before[axis], after[axis])
				if err != nil {
					return nil, nil, err
				}
				changed = changed || before[axis] == nil && e != nil
				ports[first+i][axis] = e
			}
		}
		if !changed {
			return body, ports, nil
		}
	}
}

// cond analyses both branches.
func (a *Analysis) cond(n *ir.Node, in [][]ir.Extent) error {
	subs := make([]*Analysis, 2)
	for i, g := range n.Subgraphs() {
		var err error
		if subs[i], err = a.inner(g, in[1:]); err != nil {
			return err
		}
	}
	out := subs[0].outputs()
	for i, other := range subs[1].outputs() {
		out[i] = slices.Clone(out[i])
		for axis := range other {
			var err error
			if out[i][axis], err = unify(a.open, out[i][axis], other[axis]); err != nil {
				return err
			}
		}
	}
	a.extents[n.ID()] = out
	if !subs[0].plain() || !subs[1].plain() {
		a.nodes[n.ID()].subs = subs
	}
	return nil
}

// while analyses the condition and the body.
func (a *Analysis) while(n *ir.Node, in [][]ir.Extent) error {
	w := n.Attrs().(*ops.WhileAttrs)
	body, ports, err := a.carried(n.Subgraphs()[1], in, w.Consts, len(in)-w.Consts)
	if err != nil {
		return err
	}
	condition, err := a.inner(n.Subgraphs()[0], ports)
	if err != nil {
		return err
	}
	a.extents[n.ID()] = ports[w.Consts:]
	if !condition.plain() || !body.plain() {
		a.nodes[n.ID()].subs = []*Analysis{condition, body}
	}
	return nil
}

func unify(open func(ir.Dim) bool, x, y ir.Extent) (ir.Extent, error) {
	return (&ir.Padding{Open: open}).Unify(x, y)
}
