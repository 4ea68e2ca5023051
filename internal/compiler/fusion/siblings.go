package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// fuseSiblings fuses independent reductions of one level over the same space that read a
// common value, so that it is read once: the terms of a loss, or the sums of a norm's
// gradient. It reports whether it fused any.
func (p *Partition) fuseSiblings() bool {
	levels := p.findLevels()
	first := map[siblingKey]*Group{}
	found := false
	for i, g := range p.groups {
		if g.Kind != ReduceKind || !g.isWhole() {
			continue
		}
		keys := p.siblingKeys(g, levels[i], p.phase(g))
		for _, key := range keys {
			a := first[key]
			if a == nil {
				continue
			}
			if a = a.current(); a == g || !siblings(a, g) {
				continue
			}
			m := join(ReduceKind, a.Outer, a.Inner, a.Members, g.Members)
			if !p.admits(m, a, g) {
				continue
			}
			m.index = g.index
			p.replace(a, g, m)
			g, found = m, true
		}
		for _, key := range keys {
			first[key] = g
		}
	}
	if found {
		p.groups = p.topological(currentGroups(p.groups))
	}
	return found
}

func siblings(a, b *Group) bool {
	return slices.Equal(a.Outer, b.Outer) && slices.Equal(a.Inner, b.Inner)
}

// siblingKey is a read of a value by groups of a level and a phase, with the coordinate of
// the group along each axis. The coordinates matter: row sums and column sums of a square
// matrix have the same space but read different elements at each point.
type siblingKey struct {
	v     ir.Value
	level int
	phase int
	coord [maxMemoRank]int8
}

// elsewhere marks an axis whose position is not a single coordinate of the group.
const elsewhere = -2

// siblingKeys returns the reads of a group in its coordinates, without duplicates.
func (p *Partition) siblingKeys(g *Group, level, phase int) []siblingKey {
	var out []siblingKey
	for _, m := range g.Members {
		s := p.spaceOf(m.Node)
		for _, a := range s.reads {
			if len(a.at) > maxMemoRank {
				continue
			}
			key := siblingKey{v: s.valueOf(a), level: level, phase: phase}
			for axis, e := range a.at {
				key.coord[axis] = elsewhere
				if own, ok := s.axisOf(e); ok {
					key.coord[axis] = int8(m.coordOf(own))
				}
			}
			if !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}

// Limits of horizontal fusion.
const (
	// maxPartBytes bounds the memory traffic of a part: about what a large device moves
	// during one launch. Fusing larger maps saves nothing and extends live ranges.
	maxPartBytes = 16 << 20
	// maxParts bounds the number of parts: the users of one part wait for all of them,
	// and all operands stay live.
	maxParts = 64
)

// fuseHorizontally fuses small independent maps horizontally: all maps without readers (the
// updates of an optimiser), and maps of one level. Such a group may bind more tensors than
// a kernel can, because it can be cut between any two parts.
func (p *Partition) fuseHorizontally() {
	levels := p.findLevels()
	read := make([]bool, len(p.groups))
	for _, g := range p.groups {
		for _, q := range p.producers(g) {
			read[q.index] = true
		}
	}
	bundles := map[[2]int]*Group{} // by level and phase
	for i, g := range p.groups {
		if g.Kind != MapKind || g.bytes() > maxPartBytes {
			continue
		}
		key := [2]int{levels[i], p.phase(g)}
		if !read[i] {
			key = [2]int{sink, 0}
		}
		a := bundles[key]
		if a == nil || len(a.HorizontalParts()) == maxParts {
			bundles[key] = g
			continue
		}
		if len(a.Parts) == 0 {
			a = &Group{Kind: MapKind, partition: p}
			p.addPart(a, bundles[key])
			bundles[key] = a
		}
		p.addPart(a, g)
	}
	p.groups = p.topological(currentGroups(p.groups))
}

// addPart appends a group to the parts of a horizontal fusion, which takes its place.
func (p *Partition) addPart(bundle, g *Group) {
	bundle.Parts, bundle.index = append(bundle.Parts, g), g.index
	bundle.footprint.weight += g.footprint.weight
	g.mergedInto = bundle
	for _, m := range g.Members {
		p.groupOf[m.Node] = bundle
	}
}

// sink is the level of groups without readers.
const sink = -1

// bytes returns the memory traffic of a group.
func (g *Group) bytes() int {
	n := 0
	add := func(v ir.Value) {
		size, _ := v.Shape().Size().Const()
		n += size * loop.DeviceSize(v.DType())
	}
	for _, u := range g.footprint.reads {
		add(u.v)
	}
	for _, u := range g.footprint.keeps {
		add(u.v)
	}
	return n
}
