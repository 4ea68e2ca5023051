package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// groupGraph is the graph of the groups of a partition: which group reads which, and which waits
// for which.
type groupGraph struct {
	partition  *Partition
	list       []*Group // each after its producers
	of         map[*ir.Node]*Group
	after      map[*Group][]*Group // dependencies beyond producers
	allChecked *Group              // the gate after all checks, nil without one
}

// newGroupGraph creates one group for each stored node that computes something that is read.
func newGroupGraph(p *Partition) *groupGraph {
	x := &groupGraph{partition: p, of: map[*ir.Node]*Group{}, after: map[*Group][]*Group{}}
	for _, n := range p.Graph.Nodes() {
		if p.decided.stored(n) && !isLeaf(n) {
			g := newGroup(p, n)
			x.list, x.of[n] = append(x.list, g), g
		}
	}
	readers := x.countReaders()
	x.dropUnread(readers)
	for _, g := range x.list {
		g.footprint = footprintOf(p, g.Members[0].Node, readers)
	}
	return x
}

// countReaders counts for each value the stored nodes and outputs that read it, while each group
// is one node.
func (x *groupGraph) countReaders() map[ir.Value]int {
	readers := map[ir.Value]int{}
	for _, g := range x.list {
		s := x.partition.spaces.of(g.Members[0].Node)
		for _, i := range s.order {
			readers[s.values[i]]++
		}
	}
	for _, o := range x.partition.Graph.Outputs() {
		readers[o.Value]++
	}
	return readers
}

// dropUnread removes nodes whose results no kernel reads, as where an index is a constant out of
// range, and lowers the counts of what they read.
func (x *groupGraph) dropUnread(readers map[ir.Value]int) {
	for i := len(x.list) - 1; i >= 0; i-- {
		g := x.list[i]
		n, read := g.Members[0].Node, 0
		for _, v := range n.Results() {
			read += readers[v]
		}
		if read > 0 || ops.IsCollective(n) || g.checks() {
			continue
		}
		x.list = slices.Delete(x.list, i, i+1)
		delete(x.of, n)
		s := x.partition.spaces.of(n)
		for _, j := range s.order {
			readers[s.values[j]]--
		}
	}
}

// producers returns the groups that b reads, in order.
func (x *groupGraph) producers(b *Group) []*Group {
	var out []*Group
	for _, part := range b.HorizontalParts() {
		for _, u := range part.footprint.reads {
			if g := x.of[u.v.Node()]; g != nil && g != b && !slices.Contains(out, g) {
				out = append(out, g)
			}
		}
	}
	slices.SortFunc(out, func(x, y *Group) int { return x.index - y.index })
	return out
}

// dependencies returns the groups that must run before a group.
func (x *groupGraph) dependencies(g *Group) []*Group {
	return slices.Concat(x.producers(g), x.after[g])
}

// wait makes a group depend on another that it does not read.
func (x *groupGraph) wait(g, before *Group) { x.after[g] = append(x.after[g], before) }

// replace records that m replaces a and b.
func (x *groupGraph) replace(a, b, m *Group) {
	for _, part := range m.HorizontalParts() {
		for _, mem := range part.Members {
			x.of[mem.Node] = m
		}
	}
	a.mergedInto, b.mergedInto = m, m
	m.users = slices.Concat(a.users, b.users)
}

// levels numbers the groups and returns the level of each: the length of its
// longest chain of producers. Groups of one level do not depend on each other.
func (x *groupGraph) levels() []int {
	level := make([]int, len(x.list))
	for i, g := range x.list {
		g.index = i
	}
	for i, g := range x.list {
		for _, q := range x.producers(g) {
			level[i] = max(level[i], level[q.index]+1)
		}
	}
	return level
}

// topological sorts groups topologically and adds the groups they depend on.
func (x *groupGraph) topological(groups []*Group) []*Group {
	out := make([]*Group, 0, len(groups))
	done := make(map[*Group]bool, len(groups))
	var visit func(g *Group)
	visit = func(g *Group) {
		if done[g] {
			return
		}
		done[g] = true
		for _, q := range x.dependencies(g) {
			visit(q)
		}
		out = append(out, g)
	}
	for _, g := range groups {
		visit(g)
	}
	return out
}

// cycles returns the groups on dependency cycles, by Tarjan's algorithm for strongly
// connected components.
func (x *groupGraph) cycles() map[*Group]bool {
	if len(x.after) == 0 {
		return nil // groups come after their producers
	}
	out := map[*Group]bool{}
	index, low := map[*Group]int{}, map[*Group]int{}
	onStack := map[*Group]bool{}
	var stack []*Group
	var visit func(g *Group)
	visit = func(g *Group) {
		index[g] = len(index) + 1
		low[g] = index[g]
		stack, onStack[g] = append(stack, g), true
		for _, q := range x.dependencies(g) {
			if index[q] == 0 {
				visit(q)
				low[g] = min(low[g], low[q])
			} else if onStack[q] {
				low[g] = min(low[g], index[q])
			}
		}
		if low[g] != index[g] {
			return
		}
		first := slices.Index(stack, g)
		for _, q := range stack[first:] {
			onStack[q] = false
			if len(stack)-first > 1 {
				out[q] = true
			}
		}
		stack = stack[:first]
	}
	for _, g := range x.list {
		if index[g] == 0 {
			visit(g)
		}
	}
	return out
}

// gate adds an empty group that depends on after, so that m groups can wait for n with
// m + n edges instead of m · n.
func (x *groupGraph) gate(after []*Group) *Group {
	g := &Group{Kind: MapKind, partition: x.partition}
	x.list = append(x.list, g)
	x.after[g] = after
	return g
}

// gateChecks adds a gate after all groups that check indices and all collectives with a status
// code, unless there are none. Groups that write states wait for it, so that an index out of range
// or a lost device leaves the states unchanged.
func (x *groupGraph) gateChecks() {
	if x.allChecked != nil {
		x.list = slices.DeleteFunc(x.list, func(g *Group) bool { return g == x.allChecked })
		x.allChecked = nil
	}
	var checking []*Group
	for _, g := range x.list {
		if g.checks() {
			checking = append(checking, g)
		}
	}
	if len(checking) > 0 {
		x.allChecked = x.gate(checking)
	}
}

// checks reports whether a group has a status code, or a control-flow node that contains checks.
func (g *Group) checks() bool {
	p := g.partition
	for _, part := range g.HorizontalParts() {
		for _, m := range part.Members {
			if p.spaces.of(m.Node).checks || p.isFailing(m.Node) || slices.ContainsFunc(m.Node.Subgraphs(), HasChecks) {
				return true
			}
		}
	}
	return false
}

// addCopies adds groups that copy values and returns them.
func (x *groupGraph) addCopies(copies []Copy) []*Group {
	groups := copyGroups(x.partition, copies)
	x.list = append(x.list, groups...)
	return groups
}
