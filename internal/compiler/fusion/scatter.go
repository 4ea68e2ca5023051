package fusion

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scatter is a scatter seen from its result: each result element looks through
// the updates for those that fall on it. It reads more indices than a scatter
// by atomics would, but the result is the same whatever the device: a sum has
// one order, and of updates that are set the last one counts.
type scatter struct {
	Lowering *ir.ScatterLowering
	Node     *ir.Node // that has the lowering
	// space are the sizes of the scatter positions and then of the window; axes
	// say which result axis tells a coordinate, -1 for those that have to be
	// looked for.
	space     []int
	axes      []int
	positions int // how many of the coordinates are those of positions
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

// axesFor finds the place in at of each coordinate, -1 where it is not there.
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

// searched are the sizes of the space that has to be looked through.
func (s *scatter) searched() []int {
	var out []int
	for i, axis := range s.axes {
		if axis < 0 {
			out = append(out, s.space[i])
		}
	}
	return out
}

// asReduction is the scatter written as a reduction over what is searched: to
// what the updates combine to, or to the last one with its place, -1 for none.
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

// SumType is the element type that updates are combined in.
func (s *scatter) SumType() ir.DType { return sumType(s.Node.Types()[0].DType) }

// Neutral is what no update leaves.
func (s *scatter) Neutral() scalar.Expr { return s.Lowering.Mode.Neutral(s.SumType()) }

// sumType is the element type that sums of a type are kept in.
func sumType(d ir.DType) ir.DType {
	if d == ir.F16 || d == ir.BF16 {
		return ir.F32
	}
	return d
}

// update is what the searched point r brings to the result element at a
// position, one expression for each accumulator: its update if that falls there,
// else what changes nothing.
func (s *scatter) update(at, r ir.Index, load ir.Load) []scalar.Expr {
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
		hit = scalar.And(hit, scalar.Eq(e, at[axis]))
	}
	u := scalar.Convert(load(2, s.Lowering.Update(s.Node, p, w)), s.SumType())
	out := []scalar.Expr{scalar.Select(hit, u, s.Neutral())}
	if s.Lowering.Mode == ir.ScatterSet {
		out = append(out, scalar.Select(hit, scalar.Convert(linear(s.searched(), r, false), ir.I32), loop.Int(-1)))
	}
	return out
}

// finish returns the result element from the accumulators and the operand.
func (s *scatter) finish(at ir.Index, acc []scalar.Expr, load ir.Load) scalar.Expr {
	x := load(0, at)
	if s.Lowering.Mode == ir.ScatterSet {
		return scalar.Select(scalar.Ge(acc[1], loop.Int(0)), scalar.Convert(acc[0], x.Type), x)
	}
	return scalar.Convert(s.Lowering.Mode.Combine(scalar.Convert(x, acc[0].Type), acc[0]), x.Type)
}

// touch asks for all elements that the result element at a position and the
// searched point r read.
func (s *scatter) touch(at, r ir.Index, load ir.Load) {
	s.update(at, r, load)
	s.finish(at, []scalar.Expr{scalar.Arg(0, s.SumType()), scalar.Arg(1, ir.I32)}, load)
}
