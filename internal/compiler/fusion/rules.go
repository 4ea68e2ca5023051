package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// merge returns the group of a followed by its consumer b, or nil where no rule fits.
// It changes nothing.
func merge(a, b *Group) *Group {
	switch {
	case a.Kind != MapKind && updates(b), a.Kind == ContractKind && joinsRows(a, b):
		return nil
	case a.Kind == MapKind && b.Kind == MapKind, a.Kind == ContractKind && b.Kind == MapKind:
		return mergeSame(a, b)
	case a.Kind == ReduceKind && b.Kind == MapKind:
		return mergeAfterReduce(a, b)
	case a.Kind == ReduceKind && b.Kind == ReduceKind:
		if m := mergeReductions(a, b); m != nil {
			return m
		}
		return repeatRow(a, b)
	case a.Kind == MapKind && b.Kind == ReduceKind:
		return mergeBeforeReduce(a, b)
	}
	return nil
}

// mergeSame fuses maps over one space, and maps as the epilogue of a contraction.
func mergeSame(a, b *Group) *Group {
	phi, ok := align(a, b)
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
func mergeAfterReduce(a, b *Group) *Group {
	phi, ok := align(a, b)
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
	case len(mapped) == len(a.Outer) && slices.Equal(permute.Pick(b.Outer, rest), a.Inner):
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

// mergeReductions makes b a further stage of a, or part of its stage where only what b computes from its rows reads
// those of a.
func mergeReductions(a, b *Group) *Group {
	phi, ok := align(a, b)
	if !ok || len(a.Outer) != len(b.Outer) || len(a.Inner) != len(b.Inner) || !a.allowsStages() && !(withTensorCores && a.partition.options.TensorCores) {
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
	if !injective(phi) || !slices.Equal(permute.Pick(append(slices.Clone(a.Outer), a.Inner...), phi), append(slices.Clone(b.Outer), b.Inner...)) {
		return nil
	}
	m := join(ReduceKind, a.Outer, a.Inner, a.Members, remapped(b.Members, phi))
	if withTensorCores && !a.allowsStages() {
		m.partition, m.footprint = a.partition, a.footprint.merged(&b.footprint)
		if !m.Rows().CanSplit() {
			return nil
		}
	}
	return m
}

// repeatRow makes the reduction of a single row a reduction of each row of b, its only reader: all of them
// compute the same number, which takes less time than another launch. What b reads of the row beside that number, it reads at
// the same column.
func repeatRow(a, b *Group) *Group {
	rows, length := Product(b.Outer), Product(b.Inner)
	if len(a.Outer) > 0 || len(b.Outer) == 0 || !slices.Equal(a.Inner, b.Inner) || b.Rows().Parts() > 1 || !b.partition.options.Policy.RepeatsRow(rows, length) {
		return nil
	}
	for _, k := range a.footprint.keeps {
		if i := slices.IndexFunc(b.footprint.reads, func(u use) bool { return u.v == k.v }); i < 0 || b.footprint.reads[i].n < k.n {
			return nil
		}
	}
	phi, ok := align(a, b)
	if !ok {
		return nil
	}
	for i, c := range phi {
		if c >= 0 && c != i-len(b.Outer) {
			return nil
		}
	}
	inner := make([]int, len(a.Inner))
	for i := range inner {
		inner[i] = len(b.Outer) + i
	}
	return join(ReduceKind, b.Outer, b.Inner, remapped(a.Members, inner), b.Members)
}

// mergeBeforeReduce makes a map the prologue of the reductions that read it.
func mergeBeforeReduce(a, b *Group) *Group {
	phi, ok := align(a, b)
	if !ok || !isWhole(b) {
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
	m.partition, m.footprint = a.partition, a.footprint.merged(&b.footprint)
	if m.Rows().Parts() < b.Rows().Parts() {
		return nil // a few workgroups would do the work of many to save one read
	}
	return m
}

// isWhole reports whether a reduction fills the device without being split.
func isWhole(g *Group) bool {
	return g.partition.options.Policy.FillsDevice(Product(g.Outer), Product(g.Inner))
}

// allowsStages reports whether further stages may depend on whole rows of a reduction.
func (g *Group) allowsStages() bool {
	return g.partition.options.Policy.AllowsStages(Product(g.Outer), Product(g.Inner), g.Rows().AreContiguous())
}

// joinsRows reports whether a map fuses with a reduction of its rows instead of with the
// product it reads beside other values of the same size. Either way one of the two results
// goes through memory, but all threads of a device take part in a row reduction, whereas
// few threads run a product's epilogue and stall its tensor cores: with such a sum as
// epilogue a product of 16384 × 768 × 768 took 113 µs on an H200, and 45 without. A product
// in f32 keeps it, because libraries can add a matrix to that.
func joinsRows(product, g *Group) bool {
	p := g.partition
	if !withTensorCores || !p.options.TensorCores || g.Kind != MapKind || len(g.Members) != 1 ||
		product.Members[0].Node.Types()[0].DType == ir.F32 {
		return false
	}
	n := g.Members[0].Node
	return p.decided.wholes(n) > 1 && slices.ContainsFunc(p.decided.uses[n.ID()], func(u *ir.Node) bool { return sumsRows(g, u) })
}

// sumsRows reports whether a node, or a user it is inlined in, reduces the rows of a
// map's result.
func sumsRows(g *Group, n *ir.Node) bool {
	p := g.partition
	if p.decided.virtual[n.ID()] {
		return slices.ContainsFunc(p.decided.uses[n.ID()], func(u *ir.Node) bool { return sumsRows(g, u) })
	}
	r := p.groups.of[n]
	return r.Kind == ReduceKind && !r.Rows().AreContiguous() && mergeBeforeReduce(g, r) != nil
}

func join(kind Kind, outer, inner []int, a, b []*Member) *Group {
	return &Group{Kind: kind, Outer: outer, Inner: inner, Members: slices.Concat(a, b)}
}

// align returns, for each coordinate of b, the coordinate of a that b's reads of a match it with,
// or -1 where no read fixes it. It fails if a read is not a projection, because then an element of
// b needs elements of a from another thread. It also fails if a read covers only part of a (a
// slice), because then the iteration spaces differ in size.
func align(a, b *Group) ([]int, bool) {
	sizesA, sizesB := slices.Concat(a.Outer, a.Inner), slices.Concat(b.Outer, b.Inner)
	phi := make([]int, len(sizesB))
	for i := range phi {
		phi[i] = -1
	}
	for _, m := range b.Members {
		s := b.partition.spaces.of(m.Node)
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
