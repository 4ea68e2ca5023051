package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scatter is a scatter in gather form: each result element searches the updates that
// target it. That reads more indices than atomics would, but is deterministic: sums have
// a fixed order, and of updates that are set the last one wins.
type scatter struct {
	Lowering *ir.ScatterLowering
	Node     *ir.Node
	// space holds the sizes of the scatter positions, then of the window. axes maps each
	// coordinate to the result axis that determines it, or to -1 if it must be searched.
	space     []int
	axes      []int
	positions int // number of coordinates that are scatter positions
}

func scatterOf(n *ir.Node) *scatter {
	s := &scatter{Lowering: n.Def().Lower.(*ir.ScatterLowering), Node: n}
	positions, window := s.Lowering.Space(n)
	s.space, s.positions = slices.Concat(positions, window), len(positions)
	x := Coords("p", s.space)
	none := func(operand int, _ ir.Index) scalar.Expr { return scalar.Arg(operand, n.Input(operand).DType()) }
	at, _ := s.Lowering.Target(n, x[:s.positions], x[s.positions:], none)
	s.axes = axesFor(x, at)
	return s
}

// axesFor returns the axis of at that holds each coordinate of space, or -1.
func axesFor(space, at ir.Index) []int {
	out := make([]int, len(space))
	for i, x := range space {
		out[i] = -1
		for axis, e := range at {
			if x.Op == scalar.OpVar && e.Op == scalar.OpVar && e.Name == x.Name {
				out[i] = axis
			}
		}
	}
	return out
}

// searched returns the sizes of the space to search.
func (s *scatter) searched() []int {
	var out []int
	for i, axis := range s.axes {
		if axis < 0 {
			out = append(out, s.space[i])
		}
	}
	return out
}

// asReduction returns the scatter as a reduction over the searched space. Its result is
// the combined updates, or the last update with its position, -1 for none.
func (s *scatter) asReduction() *ir.ReduceLowering {
	accumulators := []ir.Accumulator{{DType: s.SumType(), Init: s.Neutral()}}
	if s.Lowering.Mode == ir.ScatterSet {
		accumulators = append(accumulators, ir.Accumulator{DType: ir.I32, Init: loop.Int(-1)})
	}
	return &ir.ReduceLowering{
		Space:        func(*ir.Node) []int { return s.searched() },
		Accumulators: func(*ir.Node) []ir.Accumulator { return accumulators },
		Element:      func(_ *ir.Node, at, r ir.Index, load ir.Load) []scalar.Expr { return s.update(at, r, load) },
		Combine: func(_ *ir.Node, a, b []scalar.Expr) []scalar.Expr {
			if s.Lowering.Mode != ir.ScatterSet {
				return []scalar.Expr{s.Lowering.Mode.Combine(a[0], b[0])}
			}
			later := scalar.Gt(b[1], a[1])
			return []scalar.Expr{scalar.Select(later, b[0], a[0]), scalar.Max(a[1], b[1])}
		},
	}
}

// SumType returns the element type in which updates are combined.
func (s *scatter) SumType() ir.DType { return sumType(s.Node.Types()[0].DType) }

// Neutral returns the neutral element of the combination.
func (s *scatter) Neutral() scalar.Expr { return s.Lowering.Mode.Neutral(s.SumType()) }

// sumType returns the accumulator type for sums of d.
func sumType(d ir.DType) ir.DType {
	if d == ir.F16 || d == ir.BF16 {
		return ir.F32
	}
	return d
}

// update returns the contribution of the searched point r to the result element at a
// position, one expression per accumulator: the update if it targets the element,
// otherwise the neutral element.
func (s *scatter) update(at, r ir.Index, load ir.Load) []scalar.Expr {
	u, hit := s.updateAt(at, r, load)
	out := []scalar.Expr{scalar.Select(hit, scalar.Convert(u, s.SumType()), s.Neutral())}
	if s.Lowering.Mode == ir.ScatterSet {
		out = append(out, scalar.Select(hit, scalar.Convert(linear(s.searched(), r, false), ir.I32), loop.Int(-1)))
	}
	return out
}

// updateAt returns the update of the searched point r, and whether it targets the result element at a position.
func (s *scatter) updateAt(at, r ir.Index, load ir.Load) (u, hit scalar.Expr) {
	x, next := make(ir.Index, len(s.space)), 0
	for i, axis := range s.axes {
		if axis >= 0 {
			x[i] = at[axis]
			continue
		}
		x[i] = r[next]
		next++
	}
	p, w := x[:s.positions], x[s.positions:]
	target, hit := s.Lowering.Target(s.Node, p, w, load)
	if hit == nil {
		hit = scalar.ConstBool(true)
	}
	for axis, e := range target {
		if e != at[axis] {
			hit = scalar.And(hit, scalar.Eq(e, at[axis]))
		}
	}
	return load(2, s.Lowering.Update(s.Node, p, w)), hit
}

