package scalar

import "github.com/rlx-go/rlx/ir/dtype"

// Wrapping returns e with the operations on signed integers that may leave the
// range of their type done on unsigned ones and converted back, which wraps as
// the operation is defined to: C and its relatives leave the overflow of a
// signed integer undefined, and their compilers take x + 1 > x for true. What
// the ranges of variables prove to fit, as positions do, stays as it is. e has
// been expanded.
func (s *Simplifier) Wrapping(e Expr) Expr {
	var done memo[Expr]
	var visit func(n *Node) Expr
	visit = func(n *Node) Expr {
		r, known := done.at(n)
		if known {
			return *r
		}
		*r = withArgs(n, visit)
		if s.mayOverflow(n) {
			*r = unsigned(*r)
		}
		return *r
	}
	return visit(s.in.tree(e))
}

// MayOverflow reports whether an operation on signed integers in e may leave the
// range of its type, as far as the ranges of variables tell.
func (s *Simplifier) MayOverflow(e Expr) bool {
	found := false
	Walk(s.in.tree(e), func(n Expr) { found = found || s.mayOverflow(n) })
	return found
}

// mayOverflow reports whether C leaves the operation of the interned node n
// undefined for some values of its operands.
func (s *Simplifier) mayOverflow(n *Node) bool {
	if !n.Type.IsSigned() {
		return false
	}
	switch n.Op {
	case OpAdd, OpSub, OpMul, OpNeg, OpAbs:
		return s.span(n).wraps
	case OpShl:
		return s.span(n).wraps || s.span(n.Args[0]).lo < 0
	}
	return false
}

// unsigned returns an operation on signed integers done on unsigned ones.
func unsigned(n *Node) Expr {
	t, u := n.Type, n.Type.Unsigned()
	x := bitsAs(u, n.Args[0])
	switch n.Op {
	case OpNeg:
		return Convert(Sub(Const(u, 0), x), t)
	case OpAbs:
		return Select(Lt(n.Args[0], Const(t, 0)), Convert(Sub(Const(u, 0), x), t), n.Args[0])
	}
	return Convert(New(n.Op, x, bitsAs(u, n.Args[1])), t)
}

// bitsAs returns a signed integer as the unsigned type u of its width: what it
// was converted from, if that is of this type.
func bitsAs(u dtype.DType, x Expr) Expr {
	if x.Op == OpConvert && x.Args[0].Type == u {
		return x.Args[0]
	}
	return Convert(x, u)
}
