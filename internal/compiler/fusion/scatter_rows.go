package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Bounds up to which a scatter is searched for from its result, which fuses with
// what comes before and after: the positions to look through, and the looks in
// all beyond a few for each element.
const (
	maxSearched = 64
	maxLooks    = 1 << 24
	fewSearched = 4
)

// isSearched reports whether a scatter is computed from its result, each element
// looking through the updates. One that changes a state costs less by itself:
// only the rows that it names.
func (p *Partition) isSearched(n *ir.Node) bool {
	k := Product(scatterOf(n).searched())
	size, _ := n.Types()[0].Shape.Size().Const()
	return k <= maxSearched && p.oldOf[n.Result(0)] != n.Input(0) && (k <= fewSearched || k*int(size) <= maxLooks)
}

// RowScatter is a scatter seen from its updates: each position has a row of the
// result, which is all that its window runs along, or none.
type RowScatter struct {
	*scatter
	Out       *Tensor // the result
	Positions int     // how many there are
	Window    int     // elements of a row
	Rows      int     // of the result

	p *Partition
	// Sizes of the three spaces, and which axes of the result are those of rows
	// and of windows.
	positionDims, windowDims, rowDims []int
	rowAxes, windowAxes               []int
}

// RowScatterOf returns the scatter that a group of kind ScatterKind is.
func RowScatterOf(g *Group) *RowScatter {
	m := g.Members[0]
	s := &RowScatter{scatter: scatterOf(m.Node), p: g.partition, Out: m.Store[0]}
	s.positionDims, s.windowDims = s.Lowering.Space(s.Node)
	p, w := g.partition.variables("p", s.positionDims), g.partition.variables("w", s.windowDims)
	none := func(operand int, _ ir.Index) scalar.Expr { return scalar.Arg(operand, s.Node.Input(operand).DType()) }
	at, _ := s.Lowering.Target(s.Node, p, w, none)
	s.windowAxes = axesFor(w, at)
	for axis, d := range s.Out.Dims {
		if !slices.Contains(s.windowAxes, axis) {
			s.rowAxes, s.rowDims = append(s.rowAxes, axis), append(s.rowDims, d)
		}
	}
	s.Positions, s.Window, s.Rows = Product(s.positionDims), Product(s.windowDims), Product(s.rowDims)
	return s
}

// Row returns the number of the row that position i goes to, and the condition
// that there is one.
func (s *RowScatter) Row(e *scalar.Simplifier, i scalar.Expr, load ir.Load) (row, inside scalar.Expr) {
	w := make(ir.Index, len(s.windowDims))
	for k := range w {
		w[k] = loop.Int(0)
	}
	at, inside := s.Lowering.Target(s.Node, Unflatten(e, i, s.positionDims), w, load)
	if inside == nil {
		inside = scalar.ConstBool(true)
	}
	row = loop.Int(0)
	for k, axis := range s.rowAxes {
		row = scalar.Add(scalar.Mul(row, loop.Int(s.rowDims[k])), at[axis])
	}
	return row, inside
}

// Update returns the element of a window that position i brings.
func (s *RowScatter) Update(e *scalar.Simplifier, i, w scalar.Expr, load ir.Load) scalar.Expr {
	return load(2, s.Lowering.Update(s.Node, Unflatten(e, i, s.positionDims), Unflatten(e, w, s.windowDims)))
}

// At returns the position of an element of a row in the result.
func (s *RowScatter) At(e *scalar.Simplifier, row, w scalar.Expr) ir.Index {
	at := make(ir.Index, len(s.Out.Dims))
	for k, x := range Unflatten(e, row, s.rowDims) {
		at[s.rowAxes[k]] = x
	}
	for k, x := range Unflatten(e, w, s.windowDims) {
		at[s.windowAxes[k]] = x
	}
	return at
}

// InPlace reports whether the result lies where the operand does.
func (s *RowScatter) InPlace() bool { return s.p.tensors[s.Node.Input(0)] == s.Out }

// scattersInPlace reports whether a group is a scatter into a value that it does
// not read otherwise, and so can change it where it lies.
func (p *Partition) scattersInPlace(g *Group, old ir.Value) bool {
	if g.Kind != ScatterKind || g.Members[0].Node.Input(0) != old {
		return false
	}
	again := false
	r := NewReader(p, p.simplifier)
	r.note = func(v ir.Value, _ ir.Index) { again = again || v == old }
	touchUpdates(g.Members[0].Node, r)
	return !again
}

// touchUpdates asks a reader for what a scatter reads besides its operand, and
// returns where an update goes.
func touchUpdates(n *ir.Node, r *Reader) (target ir.Index) {
	l := n.Def().Lower.(*ir.ScatterLowering)
	positions, window := l.Space(n)
	p, w := Coords("p", positions), Coords("w", window)
	target, _ = l.Target(n, p, w, r.Operand(n))
	r.Operand(n)(2, l.Update(n, p, w))
	return target
}

// Few reports whether the positions are so few that each may look through them
// all.
func (s *RowScatter) Few() bool { return s.Positions <= maxSearched }
