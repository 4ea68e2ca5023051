package kernel

import (
	"strconv"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// reader turns values into the scalar expressions of their elements. Values
// that the program keeps no tensor for are replaced by their own expression,
// which is how elementwise code and views are fused.
type reader struct {
	p *Program
	s *scalar.Simplifier
	// given holds values whose element at hand is a variable of the kernel.
	given map[ir.Value]scalar.Expr
	// local gives what the kernel has at hand for a value at a position.
	local func(v ir.Value, at ir.Index) (scalar.Expr, bool)
	// note, where set, is told of each access to a value that has a tensor.
	note   func(v ir.Value, at ir.Index)
	checks bool // an index was checked on the way
	memo   map[elementKey]scalar.Expr
}

// elementKey is a value at a position. Positions are told apart by their
// expressions' pointers, which a chain of elementwise ops hands on unchanged.
type elementKey struct {
	v  ir.Value
	at [maxMemoRank]scalar.Expr
}

const maxMemoRank = 6

func newReader(p *Program, s *scalar.Simplifier) *reader {
	return &reader{p: p, s: s, memo: map[elementKey]scalar.Expr{}}
}

// element returns the element of v at a position.
func (r *reader) element(v ir.Value, at ir.Index) scalar.Expr {
	key, memo := elementKey{v: v}, len(at) <= maxMemoRank
	if memo {
		copy(key.at[:], at)
		if e, ok := r.memo[key]; ok {
			return e
		}
	}
	e := r.compute(v, at)
	if memo {
		r.memo[key] = e
	}
	return e
}

// inGroup lets the reader compute members of a group, other than reductions, at
// a point of the group. What known tells comes first.
func (r *reader) inGroup(g *Group, point ir.Index, known func(v ir.Value) (scalar.Expr, bool)) *reader {
	r.local = func(v ir.Value, _ ir.Index) (scalar.Expr, bool) {
		if x, ok := known(v); ok {
			return x, true
		}
		if m := g.member(v); m != nil && !m.Reduced {
			return r.body(m.Node, v.Index(), pick(point, m.Coord)), true
		}
		return nil, false
	}
	return r
}

func (r *reader) compute(v ir.Value, at ir.Index) scalar.Expr {
	if e, ok := r.given[v]; ok {
		return e
	}
	if r.local != nil {
		if e, ok := r.local(v, at); ok {
			return e
		}
	}
	n := v.Node()
	if r.p.plan.stored(n) {
		if r.note != nil {
			r.note(v, at)
			return scalar.LoadAt(0, v.DType(), scalar.ConstI(ir.I32, 0))
		}
		return r.p.tensors[v].load(r.s, r.p.depth(), at)
	}
	if e, ok := r.p.literal(v); ok {
		return e
	}
	return r.body(n, v.Index(), at)
}

// body returns the element of a result of a node computed from its operands.
func (r *reader) body(n *ir.Node, result int, at ir.Index) scalar.Expr {
	e := r.plainBody(n, result, at)
	if n.Op() == ops.OpCheckIndex && e.Op == scalar.OpCheck {
		r.checks = true
		return r.p.checked(n, e)
	}
	return e
}

func (r *reader) plainBody(n *ir.Node, result int, at ir.Index) scalar.Expr {
	d := n.Def()
	if d.Scalar == nil {
		return d.Lower.(*ir.MapLowering).Element(n, result, at, r.operand(n))
	}
	x := make([]scalar.Expr, len(n.Inputs()))
	for i, in := range n.Inputs() {
		x[i] = r.element(in, at)
	}
	return d.Scalar(n, x)
}

// operand returns the load function of a node's operands.
func (r *reader) operand(n *ir.Node) ir.Load {
	return func(operand int, at ir.Index) scalar.Expr {
		return r.element(n.Input(operand), simplifyAll(r.s, at))
	}
}

// checked gives a check its status code, which tells the node.
func (p *Program) checked(n *ir.Node, e scalar.Expr) scalar.Expr {
	return scalar.Check(e.Args[0], e.Args[1], p.code(n))
}

// code returns the status code of a node that checks an index.
func (p *Program) code(n *ir.Node) int {
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

// load returns the load of the element of t at a position; depth is how many
// loops the kernel runs in.
func (t *Tensor) load(s *scalar.Simplifier, depth int, at ir.Index) scalar.Expr {
	root, offset := t.resolve(depth, linear(t.Dims, at))
	return scalar.LoadAt(root.ID, t.DType, s.Simplify(offset))
}

// resolve goes from an element of t to the same element of the tensor that
// holds its memory, out through the loops around it.
func (t *Tensor) resolve(depth int, offset scalar.Expr) (*Tensor, scalar.Expr) {
	for ; t.Outer != nil; t = t.Outer {
		depth--
		if !t.PerStep {
			continue
		}
		count := Counter(depth)
		if t.Reverse {
			count = scalar.Sub(scalar.ConstI(ir.I32, int64(t.Outer.Dims[0]-1)), count)
		}
		step := scalar.ConstI(ir.I32, int64(t.Len()))
		offset = scalar.Add(scalar.Mul(count, step), offset)
	}
	return t, offset
}

// linear returns the place in row-major order of a position.
func linear(dims []int, at ir.Index) scalar.Expr {
	offset := scalar.ConstI(ir.I32, 0)
	stride := 1
	for i := len(dims) - 1; i >= 0; i-- {
		offset = scalar.Add(scalar.Mul(at[i], scalar.ConstI(ir.I32, int64(stride))), offset)
		stride *= dims[i]
	}
	return offset
}

// literal returns the expression of a value that is the same everywhere and
// known without memory: a run scalar, or a constant whose elements are all
// equal.
func (p *Program) literal(v ir.Value) (scalar.Expr, bool) {
	e, ok := p.plan.literals[v]
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

// coords returns one variable for each axis, named by prefix and place, and
// the constant 0 for axes of size 1.
func coords(prefix string, dims []int) ir.Index {
	at := make(ir.Index, len(dims))
	for i, d := range dims {
		if d == 1 {
			at[i] = scalar.ConstI(ir.I32, 0)
			continue
		}
		at[i] = scalar.NewVar(prefix+strconv.Itoa(i), ir.I32, 0, int64(max(d-1, 0)))
	}
	return at
}

func simplifyAll(s *scalar.Simplifier, at ir.Index) ir.Index {
	out := make(ir.Index, len(at))
	for i, e := range at {
		if e.Op == scalar.OpVar || e.Op == scalar.OpConst {
			out[i] = e
			continue
		}
		out[i] = s.Simplify(e)
	}
	return out
}
