package scalar

import (
	"github.com/rlx-go/rlx/ir/dtype"
)

// Simplify returns an expression that equals e for all values of its leaves within their ranges. It
//
//   - rewrites sums of integers that cannot wrap as sums of terms with constant coefficients, in canonical order;
//   - simplifies divisions and remainders by constants: with 0 ≤ j < n, (i·n + j)/n is i and (i·n + j)%n is j, and the quotient and remainder of x by n
//     recombine to x;
//   - resolves comparisons, Min, Max, Abs and Select by ranges;
//   - orders operands that commute, and shares equal subexpressions.
//
// Floating-point arithmetic is unchanged except for the order of commuting operands. Simplify
// visits each shared node once. The result does not wrap if e does not, but intermediate values
// may: 64·j - 16 for 4·(16·j - 4), near the end of a type's range.
func Simplify(e Expr) Expr {
	return NewSimplifier().Simplify(e)
}

// Simplifier simplifies expressions with common parts, such as the positions of one kernel. It
// caches facts about each part and returns one node for equal structures. Earlier expressions do
// not change the value of later results, but may make them shorter.
type Simplifier struct{ in *interner }

// NewSimplifier returns a Simplifier with an empty cache.
func NewSimplifier() *Simplifier {
	return &Simplifier{newInterner()}
}

// Shared returns the Simplifier's node with the structure of e: expressions that are Equal become
// one pointer, as in results of Simplify.
func (s *Simplifier) Shared(e Expr) Expr { return s.in.intern(e) }

// Simplify is [Simplify] with the facts cached by s.
func (s *Simplifier) Simplify(e Expr) Expr {
	if e.Op == OpConst || e.Op == OpArg {
		return e
	}
	return s.simplify(s.in.intern(e))
}

// fact is the known facts about a node.
type fact struct {
	simple   Expr // the simplified form, nil until it is known
	interval interval
	sum      linear
	ranged   bool   // interval is valid
	summed   bool   // sum is valid
	hash     uint32 // of its structure
}

// fact returns the facts of the interned node n.
func (s *Simplifier) fact(n *Node) *fact { return &n.own.fact }

// simplify returns the simplified form of the interned node n.
func (s *Simplifier) simplify(n *Node) Expr {
	f := s.fact(n)
	if f.simple == nil {
		f.simple = s.finish(s.rebuilt(n))
	}
	return f.simple
}

// rebuilt simplifies the operands of an interned node and applies its constructor.
func (s *Simplifier) rebuilt(n *Node) Expr {
	var args [3]Expr
	changed := false
	for i, a := range n.Args {
		args[i] = s.simplify(a)
		changed = changed || args[i] != a
	}
	switch {
	case n.Op.isLeaf():
		return n
	case n.Op.info().result == ofNode:
		return Rebuild(n, args[:len(n.Args)]...)
	case changed:
		return s.construct(n.Op, args[:len(n.Args)]...)
	}
	if e := reduce(n); e != nil {
		return e
	}
	return n
}

// node returns op on simplified operands, simplified.
func (s *Simplifier) node(op Op, args ...Expr) Expr { return s.finish(s.construct(op, args...)) }

// construct is [New] for the Simplifier's nodes; it reuses existing nodes.
func (s *Simplifier) construct(op Op, args ...Expr) *Node {
	if mixesWidths(args) {
		return s.in.intern(New(op, args...))
	}
	checkOperands(op, args)
	n := Node{Op: op, Type: resultType(op, args[len(args)-1].Type), Args: args}
	if e := reduce(&n); e != nil {
		return s.in.intern(e)
	}
	return s.in.node(&n)
}

// finish interns a node made by a constructor from simplified operands and applies the rules to it.
// If an identity made the node deeper than one level, the operands are simplified first.
func (s *Simplifier) finish(e Expr) Expr {
	n := s.in.intern(e)
	f := s.fact(n)
	if f.simple != nil {
		return f.simple
	}
	for _, a := range n.Args {
		if s.fact(a).simple == nil {
			return s.simplify(n)
		}
	}
	f.simple = s.rules(n)
	s.fact(f.simple).simple = f.simple
	return f.simple
}

// rules applies the rules for the operation of n, whose operands are simplified, and returns a
// simplified node.
func (s *Simplifier) rules(n *Node) Expr {
	if r := s.interval(n); r.isPoint() && n.Op != OpConst && n.Op != OpCheck {
		return s.in.intern(constant(n.Type, Value{I: r.lo}))
	}
	switch {
	case n.Op == OpSelect:
		return s.selection(n)
	case n.Op == OpNot && n.Type.IsBool():
		return s.negation(n)
	case n.Op.isCompare():
		return s.comparison(n)
	case n.Op == OpConvert && n.Type.IsInteger():
		return s.conversion(n)
	case n.Type.IsInteger():
		return s.integer(n)
	}
	return s.commuted(n)
}

// commuted orders the operands of a commuting operation: constants last, else by structure.
func (s *Simplifier) commuted(n *Node) Expr {
	if !n.Op.Commutes() {
		return n
	}
	a, b := n.Args[0], n.Args[1]
	_, aConst := a.Value()
	_, bConst := b.Value()
	if aConst == bConst && compareNodes(a, b) <= 0 || bConst && !aConst {
		return n
	}
	return s.in.operation(n.Op, n.Type, n.Ref, []Expr{b, a})
}

