package fusion

import "slices"

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

func split(phi []int) (mapped, rest []int) {
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

// moved returns copies of members with their coordinates mapped through phi.
func moved(members []*Member, phi []int) []*Member {
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
