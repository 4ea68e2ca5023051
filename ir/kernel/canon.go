package kernel

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Cache remembers the kernels of groups, so that equal groups, such as those of
// equal layers, are scheduled once and share their kernels. Programs that are
// compiled together share a cache; it must not be used by two goroutines at
// once.
type Cache struct{ launches map[string][]canonicalLaunch }

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{map[string][]canonicalLaunch{}} }

// canonicalLaunch is a launch with its tensors named by their place in the group.
type canonicalLaunch struct {
	kernel *Kernel
	args   []canonicalArg
}

// canonicalArg is what a storage array is bound to: an operand of the group by
// its number, scratch memory between the group's kernels, or the status words.
type canonicalArg struct {
	kind    argKind
	number  int
	scratch ir.Type
	name    string
}

type argKind uint8

const (
	operandArg argKind = iota
	scratchArg
	statusArg
)

// canon writes down all of a group that its kernels depend on: what its members
// compute, from operands named by the order in which they come up. Two groups
// with one text have the same kernels.
type canon struct {
	p        *Program
	text     []byte
	operands []*Tensor // those that hold the memory, in order
	number   map[*Tensor]int
	members  map[*ir.Node]int
	nodes    map[*ir.Node]int // virtual nodes that are written already
}

func canonOf(g *Group, d Device) *canon {
	c := &canon{p: g.program, number: map[*Tensor]int{}, members: map[*ir.Node]int{}, nodes: map[*ir.Node]int{}}
	c.ints(d.Threads, d.SharedBytes, d.Groups, d.ArrayBytes, c.p.depth(), len(g.parts()))
	for _, part := range g.parts() {
		c.group(part)
	}
	return c
}

func (c *canon) group(g *Group) {
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

func (c *canon) member(m *Member) {
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
func (c *canon) node(n *ir.Node) {
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

func (c *canon) value(v ir.Value) {
	n := v.Node()
	if i, ok := c.members[n]; ok {
		c.tag('m')
		c.ints(i, v.Index())
		return
	}
	if e, ok := c.p.literal(v); ok {
		c.tag('l')
		c.string(scalar.Key(e))
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

// tensor writes the number of the tensor that holds the memory of t, and the way
// there.
func (c *canon) tensor(t *Tensor) {
	for ; t.Outer != nil; t = t.Outer {
		c.tag('o')
		c.bool(t.PerStep)
		c.bool(t.Reverse)
		c.ints(int(t.DType))
		c.list(t.Dims)
	}
	i, known := c.number[t]
	if !known {
		i = len(c.operands)
		c.number[t] = i
		c.operands = append(c.operands, t)
		c.ints(int(t.DType))
		c.list(t.Dims)
	}
	c.ints(i)
}

// stored writes what else counts of a tensor that is written.
func (c *canon) stored(t *Tensor) {
	for t.Outer != nil {
		t = t.Outer
	}
	c.bool(t.Persistent() && c.p.guarded())
}

func (c *canon) tag(b byte) { c.text = append(c.text, b) }

func (c *canon) bool(b bool) {
	if b {
		c.tag('1')
	} else {
		c.tag('0')
	}
}

func (c *canon) ints(xs ...int) {
	for _, x := range xs {
		c.text = append(strconv.AppendInt(c.text, int64(x), 10), ' ')
	}
}

func (c *canon) list(xs []int) {
	c.ints(len(xs))
	c.ints(xs...)
}

func (c *canon) string(s string) {
	c.ints(len(s))
	c.text = append(c.text, s...)
}

func (c *canon) dtype(t ir.Type) {
	dims, _ := t.Shape.Ints()
	c.ints(int(t.DType))
	c.list(dims)
}

// remember returns launches with their tensors named by their place.
func (c *canon) remember(launches []Launch) []canonicalLaunch {
	out := make([]canonicalLaunch, len(launches))
	scratch := map[*Tensor]int{}
	for i, l := range launches {
		out[i].kernel = l.Kernel
		for _, t := range l.Args {
			arg := canonicalArg{kind: statusArg}
			if n, ok := c.number[t]; ok {
				arg = canonicalArg{kind: operandArg, number: n}
			} else if t != nil {
				if _, known := scratch[t]; !known {
					scratch[t] = len(scratch)
				}
				arg = canonicalArg{scratchArg, scratch[t], ir.Type{DType: t.DType, Shape: ir.Dims(t.Dims...)}, t.Name}
			}
			out[i].args = append(out[i].args, arg)
		}
	}
	return out
}

// recall returns remembered launches for the group of c, with scratch memory of
// its own.
func (c *canon) recall(launches []canonicalLaunch) []Launch {
	out := make([]Launch, len(launches))
	scratch := map[int]*Tensor{}
	for i, l := range launches {
		out[i] = Launch{l.kernel, make([]*Tensor, len(l.args))}
		for j, arg := range l.args {
			switch arg.kind {
			case operandArg:
				out[i].Args[j] = c.operands[arg.number]
			case scratchArg:
				if scratch[arg.number] == nil {
					scratch[arg.number] = c.p.newTensor(arg.name, arg.scratch)
				}
				out[i].Args[j] = scratch[arg.number]
			}
		}
	}
	return out
}
