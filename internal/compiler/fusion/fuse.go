package fusion

import "slices"

// fuseAll merges all groups that can be. Its time is that of a few sweeps over
// the groups: each is compared with the few that it reads, groups are bounded,
// and nothing is renumbered.
func (p *Partition) fuseAll() {
	p.sweep()
	if p.fuseSiblings() {
		p.sweep()
	}
	p.fuseSideBySide()
}

// sweep goes once through the groups, which stand in order, producers first,
// and merges each with those it reads as long as one of the rules below allows
// it.
//
// No way may lead from a to b through a third group, or the merged group would
// wait for itself. Two cases are known at a glance to have none. Where a is the
// last of what b reads, every other way into b comes from before a; the merged
// group stands where a stood. Where no other group up to b reads a, there is no
// way out of a but to b; the merged group stands where b stood. In both cases
// all edges still lead forward, so that the next merge can be judged alike.
func (p *Partition) sweep() {
	groups := p.groups
	for i, g := range groups {
		g.place = i
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
	p.groups = standing(groups)
}

// standing returns the groups that were not merged into others and those that
// were made of the others, in their places.
func standing(groups []*Group) []*Group {
	at := make([]*Group, len(groups))
	for _, g := range groups {
		g = g.now()
		at[g.place] = g
	}
	return slices.DeleteFunc(at, func(g *Group) bool { return g == nil })
}

// now returns the group that g has become a part of, or g itself.
func (g *Group) now() *Group {
	for g.into != nil {
		if g.into.into != nil {
			g.into = g.into.into
		}
		g = g.into
	}
	return g
}

// mergeInto merges b with one of the groups it reads, the nearest first, and
// returns the result, or nil where no rule allows it.
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
		m.place = b.place
		if last && a.readByOther(b) {
			m.place = a.place
		}
		p.replace(a, b, m)
		return m
	}
	return nil
}

// readByOther reports whether a group that the sweep has met, other than b,
// reads g.
func (g *Group) readByOther(b *Group) bool {
	for _, u := range g.users {
		if u = u.now(); u != b && u != g {
			return true
		}
	}
	if len(g.users) > 0 {
		g.users = append(g.users[:0], b) // all of them have become b
	}
	return false
}

// admits reports whether m, made of a and b, stays within the bounds of a
// group.
func (p *Partition) admits(m, a, b *Group) bool {
	m.partition = p
	m.touch = a.touch.with(&b.touch)
	if m.touch.members > maxGroupMembers || m.touch.weight > maxGroupWeight {
		return false
	}
	return p.binds(m)
}

// replace puts m in the place of a and b.
func (p *Partition) replace(a, b, m *Group) {
	for _, part := range m.SideBySide() {
		for _, mem := range part.Members {
			p.groupOf[mem.Node] = m
		}
	}
	a.into, b.into = m, m
	m.users = slices.Concat(a.users, b.users)
}

// merge returns the group of a followed by b, which reads it, or nil where
// they do not fit. Nothing is changed.
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

// updates reports whether a group computes the new value of a state from the
// old one. Such maps stay maps: they write in place there, and side by side
// they make the whole optimiser one kernel.
func (p *Partition) updates(g *Group) bool {
	return slices.ContainsFunc(g.touch.keeps, func(k use) bool {
		old, ok := p.oldOf[k.v]
		return ok && g.reads(old)
	})
}

// mergeSame joins maps over one space, and maps to the contraction they follow.
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

// mergeAfterReduce puts a map behind the reductions whose results it reads:
// once for each outer point, or once for each inner one too.
func (p *Partition) mergeAfterReduce(a, b *Group) *Group {
	phi, ok := p.align(a, b)
	if !ok {
		return nil
	}
	mapped, rest := split(phi)
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
	return join(ReduceKind, a.Outer, a.Inner, a.Members, moved(b.Members, phi))
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
	return join(ReduceKind, a.Outer, a.Inner, a.Members, moved(b.Members, phi))
}

// mergeBeforeReduce computes a map inside the reductions that read it.
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
	m := join(ReduceKind, b.Outer, b.Inner, moved(a.Members, back), b.Members)
	m.partition, m.touch = p, a.touch.with(&b.touch)
	if m.RowParts() < b.RowParts() {
		return nil // a few workgroups would do the work of many to save one reading
	}
	return m
}

// isWhole reports whether a reduction fills the device without cutting its rows.
func (g *Group) isWhole() bool {
	return g.partition.options.Policy.Whole(Product(g.Outer), Product(g.Inner))
}

// allowsStages reports whether further stages may depend on the whole rows of a reduction.
func (g *Group) allowsStages() bool {
	return g.partition.options.Policy.Stages(Product(g.Outer), Product(g.Inner), g.RowsAreContiguous())
}

func join(kind Kind, outer, inner []int, a, b []*Member) *Group {
	return &Group{Kind: kind, Outer: outer, Inner: inner, Members: slices.Concat(a, b)}
}
