package fusion

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Contraction is the contraction of a node together with the map from a position
// of its result to coordinates of the batch, M and N spaces.
type Contraction struct {
	ir.Contraction
	// Node is the contraction's node.
	Node *ir.Node

	s *scalar.Simplifier
	// Where a result position holds the coordinates of the spaces.
	batchFrom, mFrom, nFrom []digit
}

// digit locates a coordinate inside a position: its value is at[axis]/step, modulo
// base unless base is 0. The coordinate of an axis of size 1 has a negative axis.
type digit struct{ axis, step, base int }

// ContractionOf returns the contraction of a node of a partition; s simplifies its
// factors. It panics where inverted fails, which [Build] has checked.
func ContractionOf(n *ir.Node, s *scalar.Simplifier) *Contraction {
	c, fault := inverted(n, s)
	if fault != "" {
		panic(fault)
	}
	return c
}

// inverted builds the map from result positions to coordinates, or says why there
// is none.
func inverted(n *ir.Node, s *scalar.Simplifier) (c *Contraction, fault string) {
	c = &Contraction{Contraction: n.Def().Lower.(*ir.ContractLowering).Spec(n), Node: n, s: s}
	b, m, nn := Coords("b", c.Batch), Coords("m", c.M), Coords("n", c.N)
	found := map[string]digit{}
	for axis, e := range c.Out(b, m, nn) {
		if !findDigits(e, axis, found) {
			return nil, "axis " + strconv.Itoa(axis) + " of its result, at " + e.String() + ", does not determine its coordinates"
		}
	}
	from := func(space ir.Index) []digit {
		out := make([]digit, len(space))
		for i, e := range space {
			out[i] = digit{axis: -1}
			if e.Op == scalar.OpVar {
				d, ok := found[e.Name]
				if !ok {
					fault = "the position of its result does not determine the coordinate " + e.Name
				}
				out[i] = d
			}
		}
		return out
	}
	c.batchFrom, c.mFrom, c.nFrom = from(b), from(m), from(nn)
	return c, fault
}

// term is a summand of a position: step times the variable v.
type term struct {
	v    scalar.Expr
	step int
}

// findDigits records the digit of each variable of e, a position along an axis. The
// expression must be a sum of variables times constants in mixed-radix form: each
// step exceeds the largest value of all smaller terms together. Feature groups give
// such sums.
func findDigits(e scalar.Expr, axis int, found map[string]digit) bool {
	terms, ok := termsOf(e, 1, nil)
	for i := range terms { // few: inserted one by one
		for j := i; j > 0 && terms[j-1].step < terms[j].step; j-- {
			terms[j-1], terms[j] = terms[j], terms[j-1]
		}
	}
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

// termsOf appends the terms of step times e. It fails where e is not a sum of
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

// Bounds of [Group.Phases]: each takes kernels of its own, and has phaseResults results on average at least.
const (
	maxPhases    = 16
	phaseResults = 1 << 10
)

// Phases returns the numbers [from, to) of forms of the contraction of a group that together compute it, each some of
// the results, without products with the zeros between elements of an operand: see [Group.CodeOf].
func (g *Group) Phases() (from, to int) {
	if g.Kind == ContractKind {
		n := g.Members[0].Node
		if of := n.Def().Lower.(*ir.ContractLowering).Phase; of != nil {
			if _, count := of(n, 0); count > 1 && count <= maxPhases && Product(g.Outer) >= count*phaseResults {
				return 0, count
			}
		}
	}
	return ir.PhasesInBatch, ir.PhasesInBatch + 1
}

// Exists returns the condition under which the result has the position of a point.
func (c *Contraction) Exists(batch, m ir.Index) scalar.Expr {
	return c.Stored(batch, m, Coords("n", c.N))
}

// DigitsOf returns the coordinates of the batch, M and N spaces of the contraction of a group, as [Group.Code] names
// them, at outer coordinates of the group.
func DigitsOf(g *Group, outer ir.Index) map[string]scalar.Expr {
	m := g.Members[0]
	c := ContractionOf(m.Node, scalar.NewSimplifier())
	at, digits := m.At(outer), map[string]scalar.Expr{}
	add := func(vars ir.Index, space []digit) {
		for i, x := range c.of(space, at) {
			digits[vars[i].Name] = x
		}
	}
	add(Coords("b", c.Batch), c.batchFrom)
	add(Coords("m", c.M), c.mFrom)
	add(Coords("n", c.N), c.nFrom)
	return digits
}

// factors returns the two factors for a position of the result and a point of the
// K space.
func (c *Contraction) factors(at, k ir.Index, load ir.Load) (a, b scalar.Expr) {
	batch := c.of(c.batchFrom, at)
	return c.Factor(0, batch, c.of(c.mFrom, at), k, load), c.Factor(1, batch, c.of(c.nFrom, at), k, load)
}

// Factor returns the factor from an operand, zero outside its bounds.
func (c *Contraction) Factor(operand int, batch, free, k ir.Index, load ir.Load) scalar.Expr {
	at, valid := c.Address(operand, batch, free, k)
	if valid == nil {
		return c.widen(load(operand, at))
	}
	return scalar.Select(c.s.Simplify(valid), c.widen(load(operand, at)), scalar.Const(c.Acc, 0))
}

// Free returns the sizes of the free space of an operand: M for operand 0, N for operand 1.
func (c *Contraction) Free(operand int) []int { return [2][]int{c.M, c.N}[operand] }

// Address returns the position of a factor in its operand, and whether it is in bounds.
func (c *Contraction) Address(operand int, batch, free, k ir.Index) (ir.Index, scalar.Expr) {
	if operand == 0 {
		return c.A(batch, free, k)
	}
	return c.B(batch, free, k)
}

func (c *Contraction) widen(x scalar.Expr) scalar.Expr { return scalar.Convert(x, c.Acc) }

// asReduction returns the contraction as a reduction, for shapes too thin for tiles.
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

// Reduction rewrites a contraction group as a reduce group; the epilogue of the
// contraction is computed once per row.
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

// SoleOperand returns the root tensor that holds an operand of the contraction of a group
// unchanged, at positions of a batch. It returns nil where the operand is computed
// or read from several tensors, or where the group accesses the tensor elsewhere.
func (c *Contraction) SoleOperand(g *Group, operand int, batch ir.Index) *Tensor {
	t := c.storedOperand(g, operand, batch)
	if t == nil || t == c.storedOperand(g, 1-operand, batch) {
		return nil
	}
	for _, m := range g.Members {
		if slices.ContainsFunc(m.Store, func(s *Tensor) bool { return s != nil && s.Root() == t }) {
			return nil
		}
		s := g.partition.spaces.of(m.Node)
		for _, i := range s.order {
			if x := g.partition.tensors[s.values[i]]; m != g.Members[0] && x != nil && x.Root() == t {
				return nil
			}
		}
	}
	return t
}

// storedOperand is SoleOperand without the check for other accesses.
func (c *Contraction) storedOperand(g *Group, operand int, batch ir.Index) *Tensor {
	var found []*Tensor
	rd := NewReader(g.partition, c.s)
	rd.note = func(v ir.Value, _ ir.Index) { found = append(found, g.partition.tensors[v]) }
	x := c.Factor(operand, batch, Coords("f", c.Free(operand)), Coords("k", c.K), rd.Operand(c.Node))
	if len(found) != 1 || found[0] == nil || x.Op != scalar.OpLoad {
		return nil
	}
	return found[0].Root()
}
