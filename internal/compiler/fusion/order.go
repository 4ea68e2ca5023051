package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// producers returns the groups that b reads, in order.
func (p *Partition) producers(b *Group) []*Group {
	var out []*Group
	for _, part := range b.HorizontalParts() {
		for _, u := range part.footprint.reads {
			if g := p.groupOf[u.v.Node()]; g != nil && g != b && !slices.Contains(out, g) {
				out = append(out, g)
			}
		}
	}
	slices.SortFunc(out, func(x, y *Group) int { return x.index - y.index })
	return out
}

// readsOf returns the stored values that a group reads but does not compute.
func (p *Partition) readsOf(g *Group) []ir.Value {
	var out []ir.Value
	for _, part := range g.HorizontalParts() {
		for _, u := range part.footprint.reads {
			out = append(out, u.v)
		}
	}
	return out
}

// dependencies returns the groups that must run before a group.
func (p *Partition) dependencies(g *Group) []*Group { return slices.Concat(p.producers(g), p.after[g]) }

// findLevels numbers the groups and returns the level of each: the length of its
// longest chain of producers. Groups of one level do not depend on each other.
func (p *Partition) findLevels() []int {
	level := make([]int, len(p.groups))
	for i, g := range p.groups {
		g.index = i
	}
	for i, g := range p.groups {
		for _, q := range p.producers(g) {
			level[i] = max(level[i], level[q.index]+1)
		}
	}
	return level
}

// order turns the groups into items in topological order: producers first, index checks
// before anything persistent is written, and otherwise in graph order.
func (p *Partition) order() error {
	for _, g := range p.topological(p.groups) {
		switch {
		case g.Kind == ControlKind:
			items, err := p.control(g)
			if err != nil {
				return err
			}
			p.Items = append(p.Items, items...)
		case len(g.HorizontalParts()[0].Members)+len(g.HorizontalParts()[0].Copies) > 0: // no gate
			p.collectLoads(g)
			p.Items = append(p.Items, g)
		}
	}
	return nil
}

// topological sorts groups topologically and adds the groups they depend on.
func (p *Partition) topological(groups []*Group) []*Group {
	out := make([]*Group, 0, len(groups))
	done := make(map[*Group]bool, len(groups))
	var visit func(g *Group)
	visit = func(g *Group) {
		if done[g] {
			return
		}
		done[g] = true
		for _, q := range p.dependencies(g) {
			visit(q)
		}
		out = append(out, g)
	}
	for _, g := range groups {
		visit(g)
	}
	return out
}

// gate adds an empty group that depends on after, so that m groups can wait for n with
// m + n edges instead of m · n.
func (p *Partition) gate(after []*Group) *Group {
	g := &Group{Kind: MapKind, partition: p}
	p.groups = append(p.groups, g)
	p.after[g] = after
	return g
}

// gateOfChecks returns a gate after all groups that check indices and all collectives with a status
// code, or nil if there are none. Groups that write states wait for it, so that an index out of range
// or a lost device leaves the states unchanged.
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
	for _, part := range g.HorizontalParts() {
		for _, m := range part.Members {
			if p.spaceOf(m.Node).checks || p.isFailing(m.Node) || slices.ContainsFunc(m.Node.Subgraphs(), HasChecks) {
				return true
			}
		}
	}
	return false
}

// isFailing reports whether a node is a collective with a status code.
func (p *Partition) isFailing(n *ir.Node) bool {
	return p.options.CollectivesFail && ops.IsCollective(n)
}

// collectLoads sets the tensors a group loads, and gives a failing collective its status code.
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
	for _, part := range g.HorizontalParts() {
		for _, c := range part.Copies {
			add(c.From.viewed())
		}
		for _, m := range part.Members {
			if p.isFailing(m.Node) {
				p.code(m.Node)
			}
		}
	}
}
