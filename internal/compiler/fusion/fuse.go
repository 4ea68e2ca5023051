package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// fuseAll fuses groups as far as the rules allow. It takes a few linear sweeps: each
// group is compared only with the few it reads, and groups are bounded in size.
func (p *Partition) fuseAll() {
	p.sweep()
	if p.fuseSiblings() {
		p.sweep()
	}
	p.fuseHorizontally()
}

// sweep visits the groups in topological order and merges each with its producers
// while a rule allows it.
//
// A merge of a into b must not create a cycle: no path may lead from a to b through
// a third group. Two cases are safe without a search. If a is the last of b's
// producers, every other path into b starts before a, and the merged group takes
// a's place. If no other group up to b reads a, no path leaves a except to b, and
// the merged group takes b's place. Both keep all edges pointing forward.
func (p *Partition) sweep() {
	groups := p.groups
	for i, g := range groups {
		g.index = i
		g.users = nil
	}
	for _, g := range groups {
		for _, a := range p.producers(g) {
			a.users = append(a.users, g)
		}
		for g != nil {
			g = p.mergeInto(g)
		}
	}
	p.groups = currentGroups(groups)
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
func (p *Partition) mergeInto(b *Group) *Group {
	producers := p.producers(b)
	for i := len(producers) - 1; i >= 0; i-- {
		a := producers[i]
		last := i == len(producers)-1
		if a.readByOther(b) && (!last || p.isLater(a, b)) {
			continue
		}
		m := p.merge(a, b)
		if m == nil || !p.admits(m, a, b) {
			continue
		}
		m.index = b.index
		if last && a.readByOther(b) {
			m.index = a.index
		}
		p.replace(a, b, m)
		return m
	}
	return nil
}

// readByOther reports whether a group other than b that the sweep has visited reads g.
func (g *Group) readByOther(b *Group) bool {
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
func (p *Partition) admits(m, a, b *Group) bool {
	m.partition = p
	m.footprint = a.footprint.merged(&b.footprint)
	if m.footprint.members > maxGroupMembers || m.footprint.weight > maxGroupWeight {
		return false
	}
	return p.binds(m)
}

// replace records that m replaces a and b.
func (p *Partition) replace(a, b, m *Group) {
	for _, part := range m.HorizontalParts() {
		for _, mem := range part.Members {
			p.groupOf[mem.Node] = m
		}
	}
	a.mergedInto, b.mergedInto = m, m
	m.users = slices.Concat(a.users, b.users)
}

// merge returns the group of a followed by its consumer b, or nil where no rule fits.
// It changes nothing.
func (p *Partition) merge(a, b *Group) *Group {
	switch {
	case a.Kind != MapKind && p.updates(b), a.Kind == ContractKind && p.joinsRows(a, b):
		return nil
	case a.Kind == MapKind && b.Kind == MapKind, a.Kind == ContractKind && b.Kind == MapKind:
		return p.mergeSame(a, b)
	case a.Kind == ReduceKind && b.Kind == MapKind:
		return p.mergeAfterReduce(a, b)
	case a.Kind == ReduceKind && b.Kind == ReduceKind:
		return p.mergeReductions(a, b)
	case a.Kind == MapKind && b.Kind == ReduceKind:
		return p.mergeBeforeReduce(a, b)
	}
	return nil
}

// updates reports whether a group computes the new value of a state from the old
// one. Such maps stay maps: they update in place, and horizontal fusion makes one
// kernel of a whole optimiser step.
func (p *Partition) updates(g *Group) bool {
	return slices.ContainsFunc(g.footprint.keeps, func(k use) bool {
		old, ok := p.oldOf[k.v]
		return ok && g.reads(old)
	})
}

// mergeSame fuses maps over one space, and maps as the epilogue of a contraction.
func (p *Partition) mergeSame(a, b *Group) *Group {
	phi, ok := p.align(a, b)
	if !ok || !slices.Equal(a.Outer, b.Outer) {
		return nil
	}
	for i, c := range phi {
		if c != i {
			return nil
		}
	}
	return join(a.Kind, a.Outer, nil, a.Members, b.Members)
}

// mergeAfterReduce makes a map the epilogue of the reductions it reads, once per
// outer point or once per inner point.
func (p *Partition) mergeAfterReduce(a, b *Group) *Group {
	phi, ok := p.align(a, b)
	if !ok {
		return nil
	}
	mapped, rest := splitAxes(phi)
	outerDone := count(mapped, func(c int) bool { return c < len(a.Outer) }) == len(a.Outer)
	all := len(a.Outer) + len(a.Inner)
	switch {
	case !outerDone:
		return nil
	case len(rest) == 0 && (len(mapped) == len(a.Outer) || len(mapped) == all):
	case len(mapped) == len(a.Outer) && slices.Equal(sizes(b.Outer, rest), a.Inner):
		for i, c := range rest {
			phi[c] = len(a.Outer) + i
		}
	default:
		return nil
	}
	pointwise := slices.ContainsFunc(phi, func(c int) bool { return c >= len(a.Outer) })
	if pointwise && !a.allowsStages() {
		return nil
	}
	return join(ReduceKind, a.Outer, a.Inner, a.Members, remapped(b.Members, phi))
}

// mergeReductions makes b a further stage of a.
func (p *Partition) mergeReductions(a, b *Group) *Group {
	phi, ok := p.align(a, b)
	if !ok || len(a.Outer) != len(b.Outer) || len(a.Inner) != len(b.Inner) || !a.allowsStages() {
		return nil
	}
	for i := range phi {
		outer := i < len(b.Outer)
		if phi[i] < 0 {
			phi[i] = i
		}
		if outer != (phi[i] < len(a.Outer)) {
			return nil
		}
	}
	if !injective(phi) || !slices.Equal(sizes(append(slices.Clone(a.Outer), a.Inner...), phi), append(slices.Clone(b.Outer), b.Inner...)) {
		return nil
	}
	return join(ReduceKind, a.Outer, a.Inner, a.Members, remapped(b.Members, phi))
}

// mergeBeforeReduce makes a map the prologue of the reductions that read it.
func (p *Partition) mergeBeforeReduce(a, b *Group) *Group {
	phi, ok := p.align(a, b)
	if !ok || !b.isWhole() {
		return nil
	}
	back := make([]int, len(a.Outer))
	for i := range back {
		back[i] = slices.Index(phi, i)
		if back[i] < 0 {
			return nil
		}
	}
	inner := count(back, func(c int) bool { return c >= len(b.Outer) })
	whole := inner == len(b.Inner) && len(back) == len(b.Outer)+len(b.Inner)
	perRow := inner == 0 && len(back) == len(b.Outer)
	if !whole && !perRow {
		return nil
	}
	m := join(ReduceKind, b.Outer, b.Inner, remapped(a.Members, back), b.Members)
	m.partition, m.footprint = p, a.footprint.merged(&b.footprint)
	if m.RowSplits() < b.RowSplits() {
		return nil // a few workgroups would do the work of many to save one read
	}
	return m
}

// isWhole reports whether a reduction fills the device without being split.
func (g *Group) isWhole() bool {
	return g.partition.options.Policy.FillsDevice(Product(g.Outer), Product(g.Inner))
}

// allowsStages reports whether further stages may depend on whole rows of a reduction.
func (g *Group) allowsStages() bool {
	return g.partition.options.Policy.AllowsStages(Product(g.Outer), Product(g.Inner), g.RowsAreContiguous())
}

func join(kind Kind, outer, inner []int, a, b []*Member) *Group {
	return &Group{Kind: kind, Outer: outer, Inner: inner, Members: slices.Concat(a, b)}
}

// align returns, for each coordinate of b, the coordinate of a that b's reads of a
// match it with, or -1 where no read fixes it. It fails where a read is not a
// projection, because then an element of b needs elements of a from another thread,
// and where a read covers only part of a (a slice), because then the iteration
// spaces differ in size.
func (p *Partition) align(a, b *Group) ([]int, bool) {
	sizesA, sizesB := slices.Concat(a.Outer, a.Inner), slices.Concat(b.Outer, b.Inner)
	phi := make([]int, len(sizesB))
	for i := range phi {
		phi[i] = -1
	}
	for _, m := range b.Members {
		s := p.spaceOf(m.Node)
		for _, acc := range s.reads {
			from := a.member(s.valueOf(acc))
			if from == nil {
				continue
			}
			for axis, e := range acc.at {
				ca := from.Coord[axis]
				if ca < 0 {
					continue
				}
				own, ok := s.axisOf(e)
				if !ok {
					return nil, false
				}
				cb := m.coordOf(own)
				if phi[cb] >= 0 && phi[cb] != ca || sizesA[ca] != sizesB[cb] {
					return nil, false
				}
				phi[cb] = ca
			}
		}
	}
	return phi, injective(phi)
}

func injective(phi []int) bool {
	seen := map[int]bool{}
	for _, c := range phi {
		if c >= 0 && seen[c] {
			return false
		}
		seen[c] = true
	}
	return true
}

func splitAxes(phi []int) (mapped, rest []int) {
	for i, c := range phi {
		if c < 0 {
			rest = append(rest, i)
		} else {
			mapped = append(mapped, c)
		}
	}
	return mapped, rest
}

func count(xs []int, ok func(int) bool) int {
	n := 0
	for _, x := range xs {
		if ok(x) {
			n++
		}
	}
	return n
}

func sizes(dims, which []int) []int {
	out := make([]int, len(which))
	for i, c := range which {
		out[i] = dims[c]
	}
	return out
}

// remapped returns copies of members with their coordinates mapped through phi.
func remapped(members []*Member, phi []int) []*Member {
	through := func(coord []int) []int {
		if coord == nil {
			return nil
		}
		out := make([]int, len(coord))
		for i, c := range coord {
			out[i] = c
			if c >= 0 {
				out[i] = phi[c]
			}
		}
		return out
	}
	out := make([]*Member, len(members))
	for i, m := range members {
		c := *m
		c.Coord, c.Inner = through(m.Coord), through(m.Inner)
		out[i] = &c
	}
	return out
}

// findPhases sets the phase of each node by ID: the number of the last run of consecutive
// rematerialize nodes that it depends on, 0 for none. Independent groups fuse only within
// a phase. Recomputed nodes read the same values as the original ones; fused with them,
// their results would be computed early and stay live in between, which rematerialisation
// is to avoid.
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

// phase returns the phase of the latest member of a group.
func (p *Partition) phase(g *Group) int {
	k := 0
	for _, part := range g.HorizontalParts() {
		for _, m := range part.Members {
			k = max(k, p.phases[m.Node.ID()])
		}
	}
	return k
}

// isLater reports whether b, a reader of a, may belong to a rematerialisation that runs
// long after a.
func (p *Partition) isLater(a, b *Group) bool {
	return p.phase(b) > p.phase(a) && slices.ContainsFunc(p.readsOf(b), func(v ir.Value) bool {
		return p.entering[v] && p.groupOf[v.Node()] == a
	})
}
