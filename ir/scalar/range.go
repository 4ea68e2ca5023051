package scalar

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/ir/dtype"
)

// span is an inclusive range of integers. wraps reports that the operation may have wrapped around;
// its operands then do not combine as mathematical integers.
type span struct {
	lo, hi int64
	known  bool
	wraps  bool
}

// Range returns bounds of the integer or bool expression e that hold for all values of its leaves
// within their ranges. ok is false for other types, and for a u64 that may be 2⁶³ or more.
func Range(e Expr) (lo, hi int64, ok bool) { return NewSimplifier().Range(e) }

// Range is [Range] with the facts cached by s.
func (s *Simplifier) Range(e Expr) (lo, hi int64, ok bool) {
	r := s.span(s.simplify(s.in.intern(e)))
	return r.lo, r.hi, r.known
}

func point(x int64) span { return span{lo: x, hi: x, known: true} }

func (r span) isPoint() bool { return r.known && r.lo == r.hi }

// contains reports whether r includes o.
func (r span) contains(o span) bool { return r.known && o.known && r.lo <= o.lo && o.hi <= r.hi }

// int64Range returns the values of type t that fit an int64. For a u64 that is only the lower half, so
// a value that may lie outside is unknown.
func int64Range(t dtype.DType) span {
	if t == dtype.U64 {
		return span{lo: 0, hi: math.MaxInt64, known: true}
	}
	lo, hi, ok := t.IntRange()
	return span{lo: lo, hi: hi, known: ok}
}

// fullRange returns the range of an arbitrary value of type t.
func fullRange(t dtype.DType) span {
	if t == dtype.U64 {
		return span{}
	}
	return int64Range(t)
}

// span returns the range of the interned node n.
func (s *Simplifier) span(n *Node) span {
	f := s.fact(n)
	if !f.ranged {
		f.span, f.ranged = s.spanOf(n), true
	}
	return f.span
}

func (s *Simplifier) spanOf(n *Node) span {
	all := fullRange(n.Type)
	switch {
	case n.Type.IsBool():
		return s.spanBool(n)
	case !n.Type.IsInteger():
		return span{}
	}
	var r span
	switch n.Op {
	case OpConst:
		r = point(int64(n.Bits))
	case OpVar:
		r = span{lo: n.Lo, hi: n.Hi, known: n.Lo <= n.Hi}
	case OpArg, OpLoad:
		return all
	case OpConvert, OpBitcast:
		if n.Args[0].Type.IsFloat() {
			return all
		}
		r = s.span(n.Args[0])
	case OpSelect:
		r = union(s.rangeUnder(n.Args[0], n.Args[1]), s.span(n.Args[2]))
	case OpCheck:
		return s.span(n.Args[0])
	default:
		r = s.spanArith(n)
	}
	// The range is that of mathematical integers. If it does not fit the type, the value may have
	// wrapped to anything.
	if !int64Range(n.Type).contains(r) {
		all.wraps = true
		return all
	}
	return span{lo: r.lo, hi: r.hi, known: true}
}

// spanBool returns the possible values of a bool.
func (s *Simplifier) spanBool(n *Node) span {
	if n.Op == OpConst {
		return point(int64(n.Bits))
	}
	r := fullRange(dtype.Bool)
	if n.Op.isCompare() && n.Args[0].Type.IsInteger() {
		if v, ok := s.decide(n); ok {
			return point(boolean(v).I)
		}
	}
	return r
}

func union(a, b span) span {
	return span{lo: min(a.lo, b.lo), hi: max(a.hi, b.hi), known: a.known && b.known}
}

// spanArith returns the range of an operation on integers as mathematical integers, unknown if it
// does not fit an int64.
func (s *Simplifier) spanArith(n *Node) span {
	a := s.span(n.Args[0])
	if len(n.Args) == 1 {
		return spanUnary(n, a)
	}
	b := s.span(n.Args[1])
	if !a.known || !b.known {
		return span{}
	}
	switch n.Op {
	case OpAdd:
		return hull(add, a, b)
	case OpSub:
		return hull(sub, a, b)
	case OpMul, OpMulZero:
		return hull(mul, a, b)
	case OpDiv, OpFloorDiv:
		return spanDiv(n.Op, a, b)
	case OpRem, OpMod:
		return spanRem(n.Op, a, b)
	case OpMin:
		return span{lo: min(a.lo, b.lo), hi: min(a.hi, b.hi), known: true}
	case OpMax:
		return span{lo: max(a.lo, b.lo), hi: max(a.hi, b.hi), known: true}
	case OpClamp:
		c := s.span(n.Args[2])
		return span{lo: min(max(a.lo, b.lo), c.lo), hi: min(max(a.hi, b.hi), c.hi), known: c.known}
	}
	return spanBits(n, a, b)
}

