package scalar

import "github.com/rlx-go/rlx/ir/dtype"

// divisions are the rules of quotients and remainders by positive constants. They compute floor quotients; a truncated
// quotient is the same for a nonnegative dividend and is not simplified otherwise.
type divisions struct{ *Simplifier }

// division simplifies the quotient or remainder of a sum.
func (s divisions) division(n *Node) Expr {
	a := n.Args[0]
	d, ok := n.Args[1].IntConst()
	r := s.interval(a)
	truncates := n.Op == OpDiv || n.Op == OpRem
	if !ok || d <= 0 || !r.known || truncates && r.lo < 0 {
		return n
	}
	l := s.linear(a)
	if k := divide(OpFloorDiv, r.lo, d); k == divide(OpFloorDiv, r.hi, d) {
		// The quotient is k. A constant quotient was already found by its range.
		if sum, fits := combine(l, linear{c: d}, -k); fits {
			return s.emit(sum, n.Type)
		}
	}
	if n.Op == OpDiv || n.Op == OpFloorDiv {
		return s.quotient(l, d, n.Type)
	}
	return s.remainder(l, d, n.Type)
}

// quotient returns ⌊l/d⌋ in type t.
func (s divisions) quotient(l linear, d int64, t dtype.DType) Expr {
	whole, rest := splitMultiples(l, d)
	if k, ok := s.constQuotient(rest, d); ok {
		if sum, fits := combine(whole, linear{c: k}, 1); fits {
			return s.emit(sum, t)
		}
	}
	if !s.divisible(rest, l, t) {
		whole, rest = linear{}, l
	}
	if g := gcdTerms(rest, d); g > 1 {
		rest, d = quotientTerms(rest, g), d/g
	}
	q := s.quotientAtom(rest, d, t)
	if sum, fits := combine(whole, s.linear(q), 1); fits {
		return s.emit(sum, t)
	}
	return s.node(OpAdd, s.emit(whole, t), q)
}

// remainder returns l - d·⌊l/d⌋ in type t.
func (s divisions) remainder(l linear, d int64, t dtype.DType) Expr {
	rest := remainderTerms(l, d)
	if k, ok := s.constQuotient(rest, d); ok {
		if sum, fits := combine(rest, linear{c: d}, -k); fits {
			return s.emit(sum, t)
		}
	}
	if !s.divisible(rest, l, t) {
		rest = l
	}
	g := gcdTerms(rest, d)
	if g <= 1 {
		return s.remainderAtom(rest, d, t)
	}
	// (g·x + c)%d = g·((x + ⌊c/g⌋)%(d/g)) + c%g, for d a multiple of g.
	inner := s.remainder(quotientTerms(rest, g), d/g, t)
	sum, fits := combine(linear{c: divide(OpMod, rest.c, g)}, s.linear(inner), g)
	if !fits {
		return s.remainderAtom(rest, d, t)
	}
	return s.emit(sum, t)
}

// divisible reports whether rest may replace l as a dividend: it must fit the type, and must not
// make a nonnegative dividend possibly negative, which is more expensive to divide.
func (s divisions) divisible(rest, l linear, t dtype.DType) bool {
	r, old := s.intervalLinear(rest), s.intervalLinear(l)
	return int64Range(t).contains(r) && (r.lo >= 0 || !old.known || old.lo < 0)
}

// constQuotient returns ⌊l/d⌋ if it is constant over the range of l.
func (s divisions) constQuotient(l linear, d int64) (int64, bool) {
	r := s.intervalLinear(l)
	if !r.known {
		return 0, false
	}
	k := divide(OpFloorDiv, r.lo, d)
	return k, k == divide(OpFloorDiv, r.hi, d)
}

