package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// producers returns the groups that b reads, in order.
func (p *Partition) producers(b *Group) []*Group {
	var out []*Group
	for _, part := range b.SideBySide() {
		for _, u := range part.touch.reads {
			if g := p.groupOf[u.v.Node()]; g != nil && g != b && !slices.Contains(out, g) {
				out = append(out, g)
			}
		}
	}
	slices.SortFunc(out, func(x, y *Group) int { return x.place - y.place })
	return out
}

// readsOf returns the stored values that a group reads but does not compute.
func (p *Partition) readsOf(g *Group) []ir.Value {
	var out []ir.Value
	for _, part := range g.SideBySide() {
		for _, u := range part.touch.reads {
			out = append(out, u.v)
		}
	}
	return out
}

// before returns the groups that must run before a group: its direct dependencies.
func (p *Partition) before(g *Group) []*Group { return slices.Concat(p.producers(g), p.after[g]) }

// findLevels numbers the groups and returns the level of each: the length of its
// longest chain of producers. Groups of one level do not depend on each other.
func (p *Partition) findLevels() []int {
	level := make([]int, len(p.groups))
	for i, g := range p.groups {
		g.place = i
	}
	for i, g := range p.groups {
		for _, q := range p.producers(g) {
			level[i] = max(level[i], level[q.place]+1)
		}
	}
	return level
}
