package scalar

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
)

// linear is a sum of terms with integer coefficients and a constant, equal to the value of an
// expression as a mathematical integer. It is only made if ranges prove that nothing wraps.
type linear struct {
	terms []term // sorted, atoms distinct, no coefficient 0
	c     int64
}

type term struct {
	coef int64
	atom *Node
}

// linear returns the linear form of the interned, simplified node n. A node that is not a sum, or
// that may wrap, is an atom.
func (s *Simplifier) linear(n *Node) linear {
	f := s.fact(n)
	if !f.summed {
		l, ok := s.linearOf(n)
		if !ok {
			l = linear{terms: []term{{1, n}}}
		}
		f.sum, f.summed = l, true
	}
	return f.sum
}

func (s *Simplifier) linearOf(n *Node) (linear, bool) {
	if x, ok := n.IntConst(); ok {
		return linear{c: x}, n.Type != dtype.U64 || x >= 0
	}
	if r := s.interval(n); !r.known || r.wraps {
		return linear{}, false
	}
	switch n.Op {
	case OpNeg:
		return scale(s.linear(n.Args[0]), -1)
	case OpAdd, OpSub:
		sign := int64(1)
		if n.Op == OpSub {
			sign = -1
		}
		return combine(s.linear(n.Args[0]), s.linear(n.Args[1]), sign)
	case OpMul:
		if c, ok := n.Args[1].IntConst(); ok {
			return scale(s.linear(n.Args[0]), n.Type.Wrap(c))
		}
		if c, ok := n.Args[0].IntConst(); ok {
			return scale(s.linear(n.Args[1]), n.Type.Wrap(c))
		}
	case OpShl:
		if c, ok := n.Args[1].IntConst(); ok && c >= 0 && c < int64(n.Type.Bits()) && c < 62 {
			return scale(s.linear(n.Args[0]), 1<<c)
		}
	case OpConvert:
		if n.Type == dtype.I64 && n.Args[0].Type == dtype.I32 {
			return s.linear(n.Args[0]), true
		}
	}
	return linear{}, false
}

// scale returns l·k, or false if a coefficient would not fit.
func scale(l linear, k int64) (linear, bool) {
	if k == 1 {
		return l, true
	}
	return combine(linear{}, l, k)
}

// combine returns a + k·b, or false if a coefficient would not fit.
func combine(a, b linear, k int64) (linear, bool) {
	fits := true
	mulAdd := func(x, y int64) int64 {
		p, ok := mul(y, k)
		sum, ok2 := add(x, p)
		fits = fits && ok && ok2 && sum != math.MinInt64
		return sum
	}
	out := linear{terms: make([]term, 0, len(a.terms)+len(b.terms)), c: mulAdd(a.c, b.c)}
	i, j := 0, 0
	for i < len(a.terms) || j < len(b.terms) {
		var t term
		switch order := compareHeads(a.terms[i:], b.terms[j:]); {
		case order < 0:
			t = a.terms[i]
			i++
		case order > 0:
			t = term{mulAdd(0, b.terms[j].coef), b.terms[j].atom}
			j++
		default:
			t = term{mulAdd(a.terms[i].coef, b.terms[j].coef), a.terms[i].atom}
			i, j = i+1, j+1
		}
		if t.coef != 0 {
			out.terms = append(out.terms, t)
		}
	}
	return out, fits
}

// compareHeads compares the first atoms of two sorted lists; an empty list is last.
func compareHeads(a, b []term) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return compareNodes(a[0].atom, b[0].atom)
}

// intervalLinear returns the range of a linear form.
func (s *Simplifier) intervalLinear(l linear) interval {
	r := point(l.c)
	for _, t := range l.terms {
		a := s.interval(t.atom)
		if !a.known {
			return interval{}
		}
		r = hull(add, r, hull(mul, a, point(t.coef)))
		if !r.known {
			return interval{}
		}
	}
	return r
}

// emit returns the canonical expression of type t for l: terms by decreasing coefficient, added or
// subtracted, the constant last. Its value is that of l wrapped to t.
func (s *Simplifier) emit(l linear, t dtype.DType) Expr {
	l, r := s.recombine(l), s.intervalLinear(l)
	terms := slices.Clone(l.terms)
	for i := range terms { // few: inserted one by one
		for j := i; j > 0 && compareCoefs(terms[j-1], terms[j]) > 0; j-- {
			terms[j-1], terms[j] = terms[j], terms[j-1]
		}
	}
	c := l.c
	var e Expr
	if len(terms) == 0 || terms[0].coef < 0 && c != 0 {
		e, c = ConstI(t, c), 0
	}
	for _, m := range terms {
		e = s.accumulate(e, m.atom, m.coef, t)
	}
	if c != 0 {
		e = s.accumulate(e, ConstI(t, 1), c, t)
	}
	e = s.in.intern(e)
	f := s.fact(e)
	f.simple, f.sum, f.summed = e, l, true
	if old := s.interval(e); int64Range(t).contains(r) && !(old.known && r.contains(old)) {
		f.interval, f.ranged = r, true
	}
	return e
}