// selection removes a condition that an operand implies.
func (s *Simplifier) selection(n *Node) Expr {
	cond, a, b := n.Args[0], n.Args[1], n.Args[2]
	switch {
	case a.Op == OpSelect && a.Args[0] == cond:
		return s.node(OpSelect, cond, a.Args[1], b)
	case b.Op == OpSelect && b.Args[0] == cond:
		return s.node(OpSelect, cond, a, b.Args[2])
	}
	if v, ok := b.IntConst(); ok && a.Type.IsInteger() {
		if r := s.rangeUnder(cond, a); r.known && r.lo == v && r.hi == v {
			return b // a position that is clamped to a space of size one
		}
	}
	return n
}

// rangeUnder returns the range of an integer under a condition that compares it with constants.
func (s *Simplifier) rangeUnder(cond, x Expr) interval {
	r := s.interval(x)
	switch {
	case cond.Op == OpAnd:
		a, b := s.rangeUnder(cond.Args[0], x), s.rangeUnder(cond.Args[1], x)
		r.lo, r.hi = max(a.lo, b.lo), min(a.hi, b.hi)
	case cond.Op == OpLe && cond.Args[0] == x:
		if c, ok := cond.Args[1].IntConst(); ok {
			r.hi = min(r.hi, c)
		}
	case cond.Op == OpLe && cond.Args[1] == x:
		if c, ok := cond.Args[0].IntConst(); ok {
			r.lo = max(r.lo, c)
		}
	}
	return r
}

// negation replaces the negation of a comparison by the opposite comparison. Lt and Le have no
// opposite for floats, where NaN makes both false.
func (s *Simplifier) negation(n *Node) Expr {
	c := n.Args[0]
	switch {
	case c.Op == OpEq:
		return s.node(OpNe, c.Args...)
	case c.Op == OpNe:
		return s.node(OpEq, c.Args...)
	case c.Op == OpLt && c.Args[0].Type.IsInteger():
		return s.node(OpLe, c.Args[1], c.Args[0])
	case c.Op == OpLe && c.Args[0].Type.IsInteger():
		return s.node(OpLt, c.Args[1], c.Args[0])
	}
	return n
}

// comparison replaces Gt and Ge by Lt and Le. Comparisons that ranges decide are already constants.
func (s *Simplifier) comparison(n *Node) Expr {
	switch n.Op {
	case OpGt:
		return s.node(OpLt, n.Args[1], n.Args[0])
	case OpGe:
		return s.node(OpLe, n.Args[1], n.Args[0])
	}
	return s.commuted(n)
}

// decide returns the result of a comparison of integers if the range of the difference of its
// operands determines it.
func (s *Simplifier) decide(n *Node) (result, ok bool) {
	a, b := n.Args[0], n.Args[1]
	d, fits := combine(s.linear(a), s.linear(b), -1)
	r := s.intervalLinear(d)
	if !fits || !r.known {
		return false, false
	}
	at := func(x int64) bool { return compare(n.Op, x, 0) }
	if n.Op == OpEq || n.Op == OpNe {
		if r.lo <= 0 && r.hi >= 0 && !r.isPoint() {
			return false, false
		}
		return at(r.lo), true
	}
	return at(r.lo), at(r.lo) == at(r.hi)
}

// conversion removes a conversion to an integer type that holds the value, and back.
func (s *Simplifier) conversion(n *Node) Expr {
	a := n.Args[0]
	if a.Op == OpConvert && a.Args[0].Type == n.Type && int64Range(a.Type).contains(s.interval(a.Args[0])) {
		return a.Args[0]
	}
	return n
}

// integer applies the rules of integer arithmetic.
func (s *Simplifier) integer(n *Node) Expr {
	switch n.Op {
	case OpNeg, OpAdd, OpSub, OpMul, OpShl:
		if r := s.interval(n); r.wraps || !r.known {
			return s.wrapping(n)
		}
		if l := s.linear(n); len(l.terms) != 1 || l.terms[0].atom != n {
			return s.emit(l, n.Type)
		}
	case OpDiv, OpFloorDiv, OpRem, OpMod:
		return divisions{s}.division(n)
	case OpMin, OpMax:
		a, b := n.Args[0], n.Args[1]
		if n.Op == OpMax {
			a, b = b, a
		}
		switch {
		case s.ordered(a, b):
			return n.Args[0]
		case s.ordered(b, a):
			return n.Args[1]
		}
	case OpClamp:
		x, lo, hi := n.Args[0], n.Args[1], n.Args[2]
		return s.node(OpMin, s.node(OpMax, x, lo), hi)
	case OpAbs:
		switch r := s.interval(n.Args[0]); {
		case r.known && r.lo >= 0:
			return n.Args[0]
		case r.known && r.hi <= 0:
			return s.node(OpNeg, n.Args[0])
		}
	}
	return s.commuted(n)
}

// ordered reports whether ranges prove a ≤ b.
func (s *Simplifier) ordered(a, b Expr) bool {
	r, ok := s.decide(&Node{Op: OpLe, Type: dtype.Bool, Args: []Expr{a, b}})
	return ok && r
}

// wrapping merges the constants of sums that may wrap, (x + c) + d, and does not reorder other
// terms: that would undo the sharing in hash functions, which compute in many steps.
func (s *Simplifier) wrapping(n *Node) Expr {
	if n.Op != OpAdd && n.Op != OpSub {
		return s.commuted(n)
	}
	a, b := n.Args[0], n.Args[1]
	if _, ok := a.IntConst(); ok && n.Op == OpAdd {
		a, b = b, a
	}
	d, ok := b.IntConst()
	if !ok {
		return s.commuted(n)
	}
	if n.Op == OpSub {
		d = -d
	}
	if a.Op == OpAdd {
		if c, ok := a.Args[1].IntConst(); ok {
			return s.node(OpAdd, a.Args[0], ConstI(n.Type, c+d))
		}
	}
	if n.Op == OpSub {
		return s.node(OpAdd, a, ConstI(n.Type, d))
	}
	return s.commuted(n)
}
