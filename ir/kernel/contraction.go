package kernel

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// contraction is the contraction of a node with the way back from a position
// of its result to the four spaces.
type contraction struct {
	ir.Contraction
	n *ir.Node
	s *scalar.Simplifier
	// For each axis of a space, the axis of the result it is, -1 for axes of
	// size 1.
	batchAxis, mAxis, nAxis []int
}

func contractionOf(n *ir.Node, s *scalar.Simplifier) *contraction {
	c := &contraction{Contraction: n.Def().Lower.(*ir.ContractLowering).Spec(n), n: n, s: s}
	b, m, nn := coords("b", c.Batch), coords("m", c.M), coords("n", c.N)
	axis := map[string]int{}
	for i, e := range c.Out(b, m, nn) {
		if e.Op == scalar.OpVar {
			axis[e.Name] = i
		}
	}
	of := func(space ir.Index) []int {
		out := make([]int, len(space))
		for i, e := range space {
			out[i] = -1
			if e.Op == scalar.OpVar {
				out[i] = axis[e.Name]
			}
		}
		return out
	}
	c.batchAxis, c.mAxis, c.nAxis = of(b), of(m), of(nn)
	return c
}

// factors returns the two factors at a position of the result and a point of
// the contracted space.
func (c *contraction) factors(at, k ir.Index, load ir.Load) (a, b scalar.Expr) {
	batch := pick(at, c.batchAxis)
	return c.factor(0, batch, pick(at, c.mAxis), k, load), c.factor(1, batch, pick(at, c.nAxis), k, load)
}

// factor returns the factor that an operand brings, zero where it has none.
func (c *contraction) factor(operand int, batch, free, k ir.Index, load ir.Load) scalar.Expr {
	at, valid := c.address(operand, batch, free, k)
	if valid == nil {
		return c.widen(load(operand, at))
	}
	valid = c.s.Simplify(valid)
	inside := make(ir.Index, len(at))
	for i, e := range at {
		inside[i] = scalar.Select(valid, e, integer(0))
	}
	x := c.widen(load(operand, inside))
	return scalar.Select(valid, x, scalar.Const(c.Acc, 0))
}

// address returns where an operand has its factor, and whether it has one.
func (c *contraction) address(operand int, batch, free, k ir.Index) (ir.Index, scalar.Expr) {
	if operand == 0 {
		return c.A(batch, free, k)
	}
	return c.B(batch, free, k)
}

func (c *contraction) widen(x scalar.Expr) scalar.Expr { return scalar.Convert(x, c.Acc) }

// asReduction is the contraction written as a reduction, for shapes too thin
// for tiles.
func (c *contraction) asReduction() *ir.ReduceLowering {
	result := c.n.Types()[0].DType
	return &ir.ReduceLowering{
		Space: func(*ir.Node) []int { return c.K },
		Accumulators: func(*ir.Node) []ir.Accumulator {
			return []ir.Accumulator{{DType: c.Acc, Init: scalar.Const(c.Acc, 0)}}
		},
		Element: func(_ *ir.Node, at, r ir.Index, load ir.Load) []scalar.Expr {
			a, b := c.factors(at, r, load)
			return []scalar.Expr{scalar.Mul(a, b)}
		},
		Combine: func(_ *ir.Node, a, b []scalar.Expr) []scalar.Expr {
			return []scalar.Expr{scalar.Add(a[0], b[0])}
		},
		Finish: func(_ *ir.Node, _ ir.Index, acc []scalar.Expr) []scalar.Expr {
			return []scalar.Expr{scalar.Convert(acc[0], result)}
		},
	}
}

// Reduction returns a group that computes a contraction group as a reduction;
// what followed the contraction is computed once for each row.
func (g *Group) Reduction() *Group {
	first := *g.Members[0]
	first.Reduced = true
	c := contractionOf(first.Node, scalar.NewSimplifier())
	var all []int
	first.Inner, all = assignCoords(c.K, g.Outer)
	return &Group{
		Kind: ReduceKind, Outer: g.Outer, Inner: all[len(g.Outer):], program: g.program, reads: g.reads,
		Members: append([]*Member{&first}, g.Members[1:]...),
	}
}
