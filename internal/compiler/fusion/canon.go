package fusion

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Canon is the canonical form of a group: everything its kernels depend on except
// the target. Operands are numbered in order of first use. Equal texts mean equal
// kernels, so a kernel is made and compiled once.
type Canon struct {
	// Text is equal for groups whose kernels differ at most in the values of
	// literals.
	Text string
	// Literals holds those values in order of first use.
	Literals []Literal
	// Operands holds the root tensors the group accesses, in order of first use.
	Operands []*Tensor

	p *Partition
}

// Literal is a 32-bit number in a group's expressions.
type Literal struct {
	Expr scalar.Expr
	Key  string // that of the expression
}

// CanonOf returns the canonical form of a group.
func CanonOf(g *Group) *Canon { return NewCanons().Of(g) }

// Operand returns the index of a tensor among the operands.
func (c *Canon) Operand(t *Tensor) (n int, ok bool) {
	n = slices.Index(c.Operands, t)
	return n, n >= 0
}

// Canons makes canonical forms and shares the texts of equal ones. It is not safe
// for concurrent use.
type Canons struct {
	texts map[string]string
	keys  map[scalar.Expr]string // of literals

	// State of the current group.
	p        *Partition
	text     []byte
	literals []Literal
	operands []*Tensor
	number   map[*Tensor]int // index among operands
	members  map[*ir.Node]int
	nodes    map[*ir.Node]int // virtual nodes already written
}

// NewCanons returns an empty Canons.
func NewCanons() *Canons {
	return &Canons{
		texts: map[string]string{}, keys: map[scalar.Expr]string{},
		number: map[*Tensor]int{}, members: map[*ir.Node]int{}, nodes: map[*ir.Node]int{},
	}
}

// Of returns the canonical form of a group.
func (c *Canons) Of(g *Group) *Canon {
	c.p, c.text, c.literals, c.operands = g.partition, c.text[:0], c.literals[:0], c.operands[:0]
	clear(c.number)
	clear(c.members)
	clear(c.nodes)
	c.ints(c.p.Depth(), len(g.HorizontalParts()))
	for _, part := range g.HorizontalParts() {
		c.group(part)
	}
	text, known := c.texts[string(c.text)]
	if !known {
		text = string(c.text)
		c.texts[text] = text
	}
	return &Canon{text, slices.Clone(c.literals), slices.Clone(c.operands), c.p}
}

// keyOf returns the key of a literal.
func (c *Canons) keyOf(e scalar.Expr) string {
	key, known := c.keys[e]
	if !known {
		key = scalar.Key(e)
		c.keys[e] = key
	}
	return key
}

func (c *Canons) group(g *Group) {
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
			c.string(c.keyOf(x.Literal))
		}
	}
}