func spanUnary(n *Node, a span) span {
	switch {
	case n.Op == OpPopCount:
		return span{lo: 0, hi: int64(n.Type.Bits()), known: true}
	case n.Op == OpSign:
		return span{lo: sign(a.lo), hi: sign(a.hi), known: a.known}
	case !a.known || a.lo == math.MinInt64:
		return span{}
	case n.Op == OpNeg:
		return span{lo: -a.hi, hi: -a.lo, known: true}
	case n.Op == OpNot && n.Type.IsSigned():
		return span{lo: -a.hi - 1, hi: -a.lo - 1, known: true}
	case n.Op == OpAbs && a.lo <= 0 && a.hi >= 0:
		return span{lo: 0, hi: max(a.hi, -a.lo), known: true}
	case n.Op == OpAbs:
		return span{lo: max(a.lo, -a.hi), hi: max(a.hi, -a.lo), known: true}
	}
	return fullRange(n.Type)
}

// hull returns the range of an operation whose extremes are at the corners of its operands' ranges.
func hull(op func(a, b int64) (int64, bool), a, b span) span {
	r := span{lo: math.MaxInt64, hi: math.MinInt64, known: a.known && b.known}
	for _, x := range [2]int64{a.lo, a.hi} {
		for _, y := range [2]int64{b.lo, b.hi} {
			z, ok := op(x, y)
			r = span{lo: min(r.lo, z), hi: max(r.hi, z), known: r.known && ok}
		}
	}
	return r
}

// spanDiv bounds a quotient; it is precise only for divisors of one sign.
func spanDiv(op Op, a, b span) span {
	if b.lo <= 0 && b.hi >= 0 || a.lo == math.MinInt64 {
		m := max(a.hi, -max(a.lo, -math.MaxInt64))
		return span{lo: -m, hi: m, known: a.lo > math.MinInt64}
	}
	return hull(func(x, y int64) (int64, bool) { return divide(op, x, y), true }, a, b)
}

// spanRem bounds a remainder: below the divisor in magnitude, with the sign of
// the dividend (Rem) or of the divisor (Mod).
func spanRem(op Op, a, b span) span {
	if b.lo == math.MinInt64 {
		return span{}
	}
	m := max(b.hi, -b.lo, 1) - 1
	r := span{lo: -m, hi: m, known: true}
	if op == OpRem {
		r.lo, r.hi = max(r.lo, min(a.lo, 0)), min(r.hi, max(a.hi, 0))
		return r
	}
	if b.lo >= 0 {
		r.lo = 0
		if a.lo >= 0 {
			r.hi = min(r.hi, a.hi)
		}
	}
	return r
}

// spanBits bounds bit operations on nonnegative numbers.
func spanBits(n *Node, a, b span) span {
	if n.Op == OpShl || n.Op == OpShr {
		return spanShift(n, a, b)
	}
	if a.lo < 0 || b.lo < 0 {
		return fullRange(n.Type)
	}
	if n.Op == OpAnd {
		return span{lo: 0, hi: min(a.hi, b.hi), known: true}
	}
	ones := int64(1)<<bits.Len64(uint64(a.hi|b.hi)) - 1
	return span{lo: 0, hi: ones, known: true}
}

// spanShift bounds shifts by a known count.
func spanShift(n *Node, a, b span) span {
	if !b.isPoint() || b.lo < 0 || b.lo >= int64(n.Type.Bits()) {
		if n.Op == OpShr && a.lo >= 0 {
			return span{lo: 0, hi: a.hi, known: true}
		}
		return fullRange(n.Type)
	}
	if n.Op == OpShr {
		return span{lo: a.lo >> b.lo, hi: a.hi >> b.lo, known: true}
	}
	if b.lo == 63 {
		return span{}
	}
	return hull(mul, a, point(1<<b.lo))
}

// add, sub and mul are exact or return false.

func add(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

func sub(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

func mul(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	c := a * b
	if a == int64(int32(a)) && b == int64(int32(b)) {
		return c, true
	}
	return c, c/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
}
