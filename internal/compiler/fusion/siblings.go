package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// fuseSiblings fuses independent reductions of one level over the same space that read a
// common value, so that it is read once: the terms of a loss, or the sums of a norm's
// gradient. It reports whether it fused any.
func (f fuser) fuseSiblings() bool {
	levels := f.levels()
	first := map[siblingKey]*Group{}
	found := false
	for i, g := range f.list {
		if g.Kind != ReduceKind || !isWhole(g) {
			continue
		}
		keys := siblingKeys(g, levels[i], f.phases.latest(g))
		for _, key := range keys {
			a := first[key]
			if a == nil {
				continue
			}
			if a = a.current(); a == g || !siblings(a, g) {
				continue
			}
			m := join(ReduceKind, a.Outer, a.Inner, a.Members, g.Members)
			if !f.admits(m, a, g) {
				continue
			}
			m.index = g.index
			f.replace(a, g, m)
			g, found = m, true
		}
		for _, key := range keys {
			first[key] = g
		}
	}
	if found {
		f.list = f.topological(currentGroups(f.list))
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
func siblingKeys(g *Group, level, phase int) []siblingKey {
	var out []siblingKey
	for _, m := range g.Members {
		s := g.partition.spaces.of(m.Node)
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
