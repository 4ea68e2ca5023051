package fusion

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Reader returns the scalar expressions of the elements of values. A stored value is a
// load; any other is replaced by its own expression, which fuses elementwise code and
// views.
type Reader struct {
	// Given holds values whose current element is a variable of the kernel.
	Given map[ir.Value]scalar.Expr

	p *Partition
	s *scalar.Simplifier
	// local returns a value's element that the kernel has already, if any.
	local func(v ir.Value, at ir.Index) (scalar.Expr, bool)
	// note, if set, is called for each access to a stored value instead of a load.
	note   func(v ir.Value, at ir.Index)
	checks bool // an expression contained an index check
	memo   elementMemo
}

// elementMemo caches the elements a reader has expanded. Most readers see a few
// elements, which a linear search finds faster than a hash table.
type elementMemo struct {
	entries []elementEntry
	// heads is the hash table, used beyond maxFew entries: by hash the index of the
	// last entry, counted from 1.
	heads []int32
}

type elementEntry struct {
	key  elementKey
	e    scalar.Expr
	next int32 // the previous entry with the same hash, counted from 1
}

// maxFew is the number of elements up to which the search is linear.
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

// elementKey is a value at a position. Positions are compared by the pointers of their
// expressions, which a chain of elementwise ops passes on unchanged.
type elementKey struct {
	v  ir.Value
	at [maxMemoRank]scalar.Expr
}

// maxMemoRank is the rank up to which elements are cached: keys are comparable, so their
// arrays have a fixed length.
const maxMemoRank = 6

// NewReader returns a reader for one kernel of a partition; s simplifies positions.
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

// InGroup makes the reader compute members of a group, except reductions, at a point of
// the group. Values that known returns come first.
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

// Body returns the element of a node's result computed from its operands.
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
	switch l := d.Lower.(type) {
	case *ir.MapLowering:
		return l.Element(n, result, at, r.Operand(n))
	case *ir.ScatterLowering:
		return scatterOf(n).element(at, r.Operand(n))
	case *ir.ReduceLowering:
		if withTensorCores {
			return unrolled(r, n, l, at)
		}
	}
	x := make([]scalar.Expr, len(n.Inputs()))
	for i, in := range n.Inputs() {
		x[i] = r.Element(in, at)
	}
	return d.Scalar(n, x)
}

// Operand returns the load function for a node's operands.
func (r *Reader) Operand(n *ir.Node) ir.Load {
	return func(operand int, at ir.Index) scalar.Expr {
		return r.Element(n.Input(operand), simplifyAll(r.s, at))
	}
}

// checked gives a check the status code of its node.
func (p *Partition) checked(n *ir.Node, e scalar.Expr) scalar.Expr {
	return scalar.Check(e.Args[0], e.Args[1], p.code(n))
}

// literal returns the expression of a value that needs no memory: a run scalar, or a
// constant with equal elements.
func (p *Partition) literal(v ir.Value) (scalar.Expr, bool) {
	e, ok := p.decided.literals[v]
	if ok && p.words != nil {
		if word, is := p.words[scalar.Key(e)]; is {
			return word, true
		}
	}
	return e, ok
}

// splat returns the value of a constant whose elements are all equal.
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
