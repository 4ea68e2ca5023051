package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// phases are the phases of a graph with rematerialize nodes. The phase of a node is the number of
// the last run of consecutive rematerialize nodes that it depends on, 0 for none. Independent groups
// fuse only within a phase. Recomputed nodes read the same values as the original ones; fused with
// them, their results would be computed early and stay live in between, which rematerialisation is
// to avoid.
type phases struct {
	of       []int             // by node ID
	entering map[ir.Value]bool // operands of the rematerialize nodes that start phases
}

// findPhases returns the phases of a graph.
func findPhases(g *ir.Graph) *phases {
	nodes := g.Nodes()
	x := &phases{make([]int, len(nodes)), map[ir.Value]bool{}}
	count, last := 0, -2
	for i, n := range nodes {
		for _, v := range n.Inputs() {
			x.of[i] = max(x.of[i], x.of[v.Node().ID()])
		}
		if n.Op() == ops.OpRematerialize {
			if last != i-1 {
				count++
			}
			x.of[i], last = count, i
			x.entering[n.Input(0)] = true
		}
	}
	return x
}

// latest returns the phase of the latest member of a group.
func (x *phases) latest(g *Group) int {
	k := 0
	for _, part := range g.HorizontalParts() {
		for _, m := range part.Members {
			k = max(k, x.of[m.Node.ID()])
		}
	}
	return k
}

// isLater reports whether b, a reader of a, may belong to a rematerialisation that runs
// long after a.
func (f fuser) isLater(a, b *Group) bool {
	return f.phases.latest(b) > f.phases.latest(a) && slices.ContainsFunc(b.loadedValues(), func(v ir.Value) bool {
		return f.phases.entering[v] && f.of[v.Node()] == a
	})
}
