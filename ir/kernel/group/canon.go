package group

import (
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Canon is all of a group that its kernels depend on, besides the target: what
// its members compute, from operands named by the order in which they come up.
type Canon struct {
	// Text is the same for two groups that have the same kernels but for the values
	// of literals.
	Text []byte
	// Literals are those values, in the order in which they come up.
	Literals []Literal
	// Operands are the tensors that hold the memory the group touches, in order.
	Operands []*Tensor

	p       *Program
	number  map[*Tensor]int
	members map[*ir.Node]int
	nodes   map[*ir.Node]int // virtual nodes that are written already
}

// Literal is a number of 32 bits in a group's expressions.
type Literal struct {
	Expr scalar.Expr
	Key  string // that of the expression
}

// CanonOf returns the canonical form of a group.
func CanonOf(g *Group) *Canon {
	c := &Canon{p: g.program, number: map[*Tensor]int{}, members: map[*ir.Node]int{}, nodes: map[*ir.Node]int{}}
	c.ints(c.p.Depth(), len(g.SideBySide()))
	for _, part := range g.SideBySide() {
		c.group(part)
	}
	return c
}

// Operand returns the number of a tensor among the operands.
func (c *Canon) Operand(t *Tensor) (n int, ok bool) {
	n, ok = c.number[t]
	return n, ok
}

func (c *Canon) group(g *Group) {
	c.ints(int(g.Kind), len(g.Members), len(g.Copies))
	c.list(g.Outer)
	c.list(g.Inner)
	for _, m := range g.Members {
		c.members[m.Node] = len(c.members)
	}
	for _, m := range g.Members {
		c.member(m)
	}
	for _, x := range g.Copies {
		c.tensor(x.To)
		c.stored(x.To)
		if x.From != nil {
			c.tensor(x.From)
		} else {
			c.string(scalar.Key(x.Literal))
		}
	}
}

func (c *Canon) member(m *Member) {
	c.bool(m.Reduced)
	c.list(m.Coord)
	c.list(m.Inner)
	c.node(m.Node)
	for _, t := range m.Store {
		c.bool(t != nil)
		if t != nil {
			c.tensor(t)
			c.stored(t)
		}
	}
}

// node writes what a node does and where its operands come from.
func (c *Canon) node(n *ir.Node) {
	c.string(string(n.Op()))
	c.string(ir.FormatAttrs(n.Attrs()))
	for _, g := range n.Subgraphs() {
		c.string(g.String())
	}
	for _, t := range n.Types() {
		c.dtype(t)
	}
	if n.Op() == ops.OpCheckIndex {
		c.ints(c.p.code(n))
	}
	c.ints(len(n.Inputs()))
	for _, v := range n.Inputs() {
		c.value(v)
	}
}

func (c *Canon) value(v ir.Value) {
	n := v.Node()
	if i, ok := c.members[n]; ok {
		c.tag('m')
		c.ints(i, v.Index())
		return
	}
	if e, ok := c.p.literal(v); ok {
		c.literal(e)
		c.dtype(v.Type())
		return
	}
	if c.p.plan.stored(n) {
		c.tag('t')
		c.dtype(v.Type())
		c.tensor(c.p.tensors[v])
		return
	}
	i, known := c.nodes[n]
	if !known {
		i = len(c.nodes)
		c.nodes[n] = i
		c.tag('n')
		c.node(n)
	}
	c.tag('v')
	c.ints(i, v.Index())
}

// literal writes the number of a literal that could be a word in memory as well,
// and of any other its value.
func (c *Canon) literal(e scalar.Expr) {
	key := scalar.Key(e)
	if !isWord(e) {
		c.tag('l')
		c.string(key)
		return
	}
	i := slices.IndexFunc(c.Literals, func(l Literal) bool { return l.Key == key })
	if i < 0 {
		i = len(c.Literals)
		c.Literals = append(c.Literals, Literal{e, key})
	}
	c.tag('w')
	c.ints(int(e.Type), i)
}

// tensor writes the number of the tensor that holds the memory of t, and the way
// there.
func (c *Canon) tensor(t *Tensor) {
	for ; t.Outer != nil; t = t.Outer {
		c.tag('o')
		c.bool(t.PerStep)
		c.bool(t.Reverse)
		c.ints(int(t.DType))
		c.list(t.Dims)
	}
	i, known := c.number[t]
	if !known {
		i = len(c.Operands)
		c.number[t] = i
		c.Operands = append(c.Operands, t)
		c.ints(int(t.DType))
		c.list(t.Dims)
	}
	c.ints(i)
}

// stored writes what else counts of a tensor that is written.
func (c *Canon) stored(t *Tensor) {
	for t.Outer != nil {
		t = t.Outer
	}
	c.bool(c.p.Guards(t))
}

func (c *Canon) tag(b byte) { c.Text = append(c.Text, b) }

func (c *Canon) bool(b bool) {
	if b {
		c.tag('1')
	} else {
		c.tag('0')
	}
}

func (c *Canon) ints(xs ...int) {
	for _, x := range xs {
		c.Text = append(strconv.AppendInt(c.Text, int64(x), 10), ' ')
	}
}

func (c *Canon) list(xs []int) {
	c.ints(len(xs))
	c.ints(xs...)
}

func (c *Canon) string(s string) {
	c.ints(len(s))
	c.Text = append(c.Text, s...)
}

func (c *Canon) dtype(t ir.Type) {
	dims, _ := t.Shape.Ints()
	c.ints(int(t.DType))
	c.list(dims)
}
