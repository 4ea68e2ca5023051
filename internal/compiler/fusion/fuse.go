package fusion

import (
	"slices"
)

// fuser merges groups along the edges of their graph, where a rule allows it.
type fuser struct {
	*groupGraph
	phases *phases
}

// fuse fuses groups as far as the rules allow. It takes a few linear sweeps: each
// group is compared only with the few it reads, and groups are bounded in size.
func (f fuser) fuse() {
	f.sweep()
	if f.fuseSiblings() {
		f.sweep()
	}
	f.fuseHorizontally()
}

// sweep visits the groups in topological order and merges each with its producers
// while a rule allows it.
//
// A merge of a into b must not create a cycle: no path may lead from a to b through
// a third group. Two cases are safe without a search. If a is the last of b's
// producers, every other path into b starts before a, and the merged group takes
// a's place. If no other group up to b reads a, no path leaves a except to b, and
// the merged group takes b's place. Both keep all edges pointing forward.
func (f fuser) sweep() {
	groups := f.list
	for i, g := range groups {
		g.index = i
		g.users = nil
	}
	for _, g := range groups {
		for _, a := range f.producers(g) {
			a.users = append(a.users, g)
		}
		for g != nil {
			g = f.mergeInto(g)
		}
	}
	f.list = currentGroups(groups)
}

// currentGroups returns the groups that are not merged into others, in order.
func currentGroups(groups []*Group) []*Group {
	at := make([]*Group, len(groups))
	for _, g := range groups {
		g = g.current()
		at[g.index] = g
	}
	return slices.DeleteFunc(at, func(g *Group) bool { return g == nil })
}

// current returns the group that g has been merged into, or g itself. It compresses paths
// as a union-find structure does.
func (g *Group) current() *Group {
	for g.mergedInto != nil {
		if g.mergedInto.mergedInto != nil {
			g.mergedInto = g.mergedInto.mergedInto
		}
		g = g.mergedInto
	}
	return g
}

// mergeInto merges b with one of its producers, the last first, and returns the
// result, or nil if no rule allows a merge.
func (f fuser) mergeInto(b *Group) *Group {
	producers := f.producers(b)
	for i := len(producers) - 1; i >= 0; i-- {
		a := producers[i]
		last := i == len(producers)-1
		if readByOther(a, b) && (!last || f.isLater(a, b)) {
			continue
		}
		m := merge(a, b)
		if m == nil || !f.admits(m, a, b) {
			continue
		}
		m.index = b.index
		if last && readByOther(a, b) {
			m.index = a.index
		}
		f.replace(a, b, m)
		return m
	}
	return nil
}

// readByOther reports whether a group other than b that the sweep has visited reads g.
func readByOther(g *Group, b *Group) bool {
	for _, u := range g.users {
		if u = u.current(); u != b && u != g {
			return true
		}
	}
	if len(g.users) > 0 {
		g.users = append(g.users[:0], b) // all users have been merged into b
	}
	return false
}

// admits reports whether m, the merge of a and b, stays within the limits of a group.
func (f fuser) admits(m, a, b *Group) bool {
	m.partition = f.partition
	m.footprint = a.footprint.merged(&b.footprint)
	times := m.lengthens(a, b)
	if m.footprint.members > times*maxGroupMembers || m.footprint.weight > times*maxGroupWeight {
		return false
	}
	return m.binds()
}
