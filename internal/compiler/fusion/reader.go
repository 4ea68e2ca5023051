package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Reader turns values into the scalar expressions of their elements. Values
// that the partition keeps no tensor for are replaced by their own expression,
// which is how elementwise code and views are fused.
type Reader struct {
	// Given holds values whose element at hand is a variable of the kernel.
	Given map[ir.Value]scalar.Expr

	p *Partition
	s *scalar.Simplifier
	// local gives what the kernel has at hand for a value at a position.
	local func(v ir.Value, at ir.Index) (scalar.Expr, bool)
	// note, where set, is told of each access to a value that has a tensor.
	note   func(v ir.Value, at ir.Index)
	checks bool // an index was checked on the way
	memo   elementMemo
}

// elementMemo holds the elements that a reader has written out. Most readers are for one
// node and see few, which are found faster without a table.
type elementMemo struct {
	entries []elementEntry
	// heads has by hash the last entry of that hash, counted from 1, where there are more
	// than maxFew.
	heads []int32
}

type elementEntry struct {
	key  elementKey
	e    scalar.Expr
	next int32 // the entry before it with its hash, as heads has them
}

// maxFew is how many elements are looked for one after the other.
const maxFew = 8

func (m *elementMemo) get(key *elementKey) (scalar.Expr, bool) {
	if m.heads == nil {
		for i := range m.entries {
			if m.entries[i].key == *key {
				return m.entries[i].e, true
			}
		}
		return nil, false
	}
	for i := *m.head(key); i > 0; i = m.entries[i-1].next {
		if m.entries[i-1].key == *key {
			return m.entries[i-1].e, true
		}
	}
	return nil, false
}

func (m *elementMemo) set(key *elementKey, e scalar.Expr) {
	m.entries = append(m.entries, elementEntry{key: *key, e: e})
	switch n := len(m.entries); {
	case n <= maxFew:
	case n > len(m.heads):
		m.heads = make([]int32, 4*n)
		for i := range m.entries {
			m.link(i)
		}
	default:
		m.link(n - 1)
	}
}

func (m *elementMemo) link(i int) {
	head := m.head(&m.entries[i].key)
	m.entries[i].next, *head = *head, int32(i+1)
}

func (m *elementMemo) head(key *elementKey) *int32 {
	h := uint32(key.v.Node().ID()*8 + key.v.Index())
	for _, x := range key.at {
		if x == nil {
			break
		}
		h = h*31 + x.Mark()
	}
	return &m.heads[h%uint32(len(m.heads))]
}

// elementKey is a value at a position. Positions are told apart by their
// expressions' pointers, which a chain of elementwise ops hands on unchanged.
type elementKey struct {
	v  ir.Value
	at [maxMemoRank]scalar.Expr
}

// maxMemoRank is up to how many axes positions are remembered: keys are arrays of one
// length, so that they can be compared. Elements at others are found anew.
const maxMemoRank = 6

// NewReader returns a reader of the values of a partition for one kernel, which
// simplifies positions with s.
func NewReader(p *Partition, s *scalar.Simplifier) *Reader {
	return &Reader{p: p, s: s}
}

// Element returns the element of v at a position.
func (r *Reader) Element(v ir.Value, at ir.Index) scalar.Expr {
	key, memo := elementKey{v: v}, len(at) <= maxMemoRank
	if memo {
		copy(key.at[:], at)
		if e, ok := r.memo.get(&key); ok {
			return e
		}
	}
	e := r.compute(v, at)
	if memo {
		r.memo.set(&key, e)
	}
	return e
}

// InGroup lets the reader compute members of a group, other than reductions, at
// a point of the group. What known tells comes first.
func (r *Reader) InGroup(g *Group, point ir.Index, known func(v ir.Value) (scalar.Expr, bool)) *Reader {
	r.local = func(v ir.Value, _ ir.Index) (scalar.Expr, bool) {
		if x, ok := known(v); ok {
			return x, true
		}
		if m := g.member(v); m != nil && !m.Reduced {
			return r.Body(m.Node, v.Index(), m.At(point)), true
		}
		return nil, false
	}
	return r
}

func (r *Reader) compute(v ir.Value, at ir.Index) scalar.Expr {
	if e, ok := r.Given[v]; ok {
		return e
	}
	if r.local != nil {
		if e, ok := r.local(v, at); ok {
			return e
		}
	}
	n := v.Node()
	if r.p.decided.stored(n) {
		if r.note != nil {
			r.note(v, at)
			return scalar.LoadAt(0, v.DType(), scalar.ConstI(ir.I32, 0))
		}
		return r.p.Load(r.s, r.p.tensors[v], at)
	}
	if e, ok := r.p.literal(v); ok {
		return e
	}
	return r.Body(n, v.Index(), at)
}

// Body returns the element of a result of a node computed from its operands.
func (r *Reader) Body(n *ir.Node, result int, at ir.Index) scalar.Expr {
	e := r.plainBody(n, result, at)
	if n.Op() == ops.OpCheckIndex && e.Op == scalar.OpCheck {
		r.checks = true
		return r.p.checked(n, e)
	}
	return e
}

func (r *Reader) plainBody(n *ir.Node, result int, at ir.Index) scalar.Expr {
	d := n.Def()
	if d.Scalar == nil {
		return d.Lower.(*ir.MapLowering).Element(n, result, at, r.Operand(n))
	}
	x := make([]scalar.Expr, len(n.Inputs()))
	for i, in := range n.Inputs() {
		x[i] = r.Element(in, at)
	}
	return d.Scalar(n, x)
}

// Operand returns the load function of a node's operands.
func (r *Reader) Operand(n *ir.Node) ir.Load {
	return func(operand int, at ir.Index) scalar.Expr {
		return r.Element(n.Input(operand), simplifyAll(r.s, at))
	}
}

// checked gives a check its status code, which tells the node.
func (p *Partition) checked(n *ir.Node, e scalar.Expr) scalar.Expr {
	return scalar.Check(e.Args[0], e.Args[1], p.code(n))
}

// code returns the status code of a node that checks an index.
func (p *Partition) code(n *ir.Node) int {
	for p.parent != nil {
		p = p.parent
	}
	for i, c := range p.Checks {
		if c == n {
			return p.options.FirstCode + i
		}
	}
	p.Checks = append(p.Checks, n)
	return p.options.FirstCode + len(p.Checks) - 1
}

// literal returns the expression of a value that is the same everywhere and
// known without memory: a run scalar, or a constant whose elements are all
// equal.
func (p *Partition) literal(v ir.Value) (scalar.Expr, bool) {
	e, ok := p.decided.literals[v]
	if ok && p.words != nil {
		if word, is := p.words[scalar.Key(e)]; is {
			return word, true
		}
	}
	return e, ok
}

// splat returns the constant that all elements of a literal are.
func splat(a *ir.ConstantAttrs) (scalar.Expr, bool) {
	size := a.Type.DType.Size()
	if size == 0 || len(a.Data) < size {
		return nil, false
	}
	for i, b := range a.Data {
		if b != a.Data[i%size] {
			return nil, false
		}
	}
	x, err := ir.ArrayOf(ir.Type{DType: a.Type.DType}, a.Data[:size])
	if err != nil {
		return nil, false
	}
	switch {
	case x.C != nil:
		return scalar.ConstC(x.DType, x.C[0]), true
	case x.F != nil:
		return scalar.ConstF(x.DType, x.F[0]), true
	case x.DType == ir.Bool:
		return scalar.ConstBool(x.I[0] != 0), true
	}
	return scalar.ConstI(x.DType, x.I[0]), true
}
