package fusion

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Code is the computation of a group as expressions in its coordinates, without a
// schedule. It is the input of backends that schedule groups themselves. Loads name
// tensors by ID.
type Code struct {
	// Outer are the variables of the outer coordinates, of range [0, size).
	Outer []scalar.Expr
	// Inner are those of the inner coordinates, which reductions iterate over.
	Inner []scalar.Expr
	// Stages run in order for each outer point.
	Stages []Stage
	// Rows are stored once per outer point after all stages, Points once per inner
	// point. All values are computed before the first store.
	Rows, Points []ElementStore
}

// Stage computes row values and then runs reductions over the inner points.
type Stage struct {
	// Lets are values of the outer point that later expressions use.
	Lets       []scalar.Local
	Reductions []Reduction
	// Contract is set instead for the one stage of a contraction.
	Contract *Contract
}

// Reduction combines the elements of all inner points into accumulators.
type Reduction struct {
	Accumulators []ir.Accumulator
	// Elements are the contributions of an inner point, one per accumulator.
	Elements []scalar.Expr
	// Combine merges two sets of accumulator values.
	Combine func(a, b []scalar.Expr) []scalar.Expr
	// Results are the named results, computed from the variables Running, which
	// stand for the final accumulator values.
	Running []scalar.Expr
	Results []scalar.Local
}

// Contract is a sum of products. A and B are the factors in the coordinates of
// their spaces; Sum is the variable for the sum in later expressions.
type Contract struct {
	Batch, M, N, K []int
	// The variables of the coordinates; an axis of size 1 has the constant 0.
	BatchAt, MAt, NAt, KAt ir.Index
	A, B                   scalar.Expr
	// Outer maps each outer coordinate of the group to a variable of one of the
	// spaces.
	Outer ir.Index
	Sum   scalar.Expr
}

// ElementStore writes one element of a tensor.
type ElementStore struct {
	Tensor *Tensor // the root tensor
	Offset scalar.Expr
	Value  scalar.Expr
	// Guarded stores are skipped once an index check has failed.
	Guarded bool
}

// Code returns the expressions of a group that is not a loop, a scan or a set of
// groups side by side (for those, call Code on each of Parts).
func (g *Group) Code() *Code {
	c := newCoder(g)
	c.outer, c.inner = g.partition.variables("o", g.Outer), g.partition.variables("r", g.Inner)
	c.code.Outer, c.code.Inner = c.outer, c.inner
	switch g.Kind {
	case ReduceKind:
		c.reductions()
	case ContractKind:
		c.contraction()
	}
	for _, m := range g.Members {
		c.stores(m)
	}
	for _, x := range g.Copies {
		at := Spread(c.outer, x.To.Dims)
		value := x.Literal
		if x.From != nil {
			value = g.partition.Load(c.s, x.From, at)
		}
		c.code.Rows = append(c.code.Rows, c.store(x.To, at, value))
	}
	return c.code
}

// Prefix returns the computation of a group of kind PrefixKind.
func (g *Group) Prefix() *Prefix {
	n := g.Members[0].Node
	l := n.Def().Lower.(*ir.PrefixLowering)
	dims, _ := n.Types()[0].Shape.Ints()
	at := g.partition.variables("o", dims)
	c := newCoder(g)
	x := &Prefix{Dims: dims, Axis: l.Axis(n), Reverse: l.Reverse(n), Exclusive: l.Exclusive(n), At: at, Accumulators: l.Accumulators(n)}
	for _, a := range x.Accumulators {
		x.Running = append(x.Running, c.variable(a.DType))
	}
	element, combine := l.Element(n, at, NewReader(g.partition, c.s).Operand(n)), func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(n, a, b) }
	x.Combined = combine(x.Running, element)
	results := x.Running
	if sums(x.Accumulators, combine) {
		results = x.compensate(c, element)
	}
	if l.Finish != nil {
		results = l.Finish(n, results)
	}
	for i, t := range g.Members[0].Store {
		if t != nil {
			x.Stores = append(x.Stores, c.store(t, at, results[i]))
		}
	}
	return x
}

// Prefix is a scan along one axis. For each point of the other axes, Running starts
// at the accumulators' initial values and each element replaces it by Combined.
// Stores write the results before that step if Exclusive is set, after it otherwise.
type Prefix struct {
	Dims               []int
	Axis               int
	Reverse, Exclusive bool
	At                 ir.Index // the coordinate variables, one per axis
	Accumulators       []ir.Accumulator
	Running, Combined  []scalar.Expr
	Stores             []ElementStore
}

// coder writes the code of one group.
type coder struct {
	g            *Group
	s            *scalar.Simplifier
	outer, inner ir.Index
	named        map[ir.Value]scalar.Expr
	code         *Code
	vars         int
}

