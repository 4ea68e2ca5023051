package kernel

import "slices"

// splitReduce is the length from which on a reduction with few results is cut
// over several workgroups, which a group of several stages cannot be.
const splitReduce = 4096

// enoughRows is the number of outer points that fill a device without that.
const enoughRows = 64

// fuseAll merges all groups that can be.
func (p *Program) fuseAll() {
	p.fuse()
	if p.fuseSiblings() {
		p.fuse()
	}
	p.fuseSideBySide()
}

// fuse merges groups along the edges between them, as long as one of the rules
// below allows it and no other group stands between the two.
func (p *Program) fuse() {
	for changed := true; changed; {
		changed = false
		for i := 0; i < len(p.groups); i++ {
			for g := p.groups[i]; g != nil; {
				if g = p.mergeInto(g); g != nil {
					changed, i = true, slices.Index(p.groups, g)
				}
			}
		}
	}
}

// mergeInto merges b with one of the groups it reads, the nearest first, and
// returns the result, or nil where no rule allows it.
func (p *Program) mergeInto(b *Group) *Group {
	producers := p.producers(b)
	for i := len(producers) - 1; i >= 0; i-- {
		a := producers[i]
		m := p.merge(a, b)
		if m == nil || p.between(a, b) || p.tooManyTensors(m) {
			continue
		}
		p.replace(a, b, m)
		return m
	}
	return nil
}

// parts returns the groups side by side in g, or g itself.
func (g *Group) parts() []*Group {
	if len(g.Parts) > 0 {
		return g.Parts
	}
	return []*Group{g}
}

// merge returns the group of a followed by b, which reads it, or nil where
// they do not fit. Nothing is changed.
func (p *Program) merge(a, b *Group) *Group {
	switch {
	case a.Kind != MapKind && p.updates(b):
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
func (p *Program) updates(g *Group) bool {
	return slices.ContainsFunc(p.pairs, func(s newValue) bool {
		return g.member(s.new) != nil && slices.Contains(p.readsOf(g), s.old)
	})
}

// mergeSame joins maps over one space, and maps to the contraction they follow.
func (p *Program) mergeSame(a, b *Group) *Group {
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
func (p *Program) mergeAfterReduce(a, b *Group) *Group {
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
	if pointwise && !rowsSuffice(a) {
		return nil
	}
	return join(ReduceKind, a.Outer, a.Inner, a.Members, moved(b.Members, phi))
}

// mergeReductions makes b a further stage of a.
func (p *Program) mergeReductions(a, b *Group) *Group {
	phi, ok := p.align(a, b)
	if !ok || len(a.Outer) != len(b.Outer) || len(a.Inner) != len(b.Inner) || !rowsSuffice(a) {
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
func (p *Program) mergeBeforeReduce(a, b *Group) *Group {
	phi, ok := p.align(a, b)
	if !ok || !rowsSuffice(b) {
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
	return join(ReduceKind, b.Outer, b.Inner, moved(a.Members, back), b.Members)
}

// rowsSuffice reports whether a reduction fills a device without cutting its
// rows, so that more stages may depend on whole rows.
func rowsSuffice(g *Group) bool {
	return product(g.Outer) >= enoughRows || product(g.Inner) <= splitReduce
}

func join(kind Kind, outer, inner []int, a, b []*Member) *Group {
	return &Group{Kind: kind, Outer: outer, Inner: inner, Members: slices.Concat(a, b)}
}
