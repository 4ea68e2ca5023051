package scalar

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/ir/dtype"
)

// interval is an inclusive range of integers. wraps reports that the operation may have wrapped around;
// its operands then do not combine as mathematical integers.
type interval struct {
	lo, hi int64
	known  bool
	wraps  bool
}

// Range returns bounds of the integer or bool expression e that hold for all values of its leaves
// within their ranges. ok is false for other types, and for a u64 that may be 2⁶³ or more.
func Range(e Expr) (lo, hi int64, ok bool) { return NewSimplifier().Range(e) }

// Range is [Range] with the facts cached by s.
func (s *Simplifier) Range(e Expr) (lo, hi int64, ok bool) {
	r := s.interval(s.simplify(s.in.intern(e)))
	return r.lo, r.hi, r.known
}

func point(x int64) interval { return interval{lo: x, hi: x, known: true} }

func (r interval) isPoint() bool { return r.known && r.lo == r.hi }

// contains reports whether r includes o.
func (r interval) contains(o interval) bool {
	return r.known && o.known && r.lo <= o.lo && o.hi <= r.hi
}

// int64Range returns the values of type t that fit an int64. For a u64 that is only the lower half, so
// a value that may lie outside is unknown.
func int64Range(t dtype.DType) interval {
	if t == dtype.U64 {
		return interval{lo: 0, hi: math.MaxInt64, known: true}
	}
	lo, hi, ok := t.IntRange()
	return interval{lo: lo, hi: hi, known: ok}
}

// fullRange returns the range of an arbitrary value of type t.
func fullRange(t dtype.DType) interval {
	if t == dtype.U64 {
		return interval{}
	}
	return int64Range(t)
}

// interval returns the range of the interned node n.
func (s *Simplifier) interval(n *Node) interval {
	f := s.fact(n)
	if !f.ranged {
		f.interval, f.ranged = s.intervalOf(n), true
	}
	return f.interval
}

func (s *Simplifier) intervalOf(n *Node) interval {
	all := fullRange(n.Type)
	switch {
	case n.Type.IsBool():
		return s.intervalBool(n)
	case !n.Type.IsInteger():
		return interval{}
	}
	var r interval
	switch n.Op {
	case OpConst:
		r = point(int64(n.Bits))
	case OpVar:
		r = interval{lo: n.Lo, hi: n.Hi, known: n.Lo <= n.Hi}
	case OpArg, OpLoad:
		return all
	case OpConvert, OpBitcast:
		if n.Args[0].Type.IsFloat() {
			return all
		}
		r = s.interval(n.Args[0])
	case OpSelect:
		r = union(s.rangeUnder(n.Args[0], n.Args[1]), s.interval(n.Args[2]))
	case OpCheck:
		return s.interval(n.Args[0])
	default:
		r = s.intervalArith(n)
	}
	// The range is that of mathematical integers. If it does not fit the type, the value may have
	// wrapped to anything.
	if !int64Range(n.Type).contains(r) {
		all.wraps = true
		return all
	}
	return interval{lo: r.lo, hi: r.hi, known: true}
}