// finish combines the operand's element with the accumulators.
func (s *scatter) finish(at ir.Index, acc []scalar.Expr, load ir.Load) scalar.Expr {
	x := load(0, at)
	if s.Lowering.Mode == ir.ScatterSet {
		return scalar.Select(scalar.Ge(acc[1], loop.Int(0)), scalar.Convert(acc[0], x.Type), x)
	}
	return scalar.Convert(s.Lowering.Mode.Combine(scalar.Convert(x, acc[0].Type), acc[0]), x.Type)
}

// isSingleUpdate reports whether a node is a scatter of one update, which replaces elements: its result can be computed by the element.
func isSingleUpdate(n *ir.Node) bool {
	l, ok := n.Def().Lower.(*ir.ScatterLowering)
	return ok && l.Mode == ir.ScatterSet && Product(scatterOf(n).searched()) == 1
}

// element returns the result element at a position of a scatter of one update.
func (s *scatter) element(at ir.Index, load ir.Load) scalar.Expr {
	first := make(ir.Index, len(s.space))
	for i := range first {
		first[i] = loop.Int(0)
	}
	u, hit := s.updateAt(at, first, load)
	return scalar.Select(hit, u, load(0, at))
}

// loadAll loads everything that the result element at a position and the searched point r
// read.
func (s *scatter) loadAll(at, r ir.Index, load ir.Load) {
	s.update(at, r, load)
	s.finish(at, []scalar.Expr{scalar.Arg(0, s.SumType()), scalar.Arg(1, ir.I32)}, load)
}

// Limits of scatters in gather form, which fuse with their neighbours: the number of
// positions to search, and that up to which [hardware.Traffic.Searches] does not count.
const (
	maxSearched = 64
	fewSearched = 4
)

// isSearched reports whether a scatter runs in gather form. One that updates a state in
// place does not: it only touches the rows of its indices.
func isSearched(n *ir.Node, s *states, searches int) bool {
	k := Product(scatterOf(n).searched())
	size, _ := n.Types()[0].Shape.Size().Const()
	return k <= maxSearched && s.oldOf[n.Result(0)] != n.Input(0) && (k <= fewSearched || k*int(size) <= searches)
}

// RowScatter is a scatter seen from its updates: each position targets one row of the
// result, along which its window runs, or none.
type RowScatter struct {
	*scatter
	Out       *Tensor // the result
	Positions int     // number of positions
	Window    int     // elements per row
	Rows      int     // rows of the result

	p *Partition
	// Sizes of the three spaces, and the result axes of rows and windows.
	positionDims, windowDims, rowDims []int
	rowAxes, windowAxes               []int
}

// RowScatterOf returns the scatter of a group of kind ScatterKind.
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

// Row returns the row that position i targets, and the condition that it exists.
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

// Update returns element w of the update at position i.
func (s *RowScatter) Update(e *scalar.Simplifier, i, w scalar.Expr, load ir.Load) scalar.Expr {
	return load(2, s.Lowering.Update(s.Node, Unflatten(e, i, s.positionDims), Unflatten(e, w, s.windowDims)))
}

// At returns the result position of an element of a row.
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

// InPlace reports whether the result is stored in the operand's tensor.
func (s *RowScatter) InPlace() bool { return s.p.tensors[s.Node.Input(0)] == s.Out }

// scattersInPlace reports whether a group is a scatter into old that reads old nowhere
// else, and so can update it in place.
func scattersInPlace(g *Group, old ir.Value) bool {
	if g.Kind != ScatterKind || g.Members[0].Node.Input(0) != old {
		return false
	}
	again := false
	r := NewReader(g.partition, g.partition.simplifier)
	r.note = func(v ir.Value, _ ir.Index) { again = again || v == old }
	loadUpdates(g.Members[0].Node, r)
	return !again
}

// loadUpdates loads what a scatter reads besides its operand, and returns the target of
// an update.
func loadUpdates(n *ir.Node, r *Reader) (target ir.Index) {
	l := n.Def().Lower.(*ir.ScatterLowering)
	positions, window := l.Space(n)
	p, w := Coords("p", positions), Coords("w", window)
	target, _ = l.Target(n, p, w, r.Operand(n))
	r.Operand(n)(2, l.Update(n, p, w))
	return target
}

// Few reports whether the positions are few enough for a search in gather form.
func (s *RowScatter) Few() bool { return s.Positions <= maxSearched }
