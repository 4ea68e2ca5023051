package scalar

import "github.com/rlx-go/rlx/ir/dtype"

// logPoly is p in log(1 + f) = f - f²/2 + f³·p(f), √½ ≤ 1 + f ≤ √2; 1.6e-9.
var logPoly = []float64{
	0.3333331346511841, -0.2500016689300537, 0.20002222061157227, -0.1665937304496765,
	0.1420963853597641, -0.12549562752246857, 0.12107852846384048, -0.10916981846094131,
	0.05342608690261841,
}

// sqrtHalfBits are the bits of √½, the lower end of the significands of reduceLog.
const sqrtHalfBits = 0x3f3504f3

// reduceLog splits a positive normal x into 2^k·m with √½ ≤ m < √2, k as i32.
func reduceLog(x Expr) (k, m Expr) {
	u := Bitcast(x, dtype.I32)
	k = Shr(Sub(u, i32(sqrtHalfBits)), i32(23))
	return k, Bitcast(Sub(u, Shl(k, i32(23))), dtype.F32)
}

// ln 2 in two parts. The first has 16 bits, so that its product with a small integer is exact.
const (
	ln2Head = 45426.0 / 65536
	ln2Tail = 1.4286068203094172e-6
)

// logSum returns log(1 + f) + k·ln 2 for f as in logPoly. It adds the larger parts last.
func logSum(f, k Expr) Expr {
	z := Mul(f, f)
	t := Mul(z, Sub(Mul(f, polynomial(f, logPoly...)), f32(0.5)))
	kf := Convert(k, dtype.F32)
	return Add(Mul(kf, f32(ln2Head)), Add(f, Add(t, Mul(kf, f32(ln2Tail)))))
}

// normalise returns x and 0, or 2²⁴·x and -24 for a positive subnormal x.
func normalise(x Expr) (scaled, k Expr) {
	tiny := Lt(absBits(x), u32(0x00800000))
	return Select(tiny, Mul(x, f32(1<<24)), x), Select(tiny, i32(-24), i32(0))
}

func log32(x Expr) Expr {
	scaled, k0 := normalise(x)
	k, m := reduceLog(scaled)
	y := bitsOf(logSum(Sub(m, f32(1)), Add(k, k0)))
	// Test for zero after scaling: it may be a flushed subnormal.
	y = Select(Eq(absBits(scaled), u32(0)), u32(signBit|infBits), y)
	return floatOf(logEnds(x, y))
}

// logEnds returns the bits y, or those of infinity if x is infinite, and of NaN if it is NaN or
// negative but not -0.
func logEnds(x, y Expr) Expr {
	u := bitsOf(x)
	y = Select(Eq(u, u32(infBits)), u32(infBits), y)
	return Select(Or(isNaN32(x), Gt(u, u32(signBit))), u32(nanBits), y)
}

// log1p32 uses f = x for small x, and rounds 1 + x otherwise: there the error of the sum is small
// compared with its logarithm.
func log1p32(x Expr) Expr {
	central := And(Gt(x, f32(-0.2928)), Lt(x, f32(0.4142)))
	u := Add(x, f32(1))
	k, m := reduceLog(u)
	y := logSum(Select(central, x, Sub(m, f32(1))), Select(central, i32(0), k))
	r := Or(bitsOf(y), signOf(x))
	r = Select(Eq(bitsOf(x), u32(0xbf800000)), u32(signBit|infBits), r) // -1
	r = Select(Eq(bitsOf(x), u32(infBits)), u32(infBits), r)
	return floatOf(Select(Or(isNaN32(x), Gt(bitsOf(x), u32(0xbf800000))), u32(nanBits), r))
}
