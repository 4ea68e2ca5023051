package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// access is one read of a stored value, at a position written in the
// coordinates of the node that reads it.
type access struct {
	value int // which of the values that decisions.reads has for the node
	at    ir.Index
}

// nodeSpace are the coordinates that nodes of one expression compute their results in,
// and what they read there.
type nodeSpace struct {
	outer, inner ir.Index
	outerDims    []int
	innerDims    []int
	reads        []access
	order        []int // the values that are read, each once, as they come up
	checks       bool  // an index is checked on the way
}

// ownSpace is the space of one node, with the values that decisions.reads has for it.
type ownSpace struct {
	*nodeSpace
	values []ir.Value
}

// valueOf returns the value that is read.
func (s ownSpace) valueOf(a access) ir.Value { return s.values[a.value] }

// spaceOf returns the coordinates and reads of a node, found by writing out the
// elements of one node of its expression.
func (p *Partition) spaceOf(n *ir.Node) ownSpace {
	number, values := p.decided.expression[n.ID()], p.decided.reads[n.ID()]
	if p.spaces[number] == nil {
		p.spaces[number] = p.writeOut(n, values)
	}
	return ownSpace{p.spaces[number], values}
}

// writeOut finds the space of a node that reads some values.
func (p *Partition) writeOut(n *ir.Node, values []ir.Value) *nodeSpace {
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
		if p.decided.apart[n.ID()] {
			r.Element(n.Input(0), touchUpdates(n, r))
			break
		}
		sc := scatterOf(n)
		s.innerDims = sc.searched()
		s.inner = Coords("r", s.innerDims)
		sc.touch(s.outer, s.inner, r.Operand(n))
	case *ir.PrefixLowering:
		l.Element(n, s.outer, r.Operand(n))
	case *ir.SortLowering:
		r.Element(n.Input(0), s.outer)
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

// newGroup returns the group of a single stored node.
func (p *Partition) newGroup(n *ir.Node) *Group {
	s := p.spaceOf(n)
	m := &Member{Node: n, Store: make([]*Tensor, n.NumResults())}
	g := &Group{partition: p, Members: []*Member{m}}
	m.Coord, g.Outer = assignCoords(s.outerDims, nil)
	switch lower := n.Def().Lower.(type) {
	case *ir.ReduceLowering, *ir.ScatterLowering:
		if _, scatter := lower.(*ir.ScatterLowering); scatter && p.decided.apart[n.ID()] {
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
		g.Kind = AttendKind
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

// assignCoords gives each axis that is longer than 1 the next coordinate after
// those of sizes, and returns the sizes with the new ones added.
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

// axisOf returns which of a node's coordinates an index expression is: outer
// ones first, then inner ones; false where it is anything else.
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

// coordOf returns the coordinate of the group that an axis of a member's node
// space runs along, axes counted as in axisOf.
func (m *Member) coordOf(axis int) int {
	if axis < len(m.Coord) {
		return m.Coord[axis]
	}
	return m.Inner[axis-len(m.Coord)]
}
