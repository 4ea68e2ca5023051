package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// fuseSiblings merges independent reductions over the same space that read a
// value in common, so that it is read once: the parts of a loss, or the sums of
// a norm's gradient. It reports whether it found any.
func (p *Program) fuseSiblings() bool {
	found := false
	for i := 0; i < len(p.groups); i++ {
		for j := i + 1; j < len(p.groups); j++ {
			a, b := p.groups[i], p.groups[j]
			if !p.siblings(a, b) || p.reaches(a, b) || p.reaches(b, a) {
				continue
			}
			m := join(ReduceKind, a.Outer, a.Inner, a.Members, b.Members)
			if p.tooManyTensors(m) {
				continue
			}
			p.replace(a, b, m)
			found = true
			i, j = slices.Index(p.groups, m), slices.Index(p.groups, m)
		}
	}
	return found
}

func (p *Program) siblings(a, b *Group) bool {
	if a.Kind != ReduceKind || b.Kind != ReduceKind || !slices.Equal(a.Outer, b.Outer) || !slices.Equal(a.Inner, b.Inner) {
		return false
	}
	if !rowsSuffice(a) {
		return false
	}
	reads := p.placedReads(b)
	return slices.ContainsFunc(p.placedReads(a), func(x placedRead) bool {
		return slices.ContainsFunc(reads, func(y placedRead) bool { return x.v == y.v && slices.Equal(x.coord, y.coord) })
	})
}

// placedRead is a read of a value with the coordinate of the group that each
// axis runs along: elsewhere where it is more than a coordinate.
type placedRead struct {
	v     ir.Value
	coord []int
}

const elsewhere = -2

// placedReads tells where a group reads values in its own coordinates. The rows
// and the columns of a square are the same space, yet at no point of it do the
// sums of both read one element.
func (p *Program) placedReads(g *Group) []placedRead {
	var out []placedRead
	for _, m := range g.Members {
		s := p.spaceOf(m.Node)
		for _, a := range s.reads {
			coord := make([]int, len(a.at))
			for axis, e := range a.at {
				coord[axis] = elsewhere
				if own, ok := s.axisOf(e); ok {
					coord[axis] = m.coordOf(own)
				}
			}
			out = append(out, placedRead{a.v, coord})
		}
	}
	return out
}

// fuseSideBySide puts independent maps into one kernel: all that nothing else
// waits for (the updates of an optimiser), and those that become ready
// together.
func (p *Program) fuseSideBySide() {
	levels := p.levels()
	for i := 0; i < len(p.groups); i++ {
		for j := i + 1; j < len(p.groups); j++ {
			a, b := p.groups[i], p.groups[j]
			if a.Kind != MapKind || b.Kind != MapKind || levels[a] != levels[b] {
				continue
			}
			m := &Group{Kind: MapKind, Parts: slices.Concat(a.parts(), b.parts())}
			if p.reaches(a, b) || p.reaches(b, a) || p.tooManyTensors(m) {
				continue
			}
			p.replace(a, b, m)
			levels[m] = levels[a]
			i, j = slices.Index(p.groups, m), slices.Index(p.groups, m)
		}
	}
}

// sink is the level of groups that no other group reads.
const sink = -1

// levels tells for each group how many groups it has to wait for in a row.
func (p *Program) levels() map[*Group]int {
	level := map[*Group]int{}
	read := map[*Group]bool{}
	for _, g := range p.groups {
		for _, q := range p.producers(g) {
			level[g] = max(level[g], level[q]+1)
			read[q] = true
		}
	}
	for _, g := range p.groups {
		if !read[g] {
			level[g] = sink
		}
	}
	return level
}