// quotientAtom returns ⌊l/d⌋ as an operation. It merges nested divisions if l is a single quotient
// or remainder.
func (s divisions) quotientAtom(l linear, d int64, t dtype.DType) Expr {
	if d == 1 {
		return s.emit(l, t)
	}
	x, m, op := s.soleDivision(l)
	switch op {
	case OpDiv, OpFloorDiv: // ⌊⌊x/m⌋/d⌋ = ⌊x/(m·d)⌋
		if md, fits := mul(m, d); fits && t.Wrap(md) == md {
			return s.node(op, x, ConstI(t, md))
		}
	case OpRem, OpMod: // (x%m)/d = (x/d)%(m/d), for m a multiple of d
		if m%d == 0 {
			quot := OpDiv
			if op == OpMod {
				quot = OpFloorDiv
			}
			return s.node(op, s.node(quot, x, ConstI(t, d)), ConstI(t, m/d))
		}
	}
	return s.divideNode(OpDiv, OpFloorDiv, l, d, t)
}

// remainderAtom returns l%d as an operation. It merges nested remainders if l is a single
// remainder.
func (s divisions) remainderAtom(l linear, d int64, t dtype.DType) Expr {
	x, m, op := s.soleDivision(l)
	if (op == OpRem || op == OpMod) && m%d == 0 {
		return s.node(op, x, ConstI(t, d))
	}
	return s.divideNode(OpRem, OpMod, l, d, t)
}

// divideNode returns the division of l by d, truncating if that is equal and cheaper, else
// flooring. Devices truncate natively and floor powers of two with shifts.
func (s divisions) divideNode(truncating, flooring Op, l linear, d int64, t dtype.DType) Expr {
	a := s.emit(l, t)
	op := flooring
	if r := s.interval(a); r.known && r.lo >= 0 && !isPowerOfTwo(d) {
		op = truncating
	}
	n := s.in.intern(New(op, a, ConstI(t, d)))
	s.fact(n).simple = n
	return n
}

// soleDivision returns x, m and op if l is exactly one division of x by a positive constant m;
// otherwise op is OpInvalid.
func (s divisions) soleDivision(l linear) (x *Node, m int64, op Op) {
	if len(l.terms) != 1 || l.terms[0].coef != 1 || l.c != 0 {
		return nil, 0, OpInvalid
	}
	n := l.terms[0].atom
	switch n.Op {
	case OpDiv, OpRem, OpFloorDiv, OpMod:
		m, ok := n.Args[1].IntConst()
		r := s.interval(n.Args[0])
		floors := n.Op == OpFloorDiv || n.Op == OpMod || r.known && r.lo >= 0
		if ok && m > 0 && floors {
			return n.Args[0], m, n.Op
		}
	}
	return nil, 0, OpInvalid
}

// splitMultiples splits l = d·whole + rest. whole gets the terms divisible by d and the part of the
// constant that leaves a remainder in [0, d).
func splitMultiples(l linear, d int64) (whole, rest linear) {
	whole.c, rest.c = divide(OpFloorDiv, l.c, d), divide(OpMod, l.c, d)
	for _, t := range l.terms {
		if t.coef%d == 0 {
			whole.terms = append(whole.terms, term{t.coef / d, t.atom})
		} else {
			rest.terms = append(rest.terms, t)
		}
	}
	return whole, rest
}

// remainderTerms reduces the coefficients of l modulo d, keeping signs, and the constant into [0,
// d).
func remainderTerms(l linear, d int64) linear {
	out := linear{c: divide(OpMod, l.c, d)}
	for _, t := range l.terms {
		if r := t.coef % d; r != 0 {
			out.terms = append(out.terms, term{r, t.atom})
		}
	}
	return out
}

// quotientTerms returns ⌊l/g⌋; g must divide all coefficients.
func quotientTerms(l linear, g int64) linear {
	out, _ := splitMultiples(l, g)
	return out
}

// gcdTerms returns the greatest common divisor of d and the coefficients of l, 1 if l has no terms.
func gcdTerms(l linear, d int64) int64 {
	if len(l.terms) == 0 {
		return 1
	}
	for _, t := range l.terms {
		a := magnitude(t.coef)
		for a != 0 {
			a, d = d%a, a
		}
	}
	return d
}
