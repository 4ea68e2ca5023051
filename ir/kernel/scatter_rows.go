package kernel

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
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
func (p *Program) isSearched(n *ir.Node) bool {
	k := product(scatterOf(n).searched())
	size, _ := n.Types()[0].Shape.Size().Const()
	return k <= maxSearched && p.oldOf[n.Result(0)] != n.Input(0) && (k <= fewSearched || k*int(size) <= maxLooks)
}

// rowScatter is a scatter seen from its updates: each position has a row of the
// result, which is all that its window runs along, or none.
type rowScatter struct {
	*scatter
	p         *Program
	out       *Tensor
	positions int // how many there are
	window    int // elements of a row
	rows      int
	// Sizes of the three spaces, and which axes of the result are those of rows
	// and of windows.
	positionDims, windowDims, rowDims []int
	rowAxes, windowAxes               []int
}

func newRowScatter(g *Group) *rowScatter {
	m := g.Members[0]
	s := &rowScatter{scatter: scatterOf(m.Node), p: g.program, out: m.Store[0]}
	s.positionDims, s.windowDims = s.l.Space(s.n)
	p, w := variables("p", s.positionDims), variables("w", s.windowDims)
	none := func(operand int, _ ir.Index) scalar.Expr { return scalar.Arg(operand, s.n.Input(operand).DType()) }
	at, _ := s.l.Target(s.n, p, w, none)
	s.windowAxes = axesFor(w, at)
	for axis, d := range s.out.Dims {
		if !slices.Contains(s.windowAxes, axis) {
			s.rowAxes, s.rowDims = append(s.rowAxes, axis), append(s.rowDims, d)
		}
	}
	s.positions, s.window, s.rows = product(s.positionDims), product(s.windowDims), product(s.rowDims)
	return s
}

// row returns the number of the row that position i goes to, and the condition
// that there is one.
func (s *rowScatter) row(e *scalar.Simplifier, i scalar.Expr, load ir.Load) (row, inside scalar.Expr) {
	w := make(ir.Index, len(s.windowDims))
	for k := range w {
		w[k] = integer(0)
	}
	at, inside := s.l.Target(s.n, unflattened(e, i, s.positionDims), w, load)
	if inside == nil {
		inside = scalar.ConstBool(true)
	}
	row = integer(0)
	for k, axis := range s.rowAxes {
		row = scalar.Add(scalar.Mul(row, integer(s.rowDims[k])), at[axis])
	}
	return row, inside
}

// update returns the element of a window that position i brings.
func (s *rowScatter) update(e *scalar.Simplifier, i, w scalar.Expr, load ir.Load) scalar.Expr {
	return load(2, s.l.Update(s.n, unflattened(e, i, s.positionDims), unflattened(e, w, s.windowDims)))
}

// at returns the position of an element of a row in the result.
func (s *rowScatter) at(e *scalar.Simplifier, row, w scalar.Expr) ir.Index {
	at := make(ir.Index, len(s.out.Dims))
	for k, x := range unflattened(e, row, s.rowDims) {
		at[s.rowAxes[k]] = x
	}
	for k, x := range unflattened(e, w, s.windowDims) {
		at[s.windowAxes[k]] = x
	}
	return at
}

// inPlace reports whether the result lies where the operand does.
func (s *rowScatter) inPlace() bool { return s.p.tensors[s.n.Input(0)] == s.out }

// scattersInPlace reports whether a group is a scatter into a value that it does
// not read otherwise, and so can change it where it lies.
func (p *Program) scattersInPlace(g *Group, old ir.Value) bool {
	if g.Kind != ScatterKind || g.Members[0].Node.Input(0) != old {
		return false
	}
	again := false
	r := newReader(p, p.simplifier)
	r.note = func(v ir.Value, _ ir.Index) { again = again || v == old }
	touchUpdates(g.Members[0].Node, r)
	return !again
}

// touchUpdates asks a reader for what a scatter reads besides its operand, and
// returns where an update goes.
func touchUpdates(n *ir.Node, r *reader) (target ir.Index) {
	l := n.Def().Lower.(*ir.ScatterLowering)
	positions, window := l.Space(n)
	p, w := coords("p", positions), coords("w", window)
	target, _ = l.Target(n, p, w, r.operand(n))
	r.operand(n)(2, l.Update(n, p, w))
	return target
}

// unflattened returns the coordinates of element number i in row-major order.
func unflattened(s *scalar.Simplifier, i scalar.Expr, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for k := len(dims) - 1; k > 0; k-- {
		at[k] = scalar.Mod(i, integer(dims[k]))
		i = scalar.FloorDiv(i, integer(dims[k]))
	}
	if len(dims) > 0 {
		at[0] = i
	}
	return simplifyAll(s, at)
}
