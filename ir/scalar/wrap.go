package scalar

import "github.com/rlx-go/rlx/ir/dtype"

// Wrapping returns e with signed integer operations that may overflow computed on unsigned integers
// and converted back, so that they wrap: signed overflow is undefined in C and its relatives, whose
// compilers take x + 1 > x for true. Operations that provably fit by the ranges of variables, such
// as positions, are unchanged. e must be expanded.
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
	return visit(s.in.intern(e))
}

// MayOverflow reports whether a signed integer operation in e may overflow, given the ranges of
// variables.
func (s *Simplifier) MayOverflow(e Expr) bool {
	found := false
	Walk(s.in.intern(e), func(n Expr) { found = found || s.mayOverflow(n) })
	return found
}

// mayOverflow reports whether the interned node n is undefined in C for some values of its
// operands.
func (s *Simplifier) mayOverflow(n *Node) bool {
	if !n.Type.IsSigned() {
		return false
	}
	switch n.Op {
	case OpAdd, OpSub, OpMul, OpNeg, OpAbs:
		return s.interval(n).wraps
	case OpShl:
		return s.interval(n).wraps || s.interval(n.Args[0]).lo < 0
	}
	return false
}

// unsigned returns an operation on signed integers computed on unsigned ones.
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

// bitsAs returns a signed integer as the unsigned type u of its width; if it was converted from u,
// the original.
func bitsAs(u dtype.DType, x Expr) Expr {
	if x.Op == OpConvert && x.Args[0].Type == u {
		return x.Args[0]
	}
	return Convert(x, u)
}
