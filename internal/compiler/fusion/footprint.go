package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// use is a value with the number of nodes that use it in some way.
type use struct {
	v ir.Value
	n int
}

// footprint is what a group touches in memory wherever its tensors lie, which
// bounds what may be fused: a kernel binds so many tensors and no more.
type footprint struct {
	// reads are the values that the group reads and does not compute, with how
	// many of its members read them.
	reads []use
	// keeps are the values it computes that are needed outside of it, with how
	// many others read them; an output counts as read once more.
	keeps []use
	// weight is the number of simple operations, members that of the nodes.
	weight, members int
}

// Bounds of a group. A kernel's source grows by some thirty bytes an operation, and by half
// as many a term of any other kind, and it is to stay small enough to read and to compile in
// no time; what is a member costs time in every test for a merge. A reduction's loop and
// barriers are as long as some thirty operations.
const (
	maxGroupWeight  = 600
	maxGroupMembers = 64
	reductionWeight = 30
)

// footprintOf finds the footprint of a group of one node.
func (p *Partition) footprintOf(n *ir.Node) footprint {
	f := footprint{weight: max(p.decided.weight[n.ID()], p.decided.terms[n.ID()]/2), members: 1}
	if _, ok := n.Def().Lower.(*ir.ReduceLowering); ok {
		f.weight += reductionWeight
	}
	s := p.spaceOf(n)
	f.reads = make([]use, len(s.order))
	for i, value := range s.order {
		f.reads[i] = use{s.values[value], 1}
	}
	for _, v := range n.Results() {
		if r := p.readers[v]; r > 0 {
			f.keeps = append(f.keeps, use{v, r})
		}
	}
	return f
}

// countReaders counts for each value the stored nodes that read it.
func (p *Partition) countReaders() {
	p.readers = map[ir.Value]int{}
	for _, g := range p.groups {
		s := p.spaceOf(g.Members[0].Node)
		for _, i := range s.order {
			p.readers[s.values[i]]++
		}
	}
	for _, o := range p.Graph.Outputs() {
		p.readers[o.Value]++
	}
}

// with returns the footprint of a group and another one that may read it.
func (f *footprint) with(b *footprint) footprint {
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

// binds reports whether a kernel can bind all that m touches, one tensor a
// binding. So every group that fusion makes can be bound as it is, wherever
// memory is given to its tensors.
func (p *Partition) binds(m *Group) bool {
	return p.bindings(m) <= p.options.Tensors
}

// bindings is how many tensors the kernel of a group binds, or the larger of
// its two kernels: a reduction that is cut into parts leaves running values in
// between.
func (p *Partition) bindings(m *Group) int {
	reads, keeps := len(m.touch.reads), len(m.touch.keeps)
	if m.Kind == MapKind {
		for _, k := range m.touch.keeps {
			if old, ok := p.oldOf[k.v]; ok && !p.aside[old] && m.reads(old) {
				keeps-- // written where the old value is read
			}
		}
	}
	if m.Kind != ReduceKind || m.RowParts() <= 1 {
		return reads + keeps
	}
	running := 0
	for _, x := range m.Members {
		if x.Reduced {
			running += len(x.Reduction().Accumulators(x.Node))
		}
	}
	return max(reads, keeps+p.rowReads(m)) + running
}

// rowReads counts what a cut reduction reads after its parts have met.
func (p *Partition) rowReads(m *Group) int {
	seen := map[ir.Value]bool{}
	for _, x := range m.Members {
		_, scatter := x.Node.Def().Lower.(*ir.ScatterLowering)
		if x.Reduced && !scatter {
			continue
		}
		s := p.spaceOf(x.Node)
		for _, i := range s.order {
			if v := s.values[i]; m.member(v) == nil {
				seen[v] = true
			}
		}
	}
	return len(seen)
}

// reads reports whether a group reads a value that it does not compute.
func (g *Group) reads(v ir.Value) bool {
	return slices.ContainsFunc(g.touch.reads, func(u use) bool { return u.v == v })
}
