package scalar

import (
	"math"
	"math/bits"

	"github.com/rlx-go/rlx/ir/dtype"
)

func expandMulZero(n *Node) Expr {
	a, b := n.Args[0], n.Args[1]
	zero := Const(n.Type, 0)
	return Select(Or(Eq(a, zero), Eq(b, zero)), zero, Mul(a, b))
}

// expandSign returns the operand itself if it is ±0 or NaN.
func expandSign(n *Node) Expr {
	x, zero := n.Args[0], Const(n.Type, 0)
	one := Const(n.Type, 1)
	if n.Type.IsUnsigned() {
		return Select(Eq(x, zero), zero, one)
	}
	return Select(Gt(x, zero), one, Select(Lt(x, zero), Neg(one), x))
}

// expandSigmoid uses 1/(1 + exp(-|x|)), which neither overflows nor cancels.
func expandSigmoid(n *Node) Expr {
	x, one := n.Args[0], ConstF(n.Type, 1)
	e := Exp(Neg(Abs(x)))
	r := Div(one, Add(one, e))
	return Select(Lt(x, ConstF(n.Type, 0)), Mul(e, r), r)
}

// expandExtreme makes Min and Max of floats return NaN if an operand is NaN; C returns the other
// operand. If b is NaN, a < b is false and b is returned.
func expandExtreme(n *Node) Expr {
	if !n.Type.IsFloat() {
		return n
	}
	a, b := n.Args[0], n.Args[1]
	op := OpLt
	if n.Op == OpMax {
		op = OpGt
	}
	return Select(Or(New(op, a, b), Ne(a, a)), a, b)
}

// expandDiv replaces a divisor of 0, or of -1 if the quotient would overflow, by 1. Both are
// undefined in C; the result is that of WGSL.
func expandDiv(n *Node) Expr {
	b := safeDivisor(n)
	if b == n.Args[1] {
		return n
	}
	return New(n.Op, n.Args[0], b)
}

func safeDivisor(n *Node) Expr {
	t, b := n.Type, n.Args[1]
	if _, isConst := b.IntConst(); isConst || !t.IsInteger() {
		return b // constant divisors 0, and -1 of a signed type, are removed by identities
	}
	bad := Eq(b, ConstI(t, 0))
	if lo, _, _ := t.IntRange(); t.IsSigned() {
		overflows := And(Eq(b, ConstI(t, -1)), Eq(n.Args[0], ConstI(t, lo)))
		bad = Or(bad, overflows)
	}
	return Select(bad, ConstI(t, 1), b)
}

// ExpandFloorDiv implements FloorDiv or Mod with operations that processors have: a shift or a mask
// for powers of two, else the truncated quotient or remainder, corrected if the remainder is not 0
// and its sign differs from that of the divisor.
func ExpandFloorDiv(n Expr) Expr {
	if d, ok := n.Args[1].IntConst(); ok && isPowerOfTwo(d) {
		if n.Op == OpMod {
			return And(n.Args[0], ConstI(n.Type, d-1))
		}
		return Shr(n.Args[0], ConstI(n.Type, int64(bits.TrailingZeros64(uint64(d)))))
	}
	a, b, zero := n.Args[0], safeDivisor(n), ConstI(n.Type, 0)
	r := Rem(a, b)
	off := And(Ne(r, zero), Ne(Lt(r, zero), Lt(b, zero)))
	switch {
	case n.Op == OpFloorDiv && n.Type.IsUnsigned():
		return Div(a, b)
	case n.Op == OpFloorDiv:
		return Sub(Div(a, b), Convert(off, n.Type))
	case n.Type.IsUnsigned():
		return r
	}
	return Add(r, Select(off, b, zero))
}

func isPowerOfTwo(x int64) bool { return x > 0 && x&(x-1) == 0 }

// expandShift reduces the count modulo the width; larger counts are undefined in C.
func expandShift(n *Node) Expr {
	width := ConstI(n.Type, int64(n.Type.Bits()-1))
	return New(n.Op, n.Args[0], And(n.Args[1], width))
}

// The rest of this file, and the other files expand_*.go, are for f32.

func f32(x float64) Expr { return ConstF(dtype.F32, x) }
func u32(x uint32) Expr  { return ConstI(dtype.U32, int64(x)) }
func i32(x int32) Expr   { return ConstI(dtype.I32, int64(x)) }

const (
	signBit = 0x80000000
	absMask = 0x7fffffff // all but the sign
	infBits = 0x7f800000
	nanBits = 0x7fc00000
)

func bitsOf(x Expr) Expr     { return Bitcast(x, dtype.U32) }
func floatOf(u Expr) Expr    { return Bitcast(u, dtype.F32) }
func absBits(x Expr) Expr    { return And(bitsOf(x), u32(absMask)) }
func signOf(x Expr) Expr     { return And(bitsOf(x), u32(signBit)) }
func isNaN32(x Expr) Expr    { return Gt(absBits(x), u32(infBits)) }
func isFinite32(x Expr) Expr { return Lt(absBits(x), u32(infBits)) }

