package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// order turns the groups into items in topological order: producers first, index checks
// before anything persistent is written, and otherwise in graph order.
func (p *Partition) order() error {
	for _, g := range p.groups.topological(p.groups.list) {
		switch {
		case g.Kind == ControlKind:
			items, err := control{p}.items(g)
			if err != nil {
				return err
			}
			p.Items = append(p.Items, items...)
		case !g.inPlace && len(g.HorizontalParts()[0].Members)+len(g.HorizontalParts()[0].Copies) > 0: // no gate
			collectLoads(g)
			p.Items = append(p.Items, g)
		}
	}
	return nil
}

// collectLoads sets the tensors a group loads, and gives a failing collective its status code.
func collectLoads(g *Group) {
	seen := map[*Tensor]bool{}
	add := func(t *Tensor) {
		if t != nil && !seen[t] {
			seen[t] = true
			g.loads = append(g.loads, t)
		}
	}
	for _, v := range g.loadedValues() {
		add(g.partition.tensors[v])
	}
	for _, part := range g.HorizontalParts() {
		for _, c := range part.Copies {
			add(c.From.viewed())
		}
		for _, m := range part.Members {
			if g.partition.isFailing(m.Node) {
				g.partition.code(m.Node)
			}
		}
	}
}

// loadedValues returns the stored values that a group reads but does not compute.
func (g *Group) loadedValues() []ir.Value {
	var out []ir.Value
	for _, part := range g.HorizontalParts() {
		for _, u := range part.footprint.reads {
			out = append(out, u.v)
		}
	}
	return out
}

// isFailing reports whether a node is a collective with a status code.
func (p *Partition) isFailing(n *ir.Node) bool {
	return p.options.CollectivesFail && ops.IsCollective(n)
}

// code returns the status code of a node that checks an index or is a failing collective.
func (p *Partition) code(n *ir.Node) int {
	for p.parent != nil {
		p = p.parent
	}
	for i, c := range p.Checks {
		if c == n {
			return p.options.FirstCode + i
		}
	}
	p.Checks = append(p.Checks, n)
	return p.options.FirstCode + len(p.Checks) - 1
}
