package scalar

import (
	"math"

	"github.com/rlx-go/rlx/ir/dtype"
)

// sinPoly is p in sin(r) = r + r³·p(r²), and cosPoly q in
// cos(r) = 1 - r²/2 + r⁴·q(r²), |r| ≤ 0.7855; 6.1e-9 and 3.5e-10.
var (
	sinPoly = []float64{-0.16666655242443085, 0.008332258090376854, -0.00019530270947143435}
	cosPoly = []float64{0.041666653007268906, -0.001388770411722362, 2.4477922124788165e-05}
)

// twoOverPi holds 32 zero bits, then the first 224 bits of the fraction of 2/π.
var twoOverPi = [8]uint32{
	0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
}

// reduceTrig splits |x| into q·π/2 + r with |r| ≤ π/4; q, a u32, is correct modulo 4. It multiplies
// the significand of x, an integer, by the 96 bits of 2/π that determine q and the fraction
// (Payne–Hanek reduction). The result is correct to 2⁻⁵³ quadrants for every finite x, none of
// which is closer to a multiple of π/2 than 2⁻³⁰. It has no floating-point sum that a compiler
// could reassociate.
func reduceTrig(x Expr) (q, r Expr) {
	a := Abs(x)
	u := bitsOf(a)
	m := Or(And(u, u32(0x7fffff)), u32(0x800000))

	// a is m·2^(e-150) for the stored exponent e. Bit i of 2/π has weight 2^-i. It affects q only
	// from weight 2 in m·2^(e-150-i) down, so the first bit needed is i = e - 151, bit i + 31 of
	// the table.
	first := Sub(Shr(u, u32(23)), u32(120))
	w := window(first)

	// The product of m with the first 64 bits, modulo 2⁶⁴, counts quadrants with 62 fraction bits.
	// For the product with the other 32 bits, the upper halves of both factors suffice.
	rough := Shr(Mul(Shr(m, u32(8)), Shr(w[2], u32(16))), u32(8))
	low := Add(Mul(m, w[1]), rough)
	carry := Select(Lt(low, rough), u32(1), u32(0))
	high := Add(Add(Mul(m, w[0]), mulHigh24(m, w[1])), carry)

	// Round to the nearest quadrant and keep the signed remainder.
	rounded := Add(high, u32(1<<29))
	rest := Sub(Bitcast(And(rounded, u32(1<<30-1)), dtype.I32), i32(1<<29))
	turn := Add(Convert(rest, dtype.F32), Mul(Convert(low, dtype.F32), f32(0x1p-32)))
	r = Mul(turn, f32(math.Pi/2*0x1p-30))

	small := Lt(a, f32(math.Pi/4))
	return Select(small, u32(0), Shr(rounded, u32(30))), Select(small, a, r)
}

// window returns the 96 bits of twoOverPi from bit number first on, for first up to 159.
func window(first Expr) [3]Expr {
	word := func(k int) Expr { // the k-th word after the one of bit first
		w := u32(twoOverPi[4+k])
		for i := 3; i >= 0; i-- {
			w = Select(Lt(first, u32(uint32(32*i+32))), u32(twoOverPi[i+k]), w)
		}
		return w
	}
	shift := And(first, u32(31))
	rest := Sub(u32(31), shift)
	join := func(a, b Expr) Expr { return Or(Shl(a, shift), Shr(Shr(b, u32(1)), rest)) }
	w0, w1, w2, w3 := word(0), word(1), word(2), word(3)
	return [3]Expr{join(w0, w1), join(w1, w2), join(w2, w3)}
}

// mulHigh24 returns the upper word of the product of m < 2²⁴ and w, using the bytes of w: each
// partial product and carry fits 32 bits.
func mulHigh24(m, w Expr) Expr {
	carry := u32(0)
	for i := range uint32(4) {
		b := And(Shr(w, u32(8*i)), u32(255))
		carry = Shr(Add(carry, Mul(m, b)), u32(8))
	}
	return carry
}

// sinCos returns the sine and cosine of |x| without the signs of the quadrant, swapped in odd
// quadrants.
func sinCos(x Expr) (q, s, c Expr) {
	q, r := reduceTrig(x)
	z := Mul(r, r)
	s = Add(r, Mul(r, Mul(z, polynomial(z, sinPoly...))))
	c = Add(f32(1), Mul(z, Sub(Mul(z, polynomial(z, cosPoly...)), f32(0.5))))
	return q, s, c
}

// flipSign returns r with its sign flipped if bit 31 of flip is set, and NaN if x is not finite.
func flipSign(x, r, flip Expr) Expr {
	u := Xor(bitsOf(r), And(flip, u32(signBit)))
	return floatOf(Select(isFinite32(x), u, u32(nanBits)))
}

func isOdd(q Expr) Expr { return Ne(And(q, u32(1)), u32(0)) }

func sin32(x Expr) Expr {
	q, s, c := sinCos(x)
	return flipSign(x, Select(isOdd(q), c, s), Xor(Shl(q, u32(30)), bitsOf(x)))
}

func cos32(x Expr) Expr {
	q, s, c := sinCos(x)
	return flipSign(x, Select(isOdd(q), s, c), Shl(Add(q, u32(1)), u32(30)))
}

func tan32(x Expr) Expr {
	q, s, c := sinCos(x)
	t := Div(Select(isOdd(q), c, s), Select(isOdd(q), s, c))
	return flipSign(x, t, Xor(Shl(q, u32(31)), bitsOf(x)))
}

