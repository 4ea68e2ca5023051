package fusion

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Contraction is the contraction of a node with the way back from a position
// of its result to the four spaces.
type Contraction struct {
	ir.Contraction
	// Node is the node that it is the contraction of.
	Node *ir.Node

	s *scalar.Simplifier
	// Where the coordinates of the spaces are in a position of the result.
	batchFrom, mFrom, nFrom []digit
}

// digit is a coordinate that is part of another, which counts in steps of
// several: its value is at[axis]/step, modulo the number base (0: any). The
// coordinate of an axis of size 1 has a negative axis.
type digit struct{ axis, step, base int }

// ContractionOf returns the contraction of a node of a partition, whose factors are
// simplified by s. [Build] has refused what has no way back from its result.
func ContractionOf(n *ir.Node, s *scalar.Simplifier) *Contraction {
	c, fault := inverted(n, s)
	if fault != "" {
		panic(fault)
	}
	return c
}

// inverted finds the way back from a result's position, or says why there is
// none.
func inverted(n *ir.Node, s *scalar.Simplifier) (c *Contraction, fault string) {
	c = &Contraction{Contraction: n.Def().Lower.(*ir.ContractLowering).Spec(n), Node: n, s: s}
	b, m, nn := Coords("b", c.Batch), Coords("m", c.M), Coords("n", c.N)
	found := map[string]digit{}
	for axis, e := range c.Out(b, m, nn) {
		if !findDigits(e, axis, found) {
			return nil, "axis " + strconv.Itoa(axis) + " of its result, at " + e.String() + ", does not tell the coordinates it is made of"
		}
	}
	from := func(space ir.Index) []digit {
		out := make([]digit, len(space))
		for i, e := range space {
			out[i] = digit{axis: -1}
			if e.Op == scalar.OpVar {
				d, ok := found[e.Name]
				if !ok {
					fault = "the position of its result does not tell the coordinate " + e.Name
				}
				out[i] = d
			}
		}
		return out
	}
	c.batchFrom, c.mFrom, c.nFrom = from(b), from(m), from(nn)
	return c, fault
}

// term is a part of a position: step times the variable v.
type term struct {
	v    scalar.Expr
	step int
}

// findDigits notes for the variables of e, a position along an axis, which part
// of it they are. e is a sum of variables times constants in which, as in a
// number's digits, each step is more than all smaller terms make. Groups of
// features are such a sum.
func findDigits(e scalar.Expr, axis int, found map[string]digit) bool {
	terms, ok := termsOf(e, 1, nil)
	slices.SortStableFunc(terms, func(a, b term) int { return cmp.Compare(b.step, a.step) })
	for i, t := range terms {
		d := digit{axis: axis, step: t.step}
		if i > 0 {
			above := terms[i-1].step
			d.base = above / t.step
			ok = ok && above%t.step == 0 && t.v.Hi < int64(d.base)
		}
		_, twice := found[t.v.Name]
		ok = ok && !twice
		found[t.v.Name] = d
	}
	return ok
}

// termsOf returns the terms of step times e, or false where e is no sum of
// variables times positive constants.
func termsOf(e scalar.Expr, step int, terms []term) ([]term, bool) {
	if c, ok := e.IntConst(); ok {
		return terms, c == 0
	}
	switch e.Op {
	case scalar.OpVar:
		return append(terms, term{e, step}), true
	case scalar.OpMul:
		for i, x := range e.Args {
			if c, ok := x.IntConst(); ok && c > 0 {
				return termsOf(e.Args[1-i], step*int(c), terms)
			}
		}
	case scalar.OpAdd:
		terms, ok := termsOf(e.Args[0], step, terms)
		if !ok {
			return terms, false
		}
		return termsOf(e.Args[1], step, terms)
	}
	return terms, false
}

// of returns the coordinates of a space at a position of the result.
func (c *Contraction) of(space []digit, at ir.Index) ir.Index {
	out := make(ir.Index, len(space))
	for i, d := range space {
		if d.axis < 0 {
			out[i] = loop.Int(0)
			continue
		}
		out[i] = scalar.FloorDiv(at[d.axis], loop.Int(d.step))
		if d.base > 0 {
			out[i] = scalar.Mod(out[i], loop.Int(d.base))
		}
	}
	return out
}

// factors returns the two factors at a position of the result and a point of
// the contracted space.
func (c *Contraction) factors(at, k ir.Index, load ir.Load) (a, b scalar.Expr) {
	batch := c.of(c.batchFrom, at)
	return c.Factor(0, batch, c.of(c.mFrom, at), k, load), c.Factor(1, batch, c.of(c.nFrom, at), k, load)
}

// Factor returns the factor that an operand brings, zero where it has none.
func (c *Contraction) Factor(operand int, batch, free, k ir.Index, load ir.Load) scalar.Expr {
	at, valid := c.Address(operand, batch, free, k)
	if valid == nil {
		return c.widen(load(operand, at))
	}
	return scalar.Select(c.s.Simplify(valid), c.widen(load(operand, at)), scalar.Const(c.Acc, 0))
}

// Address returns where an operand has its factor, and whether it has one.
func (c *Contraction) Address(operand int, batch, free, k ir.Index) (ir.Index, scalar.Expr) {
	if operand == 0 {
		return c.A(batch, free, k)
	}
	return c.B(batch, free, k)
}

func (c *Contraction) widen(x scalar.Expr) scalar.Expr { return scalar.Convert(x, c.Acc) }

// asReduction is the contraction written as a reduction, for shapes too thin
// for tiles.
func (c *Contraction) asReduction() *ir.ReduceLowering {
	result := c.Node.Types()[0].DType
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
	c := ContractionOf(first.Node, scalar.NewSimplifier())
	var all []int
	first.Inner, all = assignCoords(c.K, g.Outer)
	return &Group{
		Kind: ReduceKind, Outer: g.Outer, Inner: all[len(g.Outer):], partition: g.partition, loads: g.loads,
		Members: append([]*Member{&first}, g.Members[1:]...),
	}
}

// SoleOperand returns the tensor that holds all of an operand of a contraction
// group, at positions of a batch, as it is stored; nil where the contraction reads
// more or computes with it, or where the group touches the tensor elsewhere too.
func (g *Group) SoleOperand(c *Contraction, operand int, batch ir.Index) *Tensor {
	t := g.storedOperand(c, operand, batch)
	if t == nil || t == g.storedOperand(c, 1-operand, batch) {
		return nil
	}
	for _, m := range g.Members {
		if slices.ContainsFunc(m.Store, func(s *Tensor) bool { return s != nil && s.Root() == t }) {
			return nil
		}
		s := g.partition.spaceOf(m.Node)
		for _, i := range s.order {
			if x := g.partition.tensors[s.values[i]]; m != g.Members[0] && x != nil && x.Root() == t {
				return nil
			}
		}
	}
	return t
}

// storedOperand is SoleOperand whatever else the group touches.
func (g *Group) storedOperand(c *Contraction, operand int, batch ir.Index) *Tensor {
	var found []*Tensor
	rd := NewReader(g.partition, c.s)
	rd.note = func(v ir.Value, _ ir.Index) { found = append(found, g.partition.tensors[v]) }
	x := c.Factor(operand, batch, Coords("f", [2][]int{c.M, c.N}[operand]), Coords("k", c.K), rd.Operand(c.Node))
	if len(found) != 1 || found[0] == nil || x.Op != scalar.OpLoad {
		return nil
	}
	return found[0].Root()
}