// intervalBool returns the possible values of a bool.
func (s *Simplifier) intervalBool(n *Node) interval {
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

func union(a, b interval) interval {
	return interval{lo: min(a.lo, b.lo), hi: max(a.hi, b.hi), known: a.known && b.known}
}

// intervalArith returns the range of an operation on integers as mathematical integers, unknown if it
// does not fit an int64.
func (s *Simplifier) intervalArith(n *Node) interval {
	a := s.interval(n.Args[0])
	if len(n.Args) == 1 {
		return intervalUnary(n, a)
	}
	b := s.interval(n.Args[1])
	if !a.known || !b.known {
		return interval{}
	}
	switch n.Op {
	case OpAdd:
		return hull(add, a, b)
	case OpSub:
		return hull(sub, a, b)
	case OpMul, OpMulZero:
		return hull(mul, a, b)
	case OpDiv, OpFloorDiv:
		return intervalDiv(n.Op, a, b)
	case OpRem, OpMod:
		return intervalRem(n.Op, a, b)
	case OpMin:
		return interval{lo: min(a.lo, b.lo), hi: min(a.hi, b.hi), known: true}
	case OpMax:
		return interval{lo: max(a.lo, b.lo), hi: max(a.hi, b.hi), known: true}
	case OpClamp:
		c := s.interval(n.Args[2])
		return interval{lo: min(max(a.lo, b.lo), c.lo), hi: min(max(a.hi, b.hi), c.hi), known: c.known}
	}
	return intervalBits(n, a, b)
}

func intervalUnary(n *Node, a interval) interval {
	switch {
	case n.Op == OpPopCount:
		return interval{lo: 0, hi: int64(n.Type.Bits()), known: true}
	case n.Op == OpSign:
		return interval{lo: sign(a.lo), hi: sign(a.hi), known: a.known}
	case !a.known || a.lo == math.MinInt64:
		return interval{}
	case n.Op == OpNeg:
		return interval{lo: -a.hi, hi: -a.lo, known: true}
	case n.Op == OpNot && n.Type.IsSigned():
		return interval{lo: -a.hi - 1, hi: -a.lo - 1, known: true}
	case n.Op == OpAbs && a.lo <= 0 && a.hi >= 0:
		return interval{lo: 0, hi: max(a.hi, -a.lo), known: true}
	case n.Op == OpAbs:
		return interval{lo: max(a.lo, -a.hi), hi: max(a.hi, -a.lo), known: true}
	}
	return fullRange(n.Type)
}

// hull returns the range of an operation whose extremes are at the corners of its operands' ranges.
func hull(op func(a, b int64) (int64, bool), a, b interval) interval {
	r := interval{lo: math.MaxInt64, hi: math.MinInt64, known: a.known && b.known}
	for _, x := range [2]int64{a.lo, a.hi} {
		for _, y := range [2]int64{b.lo, b.hi} {
			z, ok := op(x, y)
			r = interval{lo: min(r.lo, z), hi: max(r.hi, z), known: r.known && ok}
		}
	}
	return r
}

// intervalDiv bounds a quotient; it is precise only for divisors of one sign.
func intervalDiv(op Op, a, b interval) interval {
	if b.lo <= 0 && b.hi >= 0 || a.lo == math.MinInt64 {
		m := max(a.hi, -max(a.lo, -math.MaxInt64))
		return interval{lo: -m, hi: m, known: a.lo > math.MinInt64}
	}
	return hull(func(x, y int64) (int64, bool) { return divide(op, x, y), true }, a, b)
}

// intervalRem bounds a remainder: below the divisor in magnitude, with the sign of
// the dividend (Rem) or of the divisor (Mod).
func intervalRem(op Op, a, b interval) interval {
	if b.lo == math.MinInt64 {
		return interval{}
	}
	m := max(b.hi, -b.lo, 1) - 1
	r := interval{lo: -m, hi: m, known: true}
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

// intervalBits bounds bit operations on nonnegative numbers.
func intervalBits(n *Node, a, b interval) interval {
	if n.Op == OpShl || n.Op == OpShr {
		return intervalShift(n, a, b)
	}
	if a.lo < 0 || b.lo < 0 {
		return fullRange(n.Type)
	}
	if n.Op == OpAnd {
		return interval{lo: 0, hi: min(a.hi, b.hi), known: true}
	}
	ones := int64(1)<<bits.Len64(uint64(a.hi|b.hi)) - 1
	return interval{lo: 0, hi: ones, known: true}
}

// intervalShift bounds shifts by a known count.
func intervalShift(n *Node, a, b interval) interval {
	if !b.isPoint() || b.lo < 0 || b.lo >= int64(n.Type.Bits()) {
		if n.Op == OpShr && a.lo >= 0 {
			return interval{lo: 0, hi: a.hi, known: true}
		}
		return fullRange(n.Type)
	}
	if n.Op == OpShr {
		return interval{lo: a.lo >> b.lo, hi: a.hi >> b.lo, known: true}
	}
	if b.lo == 63 {
		return interval{}
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
