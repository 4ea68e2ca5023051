package fusion

import "slices"

// order turns the groups into items: producers first, checks before anything
// persistent is written, and otherwise as the graph has them.
func (p *Partition) order() error {
	for _, g := range p.inOrder(p.groups) {
		switch {
		case g.Kind == ControlKind:
			items, err := p.control(g)
			if err != nil {
				return err
			}
			p.Items = append(p.Items, items...)
		case len(g.SideBySide()[0].Members)+len(g.SideBySide()[0].Copies) > 0: // no gate
			p.collectLoads(g)
			p.Items = append(p.Items, g)
		}
	}
	return nil
}

// inOrder returns groups with those before them that each has to wait for.
func (p *Partition) inOrder(groups []*Group) []*Group {
	out := make([]*Group, 0, len(groups))
	done := make(map[*Group]bool, len(groups))
	var visit func(g *Group)
	visit = func(g *Group) {
		if done[g] {
			return
		}
		done[g] = true
		for _, q := range p.before(g) {
			visit(q)
		}
		out = append(out, g)
	}
	for _, g := range groups {
		visit(g)
	}
	return out
}

// gate adds a group of nothing that waits for others, so that many can wait
// for many by as many edges as there are groups.
func (p *Partition) gate(after []*Group) *Group {
	g := &Group{Kind: MapKind, partition: p}
	p.groups = append(p.groups, g)
	p.after[g] = after
	return g
}

// gateOfChecks returns a gate behind all groups that check indices, or nil where
// there are none: what writes states has to wait for it, so that a bad index
// leaves them as they were.
func (p *Partition) gateOfChecks() *Group {
	if p.allChecked != nil {
		p.groups = slices.DeleteFunc(p.groups, func(g *Group) bool { return g == p.allChecked })
	}
	var checking []*Group
	for _, g := range p.groups {
		if p.checks(g) {
			checking = append(checking, g)
		}
	}
	if len(checking) == 0 {
		return nil
	}
	return p.gate(checking)
}

func (p *Partition) checks(g *Group) bool {
	for _, part := range g.SideBySide() {
		for _, m := range part.Members {
			if p.spaceOf(m.Node).checks || slices.ContainsFunc(m.Node.Subgraphs(), HasChecks) {
				return true
			}
		}
	}
	return false
}

// collectLoads fills in the tensors a group loads.
func (p *Partition) collectLoads(g *Group) {
	seen := map[*Tensor]bool{}
	add := func(t *Tensor) {
		if t != nil && !seen[t] {
			seen[t] = true
			g.loads = append(g.loads, t)
		}
	}
	for _, v := range p.readsOf(g) {
		add(p.tensors[v])
	}
	for _, part := range g.SideBySide() {
		for _, c := range part.Copies {
			add(c.From.shown())
		}
	}
}