// atanPoly is p in atan(t) = t + t³·p(t²), |t| ≤ tan(π/8); 1.0e-9.
var atanPoly = []float64{
	-0.33333319425582886, 0.19998814165592194, -0.14250148832798004,
	0.10641076415777206, -0.06192091852426529,
}

// π/2 and π/4 in two parts, and tan(π/8).
const (
	piHalfHead = 1.57079637050628662109375
	piHalfTail = -4.3711390001862428e-8
	tanPi8     = 0.41421356237309503
)

// atanReduced returns atan(t) + base·π/4 for |t| ≤ tan(π/8) and a base of 0, 1 or 2, a float.
func atanReduced(t, base Expr) Expr {
	z := Mul(t, t)
	y := Add(t, Mul(t, Mul(z, polynomial(z, atanPoly...))))
	y = Add(y, Mul(base, f32(piHalfTail/2)))
	return Add(Mul(base, f32(piHalfHead/2)), y)
}

// atan32 reduces |x| by atan(a) = π/4 + atan((a-1)/(a+1)) or π/2 + atan(-1/a).
func atan32(x Expr) Expr {
	a := Abs(x)
	a = Select(aboveBits(a, 0x1p30), f32(0x1p30), a) // the same angle, and finite
	far, mid := Gt(a, f32(1/tanPi8)), Gt(a, f32(tanPi8))
	num := Select(far, f32(-1), Select(mid, Sub(a, f32(1)), a))
	den := Select(far, a, Select(mid, Add(a, f32(1)), f32(1)))
	base := Select(far, f32(2), Select(mid, f32(1), f32(0)))
	return oddFunction(x, atanReduced(Div(num, den), base))
}

// atan232 computes the angle of (|x|, |y|) from the quotient of the smaller by the larger and moves
// it to the quadrant of (x, y). It uses sign bits, so that the signs of zeros and infinities count.
func atan232(y, x Expr) Expr {
	ax, ay := Abs(x), Abs(y)
	steep := Gt(absBits(y), absBits(x))
	lo, hi := Select(steep, ax, ay), Select(steep, ay, ax)
	lo, hi = ratioOperands(lo, hi)

	mid := Gt(lo, Mul(hi, f32(tanPi8)))
	num := Select(mid, Sub(lo, hi), lo)
	den := Select(mid, Add(lo, hi), hi)
	t := Div(num, den)
	base := Select(mid, f32(1), f32(0))

	// The angle is now atan(t) + base·π/4 from the nearer axis.
	negX := Ne(signOf(x), u32(0))
	t = Select(Ne(steep, negX), Neg(t), t)
	base = Select(steep, Sub(f32(2), base), base)
	base = Select(negX, Sub(f32(4), base), base)
	// If both steep and negX hold, the sign of t flips twice.
	r := Or(bitsOf(atanReduced(t, base)), signOf(y))
	r = Select(isNaN32(y), bitsOf(y), r)
	return floatOf(Select(isNaN32(x), bitsOf(x), r))
}

// ratioOperands scales two numbers 0 ≤ lo ≤ hi to a range where devices divide accurately, with 1
// for an infinity, and 0 and 1 if both are 0.
func ratioOperands(lo, hi Expr) (Expr, Expr) {
	infHi, infLo := Ge(bitsOf(hi), u32(infBits)), Ge(bitsOf(lo), u32(infBits))
	large, small := Gt(hi, f32(0x1p100)), Lt(hi, f32(0x1p-100))
	factor := Select(large, f32(0x1p-60), Select(small, f32(0x1p100), f32(1)))
	zero := Eq(bitsOf(hi), u32(0))
	lo, hi = Mul(lo, factor), Mul(hi, factor)
	lo = Select(infHi, Select(infLo, f32(1), f32(0)), lo)
	hi = Select(Or(infHi, zero), f32(1), hi)
	return lo, hi
}

// asinPoly is p in asin(x) = x + x³·p(x²), |x| ≤ ½; 6.7e-9.
var asinPoly = []float64{
	0.16666731238365173, 0.07496420294046402, 0.045324064791202545,
	0.02489062398672104, 0.040996745228767395,
}

// asinParts returns, for a = |x|, asin(a) if a < ½, and otherwise asin(√((1-a)/2)), half the angle
// from the end.
func asinParts(x Expr) (near, v Expr) {
	a := clampMax(Abs(x), 1)
	near = Lt(a, f32(0.5))
	z := Select(near, Mul(a, a), Sub(f32(0.5), Mul(a, f32(0.5))))
	s := Select(near, a, Sqrt(z))
	return near, Add(s, Mul(s, Mul(z, polynomial(z, asinPoly...))))
}

// nanOutside returns the float with bits u, or NaN if |x| > 1.
func nanOutside(x, u Expr) Expr { return floatOf(Select(aboveBits(x, 1), u32(nanBits), u)) }

func asin32(x Expr) Expr {
	near, v := asinParts(x)
	far := Add(f32(piHalfHead), Sub(f32(piHalfTail), Mul(v, f32(2))))
	return nanOutside(x, Or(bitsOf(Select(near, v, far)), signOf(x)))
}

func acos32(x Expr) Expr {
	near, v := asinParts(x)
	neg := Ne(signOf(x), u32(0))
	signed := Select(neg, v, Neg(v))
	mid := Add(f32(piHalfHead), Add(f32(piHalfTail), signed))
	twice := Mul(v, f32(2))
	far := Select(neg, Add(f32(2*piHalfHead), Sub(f32(2*piHalfTail), twice)), twice)
	return nanOutside(x, bitsOf(Select(near, mid, far)))
}
