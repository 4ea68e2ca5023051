package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// access is a read of a stored value at a position in the coordinates of the reading node.
type access struct {
	value int // index in decisions.reads of the node
	at    ir.Index
}

// nodeSpace holds the coordinates in which nodes of one expression compute their results,
// and their reads.
type nodeSpace struct {
	outer, inner ir.Index
	outerDims    []int
	innerDims    []int
	reads        []access
	order        []int // the values read, without duplicates, in order of first use
	checks       bool  // an expression contains an index check
}

// ownSpace is the space of one node with the values it reads, from decisions.reads.
type ownSpace struct {
	*nodeSpace
	values []ir.Value
}

// valueOf returns the value of an access.
func (s ownSpace) valueOf(a access) ir.Value { return s.values[a.value] }

// spaces holds the spaces of a partition's nodes.
type spaces struct {
	p            *Partition
	byExpression []*nodeSpace // by expression number, made when first asked for
}

// newSpaces returns the spaces of a partition whose expressions are numbered.
func newSpaces(p *Partition) *spaces {
	return &spaces{p, make([]*nodeSpace, p.decided.expressions)}
}

// of returns the coordinates and reads of a node. Nodes of one expression share them.
func (x *spaces) of(n *ir.Node) ownSpace {
	number, values := x.p.decided.expression[n.ID()], x.p.decided.reads[n.ID()]
	if x.byExpression[number] == nil {
		x.byExpression[number] = expandNode(x.p, n, values)
	}
	return ownSpace{x.byExpression[number], values}
}

// expandNode expands the elements of a node to find its space.
func expandNode(p *Partition, n *ir.Node, values []ir.Value) *nodeSpace {
	s := &nodeSpace{}
	r := NewReader(p, p.simplifier)
	r.note = func(v ir.Value, at ir.Index) {
		i := slices.Index(values, v)
		s.reads = append(s.reads, access{i, at})
		if !slices.Contains(s.order, i) {
			s.order = append(s.order, i)
		}
	}
	s.outerDims, _ = n.Types()[0].Shape.Ints()
	s.outer = Coords("a", s.outerDims)
	switch l := n.Def().Lower.(type) {
	case *ir.ReduceLowering:
		s.innerDims = l.Space(n)
		s.inner = Coords("r", s.innerDims)
		l.Element(n, s.outer, s.inner, r.Operand(n))
	case *ir.ContractLowering:
		c := ContractionOf(n, p.simplifier)
		s.innerDims = c.K
		s.inner = Coords("r", c.K)
		c.factors(s.outer, s.inner, r.Operand(n))
	case *ir.ScatterLowering:
		if p.decided.ownKernels[n.ID()] {
			r.Element(n.Input(0), loadUpdates(n, r))
			break
		}
		sc := scatterOf(n)
		s.innerDims = sc.searched()
		s.inner = Coords("r", s.innerDims)
		sc.loadAll(s.outer, s.inner, r.Operand(n))
	case *ir.PrefixLowering:
		l.Element(n, s.outer, r.Operand(n))
	case *ir.SortLowering:
		at, dims := slices.Clone(s.outer), n.Input(0).Shape()
		size, _ := dims[l.Axis(n)].Const()
		at[l.Axis(n)] = Coords("k", []int{size})[0]
		r.Element(n.Input(0), at)
	case *ir.AttendLowering, *ir.TotalLowering, *ir.RoutineLowering, *ir.KernelsLowering, *ir.ControlLowering:
		for _, v := range n.Inputs() {
			dims, _ := v.Shape().Ints()
			r.Element(v, Coords("i", dims))
		}
	default:
		for i := range n.Types() {
			r.Body(n, i, s.outer)
		}
	}
	s.checks = r.checks
	return s
}

// newGroup returns a group of a single stored node.
func newGroup(p *Partition, n *ir.Node) *Group {
	s := p.spaces.of(n)
	m := &Member{Node: n, Store: make([]*Tensor, n.NumResults())}
	g := &Group{partition: p, Members: []*Member{m}}
	m.Coord, g.Outer = assignCoords(s.outerDims, nil)
	switch lower := n.Def().Lower.(type) {
	case *ir.ReduceLowering, *ir.ScatterLowering:
		if _, scatter := lower.(*ir.ScatterLowering); scatter && p.decided.ownKernels[n.ID()] {
			g.Kind = ScatterKind
			break
		}
		g.Kind, m.Reduced = ReduceKind, true
		var all []int
		m.Inner, all = assignCoords(s.innerDims, g.Outer)
		g.Inner = all[len(g.Outer):]
	case *ir.ContractLowering:
		g.Kind = ContractKind
	case *ir.PrefixLowering:
		g.Kind = PrefixKind
	case *ir.AttendLowering:
		g.Kind = AttentionKind
	case *ir.TotalLowering:
		g.Kind = TotalKind
	case *ir.RoutineLowering:
		g.Kind = RoutineKind
	case *ir.KernelsLowering:
		g.Kind = KernelsKind
	case *ir.SortLowering:
		g.Kind = SortKind
	case *ir.ControlLowering:
		g.Kind = ControlKind
	}
	return g
}

// assignCoords assigns new coordinates, counted after sizes, to the axes longer than 1.
// It returns the coordinate of each axis and the extended sizes.
func assignCoords(dims, sizes []int) (coord, all []int) {
	all = append([]int(nil), sizes...)
	coord = make([]int, len(dims))
	for i, d := range dims {
		coord[i] = -1
		if d != 1 {
			coord[i] = len(all)
			all = append(all, d)
		}
	}
	return coord, all
}

// member returns the group's member that computes v.
func (g *Group) member(v ir.Value) *Member {
	for _, m := range g.Members {
		if m.Node == v.Node() {
			return m
		}
	}
	return nil
}

// axisOf returns which coordinate of a node the index expression is, outer ones first,
// then inner ones; false if it is anything else.
func (s *nodeSpace) axisOf(e scalar.Expr) (int, bool) {
	if e.Op != scalar.OpVar {
		return 0, false
	}
	for i, x := range s.outer {
		if x.Op == scalar.OpVar && x.Name == e.Name {
			return i, true
		}
	}
	for i, x := range s.inner {
		if x.Op == scalar.OpVar && x.Name == e.Name {
			return len(s.outer) + i, true
		}
	}
	return 0, false
}

// coordOf returns the group coordinate of an axis of a member's node space; axes are
// numbered as in axisOf.
func (m *Member) coordOf(axis int) int {
	if axis < len(m.Coord) {
		return m.Coord[axis]
	}
	return m.Inner[axis-len(m.Coord)]
}
