package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// scatter is a scatter seen from its result: each result element looks through
// the scatter positions for updates that fall on it. It reads more indices than
// a scatter by atomics would, but the sum has one order, whatever the device.
type scatter struct {
	l *ir.ScatterLowering
	n *ir.Node
	// positions are the sizes of the space of scatter positions; found and
	// window say which result axis tells a position's or a window's coordinate,
	// -1 for those that have to be looked for.
	positions, window []int
	posAxis, winAxis  []int
}

func scatterOf(n *ir.Node) *scatter {
	s := &scatter{l: n.Def().Lower.(*ir.ScatterLowering), n: n}
	s.positions, s.window = s.l.Space(n)
	p, w := coords("p", s.positions), coords("w", s.window)
	none := func(operand int, _ ir.Index) scalar.Expr { return scalar.Arg(operand, n.Input(operand).DType()) }
	at, _ := s.l.Target(n, p, w, none)
	s.posAxis, s.winAxis = axesFor(p, at), axesFor(w, at)
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

// searched are the sizes of the scatter positions that have to be looked
// through.
func (s *scatter) searched() []int {
	var out []int
	for i, axis := range s.posAxis {
		if axis < 0 {
			out = append(out, s.positions[i])
		}
	}
	return out
}

// asReduction is the scatter written as a reduction over its positions.
func (s *scatter) asReduction() *ir.ReduceLowering {
	d := s.n.Types()[0].DType
	return &ir.ReduceLowering{
		Space: func(*ir.Node) []int { return s.searched() },
		Accumulators: func(*ir.Node) []ir.Accumulator {
			return []ir.Accumulator{{DType: sumType(d), Init: scalar.Const(sumType(d), 0)}}
		},
		Element: func(n *ir.Node, at, r ir.Index, load ir.Load) []scalar.Expr {
			return []scalar.Expr{scalar.Convert(s.update(at, r, load), sumType(d))}
		},
		Combine: func(_ *ir.Node, a, b []scalar.Expr) []scalar.Expr {
			return []scalar.Expr{scalar.Add(a[0], b[0])}
		},
	}
}

// sumType is the element type that sums of a type are kept in.
func sumType(d ir.DType) ir.DType {
	if d == ir.F16 || d == ir.BF16 {
		return ir.F32
	}
	return d
}

// update is what the searched position r brings to the result element at a
// position: its update if that falls there, else zero.
func (s *scatter) update(at, r ir.Index, load ir.Load) scalar.Expr {
	p, next := make(ir.Index, len(s.positions)), 0
	for i, axis := range s.posAxis {
		if axis >= 0 {
			p[i] = at[axis]
			continue
		}
		p[i] = r[next]
		next++
	}
	w := pick(at, s.winAxis)
	target, hit := s.l.Target(s.n, p, w, load)
	if hit == nil {
		hit = scalar.ConstBool(true)
	}
	for axis, e := range target {
		hit = scalar.And(hit, scalar.Eq(e, at[axis]))
	}
	u := load(2, s.l.Update(s.n, p, w))
	return scalar.Select(hit, u, scalar.Const(u.Type, 0))
}

// finish adds the operand to the sum.
func (s *scatter) finish(at ir.Index, sum scalar.Expr, load ir.Load) scalar.Expr {
	x := load(0, at)
	return scalar.Convert(scalar.Add(scalar.Convert(x, sum.Type), sum), x.Type)
}