func (c *Canons) member(m *Member) {
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

// node writes the form of a node and its operands.
func (c *Canons) node(n *ir.Node) {
	c.string(c.p.forms.text(n))
	if n.Op() == ops.OpCheckIndex {
		c.ints(c.p.code(n))
	}
	for _, v := range n.Inputs() {
		c.value(v)
	}
}

func (c *Canons) value(v ir.Value) {
	n := v.Node()
	if i, ok := c.members[n]; ok {
		c.tag('m')
		c.ints(i, v.Index())
		return
	}
	if e, ok := c.p.literal(v); ok {
		c.literal(e)
		return
	}
	if c.p.decided.stored(n) {
		if t := c.p.tensors[v]; t != nil {
			c.tag('t')
			c.tensor(t)
		} else { // no kernel reads it
			c.tag('u')
		}
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

// literal writes the index of a literal that a kernel can load as a word from
// memory, and the value of any other.
func (c *Canons) literal(e scalar.Expr) {
	key := c.keyOf(e)
	if !isWord(e) {
		c.tag('l')
		c.string(key)
		return
	}
	i := slices.IndexFunc(c.literals, func(l Literal) bool { return l.Key == key })
	if i < 0 {
		i = len(c.literals)
		c.literals = append(c.literals, Literal{e, key})
	}
	c.tag('w')
	c.ints(int(e.Type), i)
}

// tensor writes the number of t's root tensor and the chain of aliases to it.
func (c *Canons) tensor(t *Tensor) {
	for ; t.Outer != nil; t = t.Outer {
		c.tag('o')
		c.bool(t.PerStep)
		c.bool(t.Reverse)
		c.bool(t.View)
		c.ints(int(t.DType))
		c.list(t.Dims)
		c.strides(t)
	}
	i, known := c.number[t]
	if !known {
		i = len(c.operands)
		c.number[t] = i
		c.operands = append(c.operands, t)
		c.ints(int(t.DType))
		c.list(t.Dims)
		c.strides(t)
	}
	c.ints(i)
}

// strides writes the layout of a tensor that is not row-major.
func (c *Canons) strides(t *Tensor) {
	if l := t.Layout; withTensorCores && l != nil {
		c.tag('s')
		c.ints(l.Base)
		c.list(l.Strides)
	}
}

// stored writes the further properties of a tensor that the group writes.
func (c *Canons) stored(t *Tensor) {
	for t.Outer != nil {
		t = t.Outer
	}
	c.bool(c.p.IsGuarded(t))
}

func (c *Canons) tag(b byte) { c.text = append(c.text, b) }

func (c *Canons) bool(b bool) {
	if b {
		c.tag('1')
	} else {
		c.tag('0')
	}
}

func (c *Canons) ints(xs ...int) {
	for _, x := range xs {
		c.text = append(strconv.AppendInt(c.text, int64(x), 10), ' ')
	}
}

func (c *Canons) list(xs []int) {
	c.ints(len(xs))
	c.ints(xs...)
}

func (c *Canons) string(s string) {
	c.ints(len(s))
	c.text = append(c.text, s...)
}

// isWord reports whether a literal can be loaded from memory as a word. Infinities and NaNs
// cannot, because shading languages assume that loads are finite.
func isWord(e scalar.Expr) bool {
	if e.Op != scalar.OpConst {
		return false
	}
	switch e.Type {
	case ir.F32:
		x := math.Float64frombits(e.Bits)
		return !math.IsNaN(x) && !math.IsInf(x, 0)
	case ir.I32, ir.U32:
		return true
	}
	return false
}

// CanBindMore reports whether the kernels of a group can bind one more tensor.
func (g *Group) CanBindMore() bool {
	switch g.Kind {
	case MapKind, ReduceKind, ContractKind:
		return g.bindings() < g.partition.options.Tensors
	}
	return false
}

// Words are literals of a group that are stored in memory.
type Words struct {
	// Tensor is the constant that holds them.
	Tensor *Tensor

	p     *Partition
	loads map[string]scalar.Expr // by literal key
}

// Words stores the literals selected by which in memory, as one more operand of the group.
// It returns nil if which is nil.
func (c *Canon) Words(which []bool) *Words {
	if which == nil {
		return nil
	}
	w := &Words{p: c.p, Tensor: c.p.newTensor("words", ir.TypeOf(ir.U32)), loads: map[string]scalar.Expr{}}
	for i, l := range c.Literals {
		if which[i] {
			at := scalar.ConstI(ir.I32, int64(len(w.loads)))
			w.loads[l.Key] = scalar.Bitcast(scalar.LoadAt(w.Tensor.ID, ir.U32, at), l.Expr.Type)
			w.Tensor.Constant = binary.LittleEndian.AppendUint32(w.Tensor.Constant, bitsOf(l.Expr))
		}
	}
	w.Tensor.Dims = []int{len(w.loads)}
	c.Operands = append(c.Operands, w.Tensor)
	return w
}

// Read runs f with the literals replaced by loads; w may be nil.
func (w *Words) Read(f func()) {
	if w == nil {
		f()
		return
	}
	before := w.p.words
	w.p.words = w.loads
	defer func() { w.p.words = before }()
	f()
}

// bitsOf returns the bits of a 32-bit literal.
func bitsOf(e scalar.Expr) uint32 {
	if e.Type == ir.F32 {
		return math.Float32bits(float32(math.Float64frombits(e.Bits)))
	}
	return uint32(e.Bits)
}
