package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// fuseSiblings merges reductions of one level over the same space that read a
// value in common, so that it is read once: the parts of a loss, or the sums of
// a norm's gradient. It reports whether it found any.
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
			if a = a.now(); a == g || !siblings(a, g) {
				continue
			}
			m := join(ReduceKind, a.Outer, a.Inner, a.Members, g.Members)
			if !p.admits(m, a, g) {
				continue
			}
			m.place = g.place
			p.replace(a, g, m)
			g, found = m, true
		}
		for _, key := range keys {
			first[key] = g
		}
	}
	if found {
		p.groups = p.inOrder(standing(p.groups))
	}
	return found
}

func siblings(a, b *Group) bool {
	return slices.Equal(a.Outer, b.Outer) && slices.Equal(a.Inner, b.Inner)
}

// siblingKey is a read of a value by groups of a level and a phase, with the coordinate of
// the group that each axis runs along: elsewhere where it is more than a
// coordinate. The rows and the columns of a square are the same space, yet at no
// point of it do the sums of both read one element.
type siblingKey struct {
	v     ir.Value
	level int
	phase int
	coord [maxMemoRank]int8
}

// elsewhere stands for an axis that runs along more than a coordinate of the group.
const elsewhere = -2

// siblingKeys tells where a group reads values in its own coordinates, each
// place once.
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

// Bounds of what is put side by side.
const (
	// besideBytes is how much a part may read and write: about what a large
	// device moves in the time of a launch. To bundle larger ones saves nothing
	// and keeps all that they read alive.
	besideBytes = 16 << 20
	// maxParts bounds the parts side by side: what is bundled waits for all of it,
	// and keeps all that it reads alive.
	maxParts = 64
)

// fuseSideBySide puts small maps that do not wait for each other into one
// kernel: all that nothing else waits for (the updates of an optimiser), and
// those that become ready together. Such a bundle may touch more than a kernel
// binds, since it can be cut between any two of its parts.
func (p *Partition) fuseSideBySide() {
	levels := p.findLevels()
	read := make([]bool, len(p.groups))
	for _, g := range p.groups {
		for _, q := range p.producers(g) {
			read[q.place] = true
		}
	}
	bundles := map[[2]int]*Group{} // by level and phase
	for i, g := range p.groups {
		if g.Kind != MapKind || g.bytes() > besideBytes {
			continue
		}
		key := [2]int{levels[i], p.phase(g)}
		if !read[i] {
			key = [2]int{sink, 0}
		}
		a := bundles[key]
		if a == nil || len(a.SideBySide()) == maxParts {
			bundles[key] = g
			continue
		}
		if len(a.Parts) == 0 {
			a = &Group{Kind: MapKind, partition: p}
			p.joinBundle(a, bundles[key])
			bundles[key] = a
		}
		p.joinBundle(a, g)
	}
	p.groups = p.inOrder(standing(p.groups))
}

// joinBundle puts a group beside the parts of a bundle, which then stands in its place.
func (p *Partition) joinBundle(bundle, g *Group) {
	bundle.Parts, bundle.place = append(bundle.Parts, g), g.place
	bundle.touch.weight += g.touch.weight
	g.into = bundle
	for _, m := range g.Members {
		p.groupOf[m.Node] = bundle
	}
}

// sink is the level of groups that no other group reads.
const sink = -1

// bytes is the memory that a group reads and writes.
func (g *Group) bytes() int {
	n := 0
	add := func(v ir.Value) {
		size, _ := v.Shape().Size().Const()
		n += size * loop.DeviceSize(v.DType())
	}
	for _, u := range g.touch.reads {
		add(u.v)
	}
	for _, u := range g.touch.keeps {
		add(u.v)
	}
	return n
}