func newCoder(g *Group) *coder {
	return &coder{g: g, s: scalar.NewSimplifier(), named: map[ir.Value]scalar.Expr{}, code: &Code{}}
}

func (c *coder) reader() *Reader {
	return NewReader(c.g.partition, c.s).InGroup(c.g, slices.Concat(c.outer, c.inner), func(v ir.Value) (scalar.Expr, bool) {
		x, ok := c.named[v]
		return x, ok
	})
}

func (c *coder) variable(d ir.DType) scalar.Expr {
	c.vars++
	return scalar.FreeVar("v"+strconv.Itoa(c.vars), d)
}

// reductions adds the stages of a reduce group: in each, the row values that the
// previous reductions make available, then the reductions.
func (c *coder) reductions() {
	levels := c.g.Levels()
	last := 0
	for _, level := range levels {
		last = max(last, level)
	}
	for level := 0; level <= last; level++ {
		var s Stage
		for _, m := range c.g.Members {
			if levels[m] == level && !m.Reduced && !m.Pointwise(len(c.g.Outer)) {
				s.Lets = append(s.Lets, c.rowValues(m)...)
			}
		}
		for _, m := range c.g.Members {
			if levels[m] == level && m.Reduced {
				s.Reductions = append(s.Reductions, c.reduction(m))
			}
		}
		c.code.Stages = append(c.code.Stages, s)
	}
}

func (c *coder) rowValues(m *Member) []scalar.Local {
	var out []scalar.Local
	for i := range m.Node.Types() {
		x := c.reader().Body(m.Node, i, m.At(c.outer))
		v := c.variable(x.Type)
		out = append(out, scalar.Local{Var: v, Value: x})
		c.named[m.Node.Result(i)] = v
	}
	return out
}

func (c *coder) reduction(m *Member) Reduction {
	l := m.Reduction()
	at := slices.Concat(c.outer, c.inner)
	load := c.reader().Operand(m.Node)
	r := Reduction{
		Accumulators: l.Accumulators(m.Node),
		Elements:     l.Element(m.Node, m.At(at), m.InnerAt(at), load),
		Combine:      func(a, b []scalar.Expr) []scalar.Expr { return l.Combine(m.Node, a, b) },
	}
	for _, a := range r.Accumulators {
		r.Running = append(r.Running, c.variable(a.DType))
	}
	for i, x := range m.Finish(m.At(c.outer), r.Running, load) {
		v := c.variable(x.Type)
		r.Results = append(r.Results, scalar.Local{Var: v, Value: x})
		c.named[m.Node.Result(i)] = v
	}
	return r
}

// contraction adds the single stage of a contraction, its factors written in the
// coordinates of the four spaces.
func (c *coder) contraction() {
	m := c.g.Members[0]
	k := ContractionOf(m.Node, c.s)
	x := &Contract{
		Batch: k.Batch, M: k.M, N: k.N, K: k.K,
		BatchAt: Coords("b", k.Batch), MAt: Coords("m", k.M), NAt: Coords("n", k.N), KAt: Coords("k", k.K),
	}
	load := NewReader(c.g.partition, c.s).Operand(m.Node)
	x.A = k.Factor(0, x.BatchAt, x.MAt, x.KAt, load)
	x.B = k.Factor(1, x.BatchAt, x.NAt, x.KAt, load)
	x.Outer = make(ir.Index, len(c.g.Outer))
	for axis, e := range k.Out(x.BatchAt, x.MAt, x.NAt) {
		if o := m.Coord[axis]; o >= 0 {
			x.Outer[o] = e
		}
	}
	x.Sum = c.variable(k.Acc)
	c.named[m.Node.Result(0)] = scalar.Convert(x.Sum, m.Node.Types()[0].DType)
	c.code.Stages = []Stage{{Contract: x}}
}

// stores adds the stores of a member's results.
func (c *coder) stores(m *Member) {
	at := slices.Concat(c.outer, c.inner)
	for i, t := range m.Store {
		if t == nil {
			continue
		}
		pos := m.At(at)
		s := c.store(t, pos, c.reader().Element(m.Node.Result(i), pos))
		if m.Pointwise(len(c.g.Outer)) {
			c.code.Points = append(c.code.Points, s)
		} else {
			c.code.Rows = append(c.code.Rows, s)
		}
	}
}

func (c *coder) store(t *Tensor, at ir.Index, value scalar.Expr) ElementStore {
	root, offset := c.g.partition.Place(t, at)
	return ElementStore{
		Tensor: root, Offset: c.s.Simplify(offset), Value: value,
		Guarded: c.g.partition.Guards(root),
	}
}
