package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// findPhases tells by ID how far the graph has come to compute again what it
// computed before: phase k of a node is the number of the last run of rematerialize
// nodes, side by side, that it depends on, 0 for none. Groups that do not need each
// other are joined within a phase only. A part that is computed again reads what
// the first time read, and would be joined to it: then its results would be there,
// and take memory, all the time in between.
func (p *Partition) findPhases() {
	nodes := p.Graph.Nodes()
	p.phases, p.entering = make([]int, len(nodes)), map[ir.Value]bool{}
	count, last := 0, -2
	for i, n := range nodes {
		for _, v := range n.Inputs() {
			p.phases[i] = max(p.phases[i], p.phases[v.Node().ID()])
		}
		if n.Op() == ops.OpRematerialize {
			if last != i-1 {
				count++
			}
			p.phases[i], last = count, i
			p.entering[n.Input(0)] = true
		}
	}
}

// phase returns that of the latest member of a group.
func (p *Partition) phase(g *Group) int {
	k := 0
	for _, part := range g.SideBySide() {
		for _, m := range part.Members {
			k = max(k, p.phases[m.Node.ID()])
		}
	}
	return k
}

// isLater reports whether b, which reads a, may be computing again what is to come
// long after a.
func (p *Partition) isLater(a, b *Group) bool {
	return p.phase(b) > p.phase(a) && slices.ContainsFunc(p.readsOf(b), func(v ir.Value) bool {
		return p.entering[v] && p.groupOf[v.Node()] == a
	})
}