// SelectSum returns the integer that is a where p is true, and b where it is false, both of one type. Terms that both
// sums have are outside of the select, and so is the constant of b: i·8 + j and i·8 + k + 2 make i·8 + 2 + select(p, j − 2,
// k).
func (s *Simplifier) SelectSum(p, a, b Expr) Expr {
	a, b = s.Simplify(a), s.Simplify(b)
	l, m := s.linear(a), s.linear(b)
	both := linear{c: m.c}
	for _, t := range l.terms {
		if slices.Contains(m.terms, t) {
			both.terms = append(both.terms, t)
		}
	}
	first, fits := combine(l, both, -1)
	second, too := combine(m, both, -1)
	if !fits || !too {
		return Select(p, a, b)
	}
	return s.Simplify(Add(s.emit(both, a.Type), Select(p, s.emit(first, a.Type), s.emit(second, a.Type))))
}

// compareCoefs orders terms: positive ones first, and larger ones first.
func compareCoefs(a, b term) int {
	return cmp.Or(cmp.Compare(sign(b.coef), sign(a.coef)), cmp.Compare(magnitude(b.coef), magnitude(a.coef)))
}

// accumulate returns e + coef·atom; a nil e is 0. The atom may be narrower than t.
func (s *Simplifier) accumulate(e, atom Expr, coef int64, t dtype.DType) Expr {
	atom = Convert(atom, t)
	times := func(k int64) Expr { return s.construct(OpMul, atom, ConstI(t, k)) }
	switch {
	case e == nil && coef == -1:
		return s.construct(OpNeg, atom)
	case e == nil:
		return times(coef)
	case coef < 0:
		return s.construct(OpSub, e, times(-coef))
	}
	return s.construct(OpAdd, e, times(coef))
}

func magnitude(x int64) int64 { return max(x, -x) }

// recombine undoes splits: c·n·(x/n) + c·(x%n) is c·x. It looks for the quotient of each remainder.
func (s *Simplifier) recombine(l linear) linear {
	for i := 0; i < len(l.terms); i++ {
		j, x := s.quotientOf(l, l.terms[i])
		if j < 0 {
			continue
		}
		sum, ok := combine(without(l, i, j), s.linear(x), l.terms[i].coef)
		if !ok {
			continue
		}
		l, i = sum, -1
	}
	return l
}

// quotientOf returns the index in l of the quotient that a remainder belongs to, or -1, and their dividend. That of
// the remainder may have been reduced modulo the divisor.
func (s *Simplifier) quotientOf(l linear, rem term) (at int, x *Node) {
	op := OpFloorDiv
	switch rem.atom.Op {
	case OpRem:
		op = OpDiv
	case OpMod:
	default:
		return -1, nil
	}
	y, divisor := rem.atom.Args[0], rem.atom.Args[1]
	n, ok := divisor.IntConst()
	k, fits := mul(rem.coef, n)
	if !ok || n <= 0 || !fits {
		return -1, nil
	}
	quot := s.node(op, y, divisor)
	for i, t := range l.terms {
		switch q := t.atom; {
		case t.coef != k:
		case q == quot:
			return i, y
		case q.Op == op && q.Args[1] == divisor && s.congruent(q.Args[0], y, n, op == OpDiv):
			return i, q.Args[0]
		}
	}
	return -1, nil
}

// congruent reports whether x and y have the same remainder by n. Truncated remainders of different
// numbers must not be negative.
func (s *Simplifier) congruent(x, y *Node, n int64, truncates bool) bool {
	if xs, ys := s.interval(x), s.interval(y); truncates && !(xs.known && ys.known && xs.lo >= 0 && ys.lo >= 0) {
		return false
	}
	difference, ok := combine(s.linear(x), s.linear(y), -1)
	return ok && difference.c%n == 0 && !slices.ContainsFunc(difference.terms, func(t term) bool { return t.coef%n != 0 })
}

// without returns l without its terms i and j.
func without(l linear, i, j int) linear {
	out := linear{c: l.c}
	for k, t := range l.terms {
		if k != i && k != j {
			out.terms = append(out.terms, t)
		}
	}
	return out
}

// compareNodes orders interned nodes by structure, leaves first; it returns 0 only for the same
// node. Since equal structures are one node, it descends only into the first operand that differs,
// so it takes time linear in depth.
func compareNodes(a, b *Node) int {
	for a != b {
		if order := compareFields(a, b); order != 0 {
			return order
		}
		i := 0
		for a.Args[i] == b.Args[i] {
			i++
		}
		a, b = a.Args[i], b.Args[i]
	}
	return 0
}

// compareFields orders nodes by their own fields. It compares them one after the other, since most
// comparisons end with the first.
func compareFields(a, b *Node) int {
	switch {
	case a.Op != b.Op:
		return cmp.Compare(a.Op, b.Op)
	case a.Type != b.Type:
		return cmp.Compare(a.Type, b.Type)
	case a.Ref != b.Ref:
		return cmp.Compare(a.Ref, b.Ref)
	case a.Name != b.Name:
		return cmp.Compare(a.Name, b.Name)
	case a.Bits != b.Bits:
		return cmp.Compare(int64(a.Bits), int64(b.Bits))
	case a.Lo != b.Lo:
		return cmp.Compare(a.Lo, b.Lo)
	}
	return cmp.Compare(a.Hi, b.Hi)
}
