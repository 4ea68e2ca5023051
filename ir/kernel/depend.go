package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// producers returns the groups that b reads, in program order.
func (p *Program) producers(b *Group) []*Group {
	var out []*Group
	for _, v := range p.readsOf(b) {
		if g := p.groupOf[v.Node()]; g != nil && g != b && !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(x, y *Group) int { return x.place - y.place })
	return out
}

// readsOf returns the stored values that a group reads and does not compute.
func (p *Program) readsOf(g *Group) []ir.Value {
	if g.outside != nil {
		return *g.outside
	}
	seen := map[ir.Value]bool{}
	for _, part := range g.parts() {
		for _, m := range part.Members {
			for _, v := range m.Node.Results() {
				seen[v] = true
			}
		}
	}
	var out []ir.Value
	for _, part := range g.parts() {
		for _, m := range part.Members {
			for _, a := range p.spaceOf(m.Node).reads {
				if !seen[a.v] {
					seen[a.v] = true
					out = append(out, a.v)
				}
			}
		}
	}
	g.outside = &out
	return out
}

// between reports whether there is a way from a to b through another group,
// which merging the two would make a circle.
func (p *Program) between(a, b *Group) bool {
	return slices.ContainsFunc(p.producers(b), func(g *Group) bool { return g != a && p.reaches(a, g) })
}

// replace puts m in the place of a and b, of which a comes first. What stands
// between them and waits for a moves behind m.
func (p *Program) replace(a, b, m *Group) {
	m.program = p
	for _, part := range m.parts() {
		for _, mem := range part.Members {
			p.groupOf[mem.Node] = m
		}
	}
	order := make([]*Group, 0, b.place-a.place)
	waiting := []*Group{m}
	for _, g := range p.groups[a.place+1 : b.place] {
		if slices.ContainsFunc(p.producers(g), func(q *Group) bool { return slices.Contains(waiting, q) }) {
			waiting = append(waiting, g)
		} else {
			order = append(order, g)
		}
	}
	p.groups = slices.Replace(p.groups, a.place, b.place+1, append(order, waiting...)...)
	for i := a.place; i < len(p.groups); i++ {
		p.groups[i].place = i
	}
}

// reaches reports whether b has to wait for a, or is a. As long as groups wait
// for what they read alone, those before a need not be looked at.
func (p *Program) reaches(a, b *Group) bool {
	inOrder := len(p.after) == 0
	seen := map[*Group]bool{}
	var from func(g *Group) bool
	from = func(g *Group) bool {
		if g == a {
			return true
		}
		if seen[g] || inOrder && g.place < a.place {
			return false
		}
		seen[g] = true
		return slices.ContainsFunc(p.before(g), from)
	}
	return from(b)
}

// before returns all groups that a group has to wait for directly.
func (p *Program) before(g *Group) []*Group { return slices.Concat(p.producers(g), p.after[g]) }
