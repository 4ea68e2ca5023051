package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Functions of two or three operands.
const (
	OpHypot       ir.Op = "hypot"
	OpLogAddExp   ir.Op = "logaddexp"
	OpXLogY       ir.Op = "xlogy"
	OpXLog1pY     ir.Op = "xlog1py"
	OpCopySign    ir.Op = "copysign"
	OpMod         ir.Op = "mod"
	OpFloorDivide ir.Op = "floor_divide"
	OpNextAfter   ir.Op = "nextafter"
	OpFma         ir.Op = "fma"
)

func init() {
	for _, p := range []paired{
		{
			op: OpHypot, doc: "√(x² + y²), without intermediate overflow. The derivatives at the origin are 0.",
			types: floats, body: hypot,
			slopes: [2]slope2{
				func(b *ir.Builder, x, _, z ir.Value) ir.Value { return orZeroAtZero(b, x, z) },
				func(b *ir.Builder, _, y, z ir.Value) ir.Value { return orZeroAtZero(b, y, z) },
			},
		},
		{
			op: OpLogAddExp, doc: "log(e^x + e^y), computed stably. Its derivatives are the sigmoids of ±(x − y), smooth also where x = y.",
			types: floats, body: logAddExp,
			slopes: [2]slope2{
				func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return Sigmoid(b, difference(b, x, y)) },
				func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return Sigmoid(b, difference(b, y, x)) },
			},
		},
		{
			op: OpXLogY, doc: "x·log(y), 0 where x is 0, and NaN where x or y is.", types: floats,
			body: func(b *ir.Builder, x, y ir.Value) ir.Value {
				return unlessNaN(b, x, y, MulZero(b, x, Log(b, y)))
			},
		},
		{
			op: OpXLog1pY, doc: "x·log(1 + y), 0 where x is 0, and NaN where x or y is.", types: floats,
			body: func(b *ir.Builder, x, y ir.Value) ir.Value {
				return unlessNaN(b, x, y, MulZero(b, x, Log1p(b, y)))
			},
		},
		{
			op: OpCopySign, doc: "|x| with the sign of y, also for zeros. The derivative by y is 0.", types: floats, body: copySign,
		},
		{
			op: OpMod, doc: "The remainder of floor division, x − y·⌊x/y⌋, with the sign of y (NumPy's remainder, ONNX's Mod). " +
				"(rem has the sign of x, as C's fmod.) For integers x mod 0 is 0.",
			types: reals, body: floorMod,
		},
		{
			op: OpFloorDivide, doc: "⌊x / y⌋. For integers x / 0 is x. The derivative is 0, also at the jumps.",
			types: reals, body: floorDivide,
		},
	} {
		definePaired(p)
	}
	defineFma()
	defineNextAfter()
}

// hypot divides by the larger operand, which may be infinite or 0.
func hypot(b *ir.Builder, x, y ir.Value) ir.Value {
	x, y = Abs(b, x), Abs(b, y)
	high, low := Max(b, x, y), Min(b, x, y)
	plainCase := And(b, Gt(b, high, ZerosLike(b, x)), IsFinite(b, high))
	ratio := Div(b, low, Select(b, plainCase, high, OnesLike(b, x)))
	z := Mul(b, high, Sqrt(b, Add(b, Mul(b, ratio, ratio), OnesLike(b, x))))
	infinite := ConstLike(b, x, math.Inf(1)) // even if the other is NaN, as in IEEE 754
	z = Select(b, plainCase, z, high)
	return Select(b, Or(b, Eq(b, x, infinite), Eq(b, y, infinite)), infinite, z)
}

// unlessNaN returns z, or NaN where x or y is.
func unlessNaN(b *ir.Builder, x, y, z ir.Value) ir.Value {
	return Select(b, IsNaN(b, x), x, Select(b, IsNaN(b, y), y, z))
}

// orZeroAtZero returns x / z, and 0 where z is 0.
func orZeroAtZero(b *ir.Builder, x, z ir.Value) ir.Value {
	zero := ZerosLike(b, z)
	at := Eq(b, z, zero)
	return Select(b, at, zero, Div(b, x, Select(b, at, OnesLike(b, z), z)))
}

