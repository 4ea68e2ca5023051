package scalar

import "github.com/rlx-go/rlx/ir/dtype"

// integer applies the rules of integer arithmetic.
func (s *Simplifier) integer(n *Node) Expr {
	switch n.Op {
	case OpNeg, OpAdd, OpSub, OpMul, OpShl:
		if r := s.span(n); r.wraps || !r.known {
			return s.wrapping(n)
		}
		if l := s.linear(n); len(l.terms) != 1 || l.terms[0].atom != n {
			return s.emit(l, n.Type)
		}
	case OpDiv, OpFloorDiv, OpRem, OpMod:
		return s.division(n)
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
		switch r := s.span(n.Args[0]); {
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