// aboveBits reports whether |x| > c, true also for NaN. It compares bits, which have the order of
// the nonnegative floats.
func aboveBits(x Expr, c float32) Expr {
	return Gt(absBits(x), u32(math.Float32bits(c)))
}

// keepNaN returns x if it is NaN and the float with bits u otherwise.
func keepNaN(x, u Expr) Expr { return floatOf(Select(isNaN32(x), bitsOf(x), u)) }

// oddFunction returns the value of an odd function at x, given its value r at |x|: with the sign of x, also
// for zero, and NaN for NaN.
func oddFunction(x, r Expr) Expr { return keepNaN(x, Or(bitsOf(r), signOf(x))) }

// clampMax returns the minimum of x and c, c for NaN.
func clampMax(x Expr, c float64) Expr { return Select(Lt(x, f32(c)), x, f32(c)) }

// clampMin returns the maximum of x and c, c for NaN.
func clampMin(x Expr, c float64) Expr { return Select(Gt(x, f32(c)), x, f32(c)) }

// polynomial returns c[0] + c[1]·x + c[2]·x² + … by Horner's rule.
func polynomial(x Expr, c ...float64) Expr {
	p := f32(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = Add(Mul(p, x), f32(c[i]))
	}
	return p
}

// head returns x truncated to 12 significant bits, so that the product of two heads is exact.
func head(x Expr) Expr { return floatOf(And(bitsOf(x), u32(0xfffff000))) }

// extreme32 is expandExtreme for compilers that may evaluate a comparison with NaN either way: it
// tests the bits of both operands.
func extreme32(n *Node) Expr {
	a, b := n.Args[0], n.Args[1]
	op := OpLt
	if n.Op == OpMax {
		op = OpGt
	}
	r := Select(New(op, a, b), bitsOf(a), bitsOf(b))
	return floatOf(Select(isNaN32(b), bitsOf(b), Select(isNaN32(a), bitsOf(a), r)))
}

// convert32 makes a conversion to an integer saturate. The bounds are powers of two and therefore
// exact floats.
func convert32(n *Node) Expr {
	x, t := n.Args[0], n.Type
	if t.IsFloat8() {
		return convertBits(n, 8)
	}
	if !t.IsInteger() {
		return Convert(x, t)
	}
	width, bottom, lowest := t.Bits(), 0.0, int64(0)
	if t.IsSigned() {
		width--
		bottom, lowest = -math.Ldexp(1, width), -1<<width
	}
	top := math.Ldexp(1, width)
	low, high := Le(x, f32(bottom)), Ge(x, f32(top))
	inside := Not(Or(Or(low, high), isNaN32(x)))
	r := Convert(floatOf(Select(inside, bitsOf(x), u32(0))), t)
	r = Select(high, ConstI(t, ^lowest), Select(low, ConstI(t, lowest), r))
	return Select(isNaN32(x), ConstI(t, 0), r)
}

// round32 rounds to nearest even by the distance from the floor, which is exact. Floats from 2²³ on
// are integers.
func round32(x Expr) Expr {
	lower := Floor(x)
	upper := Add(lower, f32(1))
	d := Sub(x, lower)
	half := Mul(lower, f32(0.5))
	even := Select(Eq(Floor(half), half), lower, upper)
	r := Select(Lt(d, f32(0.5)), lower, Select(Gt(d, f32(0.5)), upper, even))
	whole := Ge(absBits(x), u32(math.Float32bits(1<<23)))
	return floatOf(Select(whole, bitsOf(x), Or(bitsOf(r), signOf(x))))
}

// rem32 subtracts multiples of 2¹²·y and then of y. The quotient of each step is below 2¹², so its
// products with the two halves of the divisor are exact, and so are the differences. WGSL's own
// remainder rounds the quotient, and is off by y if that rounds up to an integer.
func rem32(x, y Expr) Expr {
	large := Gt(Abs(y), f32(0x1p100)) // scaled, so that 2¹²·y does not overflow
	down := Select(large, f32(0x1p-40), f32(1))
	a, b := Mul(Abs(x), down), Mul(Abs(y), down)
	r := remStep(remStep(a, Mul(b, f32(1<<12))), b)
	r = Select(And(Ge(r, f32(0)), Lt(r, b)), r, f32(0)) // for quotients out of range
	r = Mul(r, Select(large, f32(0x1p40), f32(1)))

	u := Or(bitsOf(r), signOf(x))
	u = Select(Lt(absBits(x), absBits(y)), bitsOf(x), u)
	undefined := Or(Or(Not(isFinite32(x)), isNaN32(y)), Eq(absBits(y), u32(0)))
	return floatOf(Select(undefined, u32(nanBits), u))
}

// remStep returns a modulo b, both positive. It corrects a quotient that is off by one.
func remStep(a, b Expr) Expr {
	q := Trunc(Div(a, b))
	h := head(b)
	r := Sub(Sub(a, Mul(q, h)), Mul(q, Sub(b, h)))
	r = Select(Lt(r, f32(0)), Add(r, b), r)
	return Select(Ge(r, b), Sub(r, b), r)
}