func logAddExp(b *ir.Builder, x, y ir.Value) ir.Value {
	return Add(b, Max(b, x, y), Log1p(b, Exp(b, Neg(b, Abs(b, difference(b, x, y))))))
}

// difference returns x − y, and 0 where both are the same infinity.
func difference(b *ir.Builder, x, y ir.Value) ir.Value {
	same := And(b, Eq(b, x, y), Not(b, IsFinite(b, x)))
	return Select(b, same, ZerosLike(b, x), Sub(b, x, y))
}

// copySign reads the sign of y from its bits: a zero has one too.
func copySign(b *ir.Builder, x, y ir.Value) ir.Value {
	d := ir.I32
	if y.DType() == ir.F64 {
		d = ir.I64
	}
	sign := Bitcast(b, StopGradient(b, y), d)
	a := Abs(b, x)
	return Select(b, Lt(b, sign, ZerosLike(b, sign)), Neg(b, a), a)
}

// floorMod corrects the truncated remainder where its sign is not that of y.
func floorMod(b *ir.Builder, x, y ir.Value) ir.Value {
	r := Rem(b, x, y)
	return Select(b, signsDiffer(b, r, y), Add(b, r, y), r)
}

func floorDivide(b *ir.Builder, x, y ir.Value) ir.Value {
	if x.DType().IsFloat() {
		// x − mod(x, y) is an exact multiple of y: the quotient is an integer up to rounding.
		return Round(b, Div(b, Sub(b, x, floorMod(b, x, y)), y))
	}
	q := Div(b, x, y)
	return Select(b, signsDiffer(b, Rem(b, x, y), y), Sub(b, q, OnesLike(b, q)), q)
}

// signsDiffer returns whether r is nonzero with the opposite sign of y.
func signsDiffer(b *ir.Builder, r, y ir.Value) ir.Value {
	zero := ZerosLike(b, r)
	return And(b, Ne(b, r, zero), Xor(b, Lt(b, r, zero), Lt(b, y, zero)))
}

func defineFma() {
	defineElementwise(elementwise{
		op: OpFma, doc: "x·y + z, fused if the device has such an instruction; the rounding of the product depends on the device.",
		operands: []string{"x", "y", "z"}, types: floats,
		meaning: meaning{float: func(x []float64) float64 { return math.FMA(x[0], x[1], x[2]) }},
		scalar:  func(x []scalar.Expr) scalar.Expr { return scalar.Fma(x[0], x[1], x[2]) },
		jvp: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			product := addTangents(b, scale(b, t[0], in[1]), scale(b, t[1], in[0]))
			return []ir.Value{addTangents(b, product, t[2])}
		},
		noTranspose: "its derivative consists of products and sums",
	})
}

// Hypot returns √(x² + y²), without intermediate overflow, broadcast.
func Hypot(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpHypot, nil, x, y) }

// LogAddExp returns log(e^x + e^y), computed stably, broadcast.
func LogAddExp(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpLogAddExp, nil, x, y) }

// XLogY returns x·log(y), and 0 where x is 0.
func XLogY(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpXLogY, nil, x, y) }

// XLog1pY returns x·log(1 + y), and 0 where x is 0.
func XLog1pY(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpXLog1pY, nil, x, y) }

// CopySign returns |x| with the sign of y.
func CopySign(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpCopySign, nil, x, y) }

// Mod returns the remainder of floor division, x − y·⌊x/y⌋, which has the sign of y ([Rem]
// has the sign of x), broadcast. For integers x mod 0 is 0.
func Mod(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpMod, nil, x, y) }

// FloorDivide returns ⌊x / y⌋, broadcast. For integers x / 0 is x.
func FloorDivide(b *ir.Builder, x, y ir.Value) ir.Value { return b.Add1(OpFloorDivide, nil, x, y) }

// Fma returns x·y + z, fused if the device has such an instruction, broadcast.
func Fma(b *ir.Builder, x, y, z ir.Value) ir.Value { return broadcasting(b, OpFma, nil, x, y, z) }
