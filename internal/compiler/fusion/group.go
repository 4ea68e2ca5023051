package fusion

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
)

// Kind is the kind of a group. It decides how the group can be scheduled.
type Kind uint8

// The kinds of group.
const (
	// MapKind computes each element independently.
	MapKind Kind = iota
	// ReduceKind reduces along inner coordinates for each point of the outer ones, in
	// one or more stages that may depend on each other.
	ReduceKind
	// ContractKind is a sum of products, with an epilogue.
	ContractKind
	// PrefixKind is a scan (prefix sum) along one axis.
	PrefixKind
	// ScatterKind stores updates at positions given by data.
	ScatterKind
	// SortKind is an argsort along one axis.
	SortKind
	// AttentionKind is attention, forward or backward.
	AttentionKind
	// TotalKind is the sum of all elements of any number of values.
	TotalKind
	// RoutineKind is an op that the backend has a library routine for.
	RoutineKind
	// KernelsKind is an op that writes its own kernels.
	KernelsKind
	// ControlKind is a control-flow node. Its group becomes a [Loop], a [Branch] or a
	// [While].
	ControlKind
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"map", "reduce", "contract", "prefix", "scatter", "sort", "attend", "total", "routine", "kernels", "control"}[k]
}

// Group is a set of nodes computed by one kernel, or a few.
type Group struct {
	Kind Kind
	// Outer are the sizes of the coordinates that every element has. Axes of size 1
	// have no coordinate.
	Outer []int
	// Inner are the sizes of the coordinates that the reductions of a [ReduceKind]
	// group run over.
	Inner []int
	// Members are the nodes in topological order.
	Members []*Member
	// Parts are the groups of a horizontal fusion; Members is empty then.
	Parts []*Group
	// Copies are values to be copied, one element per point of the outer coordinates.
	Copies []Copy

	partition  *Partition
	loads      []*Tensor
	footprint  footprint
	index      int      // index in the partition's groups during fusion
	users      []*Group // readers of the group that the sweep has visited
	mergedInto *Group   // the group this one has been merged into
	inPlace    bool     // its operands are stored where its result is
}

// Partition returns the partition that the group belongs to.
func (g *Group) Partition() *Partition { return g.partition }

// Member is a node of a group.
type Member struct {
	Node *ir.Node
	// Reduced marks the reductions of a [ReduceKind] group, whose results have one
	// element per point of the outer coordinates.
	Reduced bool
	// Coord maps each axis of the results to a coordinate of the group (outer ones
	// first, then inner), or to -1 for axes of size 1.
	Coord []int
	// Inner maps each axis of a reduction's reduced space to a coordinate, or to -1
	// for axes of size 1.
	Inner []int
	// Store holds the tensor of each stored result, nil for others.
	Store []*Tensor
}

// Pointwise reports whether the member has an element for each inner point, given the
// number of outer coordinates.
func (m *Member) Pointwise(outer int) bool {
	for _, c := range m.Coord {
		if c >= outer {
			return true
		}
	}
	return false
}

// Long reports whether kernels of the group use 64-bit positions, because of the size of
// its iteration space or of a tensor it accesses.
func (g *Group) Long() bool {
	p := g.partition
	touches := func(t *Tensor) bool { return p.Long(t.Root().Len()) }
	return p.Long(Product(g.Outer)) || p.Long(Product(g.Inner)) ||
		slices.ContainsFunc(g.loads, touches) || slices.ContainsFunc(g.Writes(), touches)
}

// Weight returns the number of simple operations in the expressions of the members.
func (g *Group) Weight() int {
	w := 0
	for _, m := range g.Members {
		w += g.partition.decided.weight[m.Node.ID()]
	}
	return w
}

// Reads returns the tensors the group loads, without duplicates.
func (g *Group) Reads() []*Tensor { return g.loads }

// Writes returns the tensors the group stores.
func (g *Group) Writes() []*Tensor {
	var out []*Tensor
	for _, p := range g.Parts {
		out = append(out, p.Writes()...)
	}
	for _, m := range g.Members {
		for _, t := range m.Store {
			if t != nil {
				out = append(out, t)
			}
		}
	}
	for _, c := range g.Copies {
		out = append(out, c.To)
	}
	return out
}

// Name returns a short name from the group's ops, for labels and kernels.
func (g *Group) Name() string {
	if len(g.Parts) > 0 {
		return g.Parts[0].Name() + "_x" + strconv.Itoa(len(g.Parts))
	}
	var words []string
	if len(g.Copies) > 0 {
		words = append(words, "copy")
	}
	for _, m := range g.Members {
		w := string(m.Node.Op())
		if m.Node.Label() != "" {
			w = m.Node.Label()
		}
		if len(words) == 0 || words[len(words)-1] != w {
			words = append(words, w)
		}
	}
	if len(words) > 4 {
		words = append(words[:2], words[len(words)-2:]...)
	}
	return identifier(g.Kind.String() + "_" + strings.Join(words, "_"))
}

// identifier keeps letters, as lower case, digits and single underscores.
func identifier(s string) string {
	var sb strings.Builder
	last := byte('_')
	for _, c := range []byte(s) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c < '0' || c > '9' && c < 'a' || c > 'z' {
			c = '_'
		}
		if c != '_' || last != '_' {
			sb.WriteByte(c)
		}
		last = c
	}
	return strings.TrimSuffix(sb.String(), "_")
}

// EpilogueWeight returns the number of simple operations in a contraction's epilogue.
func (g *Group) EpilogueWeight() int {
	return g.Weight() - g.partition.decided.weight[g.Members[0].Node.ID()]
}

// EpilogueReads returns the tensors that a contraction's epilogue loads, without duplicates.
func (g *Group) EpilogueReads() (out []*Tensor) {
	for _, m := range g.Members[1:] {
		s := g.partition.spaces.of(m.Node)
		for _, a := range s.reads {
			v := s.valueOf(a)
			if t := g.partition.tensors[v]; t != nil && g.member(v) == nil && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// HorizontalParts returns the parts of a horizontal fusion, or g alone.
func (g *Group) HorizontalParts() []*Group {
	if len(g.Parts) > 0 {
		return g.Parts
	}
	return []*Group{g}
}

// HasPrologues reports whether the kernels of a group of kind [KernelsKind] compute the operands that are not stored.
func (g *Group) HasPrologues() bool { return g.partition.decided.hasPrologues(g.Members[0].Node) }

// At returns the member's position in the space of its results for a point of the group.
func (m *Member) At(point ir.Index) ir.Index { return pick(point, m.Coord) }

// InnerAt returns a reduction's position in its reduced space for a point of the group.
func (m *Member) InnerAt(point ir.Index) ir.Index { return pick(point, m.Inner) }
