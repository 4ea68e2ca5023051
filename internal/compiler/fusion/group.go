package fusion

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Kind is the shape of a group, which decides how it can be scheduled.
type Kind uint8

// The kinds of group.
const (
	// MapKind computes each element by itself.
	MapKind Kind = iota
	// ReduceKind combines along inner coordinates, in one or more stages that
	// may read each other, for each point of the outer ones.
	ReduceKind
	// ContractKind is a sum of products, with an epilogue.
	ContractKind
	// PrefixKind is a running combination along one axis.
	PrefixKind
	// ScatterKind stores updates where data says.
	ScatterKind
	// SortKind finds the order of elements along one axis.
	SortKind
	// AttendKind is attention, forward or backward.
	AttendKind
	// TotalKind is the sum of all elements of any number of values.
	TotalKind
	// RoutineKind is an op that the backend has a routine for.
	RoutineKind
	// KernelsKind is an op with kernels of its own.
	KernelsKind
	// ControlKind is a node that runs graphs. Its group becomes a [Loop], a [Branch]
	// or a [While].
	ControlKind
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	return [...]string{"map", "reduce", "contract", "prefix", "scatter", "sort", "attend", "total", "routine", "kernels", "control"}[k]
}

// Group is a set of nodes computed together.
type Group struct {
	Kind Kind
	// Outer are the sizes of the coordinates that every element has. Axes of
	// size 1 have no coordinate.
	Outer []int
	// Inner are the sizes of the coordinates that the reductions of a
	// [ReduceKind] group run over.
	Inner []int
	// Members are the nodes in order, operands first.
	Members []*Member
	// Parts are the groups that a horizontal fusion put side by side; Members
	// is empty then.
	Parts []*Group
	// Copies are values to be stored once more, one element for each point of
	// the outer coordinates.
	Copies []Copy

	partition *Partition
	loads     []*Tensor
	touch     footprint
	place     int      // in the partition's groups, while they are merged
	users     []*Group // those that a sweep has met and that read the group
	into      *Group   // what the group has been merged into
}

// Partition returns the partition that the group is of.
func (g *Group) Partition() *Partition { return g.partition }

// Cut returns a group of some of the parts of g.
func (g *Group) Cut(parts []*Group) *Group {
	if len(parts) == 1 {
		return parts[0]
	}
	return &Group{Kind: g.Kind, Parts: parts, partition: g.partition}
}

// Copy stores what is in a tensor already, or a literal, in another tensor.
type Copy struct {
	From    *Tensor // nil for a literal
	Literal scalar.Expr
	To      *Tensor
}

// Member is a node of a group.
type Member struct {
	Node *ir.Node
	// Reduced marks the reductions of a [ReduceKind] group; their results are
	// had once for each point of the outer coordinates.
	Reduced bool
	// Coord gives for each axis of the results the coordinate of the group it
	// runs along (outer ones first, then inner), -1 for axes of size 1.
	Coord []int
	// Inner gives, for a reduction, the coordinate that each axis of its
	// reduced space runs along, -1 for axes of size 1.
	Inner []int
	// Store holds the tensor of each result that is kept, nil for others.
	Store []*Tensor
}

// Pointwise reports whether the member has an element for each point of the inner
// coordinates too.
func (m *Member) Pointwise(outer int) bool {
	for _, c := range m.Coord {
		if c >= outer {
			return true
		}
	}
	return false
}

// Long reports whether kernels of the group count positions in 64 bits: so many are the
// points that it goes through, or the elements of an array that it touches.
func (g *Group) Long() bool {
	p := g.partition
	touches := func(t *Tensor) bool { return p.Long(t.Root().Len()) }
	return p.Long(Product(g.Outer)) || p.Long(Product(g.Inner)) ||
		slices.ContainsFunc(g.loads, touches) || slices.ContainsFunc(g.Writes(), touches)
}

// Weight is the number of simple operations in the expressions of the members.
func (g *Group) Weight() int {
	w := 0
	for _, m := range g.Members {
		w += g.partition.decided.weight[m.Node.ID()]
	}
	return w
}

// Reads returns the tensors that the group loads, each once.
func (g *Group) Reads() []*Tensor { return g.loads }

// Writes returns the tensors that the group stores.
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

// Name returns a short name made of the group's ops, for labels and kernels.
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

// identifier keeps lower-case letters, digits and single underscores.
func identifier(s string) string {
	var sb strings.Builder
	last := byte('_')
	for _, c := range []byte(strings.ToLower(s)) {
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

// EpilogueWeight is the number of operations behind a contraction.
func (g *Group) EpilogueWeight() int {
	return g.Weight() - g.partition.decided.weight[g.Members[0].Node.ID()]
}

// SideBySide returns the groups side by side in g, or g itself.
func (g *Group) SideBySide() []*Group {
	if len(g.Parts) > 0 {
		return g.Parts
	}
	return []*Group{g}
}

// At returns the position of the member in the space of its results at a point
// of its group.
func (m *Member) At(point ir.Index) ir.Index { return pick(point, m.Coord) }

// InnerAt returns the position of a reduction in its reduced space at a point of
// its group.
func (m *Member) InnerAt(point ir.Index) ir.Index { return pick(point, m.Inner) }
