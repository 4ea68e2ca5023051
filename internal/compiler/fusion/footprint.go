package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// use is a value with the number of its users.
type use struct {
	v ir.Value
	n int
}

// footprint is the memory a group accesses, counted in values. It limits fusion,
// because a kernel can bind a limited number of tensors.
type footprint struct {
	// reads are the values that the group reads but does not compute, with the
	// number of members that read each.
	reads []use
	// keeps are the values it computes that are needed outside, with the number of
	// outside readers; an output counts as one reader.
	keeps []use
	// weight is the number of simple operations, members the number of nodes.
	weight, members int
}

// Limits of a group. They bound the length of a kernel's source, at about thirty bytes per
// operation and half of that per other term, and the time that merge attempts take. A
// reduction's loop and barriers are as long as some thirty operations.
const (
	maxGroupWeight  = 600
	maxGroupMembers = 64
	reductionWeight = 30
)

// footprintOf returns the footprint of a group of one node; readers counts the readers of each value.
func footprintOf(p *Partition, n *ir.Node, readers map[ir.Value]int) footprint {
	f := footprint{weight: max(p.decided.weight[n.ID()], p.decided.terms[n.ID()]/2), members: 1}
	if _, ok := n.Def().Lower.(*ir.ReduceLowering); ok {
		f.weight += reductionWeight
	}
	s := p.spaces.of(n)
	f.reads = make([]use, len(s.order))
	for i, value := range s.order {
		f.reads[i] = use{s.values[value], 1}
	}
	for _, v := range n.Results() {
		if r := readers[v]; r > 0 {
			f.keeps = append(f.keeps, use{v, r})
		}
	}
	return f
}

// merged returns the footprint of a group merged with b, which may read it.
func (f *footprint) merged(b *footprint) footprint {
	out := footprint{reads: slices.Clone(f.reads), weight: f.weight + b.weight, members: f.members + b.members}
	inside := func(v ir.Value) int {
		i := slices.IndexFunc(b.reads, func(u use) bool { return u.v == v })
		if i < 0 {
			return 0
		}
		return b.reads[i].n
	}
	for _, k := range f.keeps {
		if k.n -= inside(k.v); k.n > 0 {
			out.keeps = append(out.keeps, k)
		}
	}
	out.keeps = append(out.keeps, b.keeps...)
	for _, r := range b.reads {
		if slices.ContainsFunc(f.keeps, func(k use) bool { return k.v == r.v }) {
			continue
		}
		if i := slices.IndexFunc(out.reads, func(u use) bool { return u.v == r.v }); i >= 0 {
			out.reads[i].n += r.n
		} else {
			out.reads = append(out.reads, r)
		}
	}
	return out
}

// binds reports whether a kernel can bind all tensors of a group, one per binding, wherever
// the tensors are allocated.
func (g *Group) binds() bool { return g.bindings() <= g.partition.options.Tensors }

// bindings returns the number of tensors the kernel of a group binds.
func (g *Group) bindings() int {
	reads, keeps := len(g.footprint.reads), len(g.footprint.keeps)
	if g.Kind == MapKind {
		states := &g.partition.states
		for _, k := range g.footprint.keeps {
			if old, ok := states.oldOf[k.v]; ok && !states.aside[old] && g.footprint.isRead(old) {
				keeps-- // updated in place
			}
		}
	}
	if g.Kind != ReduceKind || g.Rows().Parts() <= 1 {
		return reads + keeps
	}
	return g.Rows().SplitTensors(reads, keeps)
}

// SplitTensors returns the number of tensors that the larger of the two kernels of a split reduction binds, partial
// results included, given how many the group reads and writes.
func (r Rows) SplitTensors(reads, writes int) int {
	running := 0
	for _, m := range r.Members {
		if m.Reduced {
			running += len(m.Reduction().Accumulators(m.Node))
		}
	}
	return max(reads, writes+r.reads()) + running
}

// reads counts the values that the second kernel of a split reduction reads.
func (r Rows) reads() int {
	seen := map[ir.Value]bool{}
	for _, m := range r.Members {
		_, scatter := m.Node.Def().Lower.(*ir.ScatterLowering)
		if m.Reduced && !scatter {
			continue
		}
		s := r.partition.spaces.of(m.Node)
		for _, i := range s.order {
			if v := s.values[i]; r.member(v) == nil {
				seen[v] = true
			}
		}
	}
	return len(seen)
}

// isRead reports whether a group reads a value that it does not compute.
func (f *footprint) isRead(v ir.Value) bool {
	return slices.ContainsFunc(f.reads, func(u use) bool { return u.v == v })
}

// isKept reports whether a result of a node is needed outside the group.
func (f *footprint) isKept(n *ir.Node) bool {
	return slices.ContainsFunc(f.keeps, func(k use) bool { return k.v.Node() == n })
}
