package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Unary composites with names in NumPy and SciPy.
const (
	OpSquare     ir.Op = "square"
	OpReciprocal ir.Op = "reciprocal"
	OpLogit      ir.Op = "logit"
	OpSinc       ir.Op = "sinc"
	OpDegrees    ir.Op = "degrees"
	OpRadians    ir.Op = "radians"
	OpRoundSTE   ir.Op = "round_ste"
	OpIsInf      ir.Op = "is_inf"
	OpNanToNum   ir.Op = "nan_to_num"
)

// NanToNumAttrs hold the replacements of NaN and the infinities. An infinite PosInf or
// NegInf means the largest or smallest finite number of the element type.
type NanToNumAttrs struct{ NaN, PosInf, NegInf float64 }

// Visit shows the attributes.
func (a *NanToNumAttrs) Visit(v ir.AttrVisitor) {
	v.Float("nan", &a.NaN)
	v.Float("pos_inf", &a.PosInf)
	v.Float("neg_inf", &a.NegInf)
}

func newNanToNumAttrs() ir.Attrs { return &NanToNumAttrs{0, math.Inf(1), math.Inf(-1)} }

func init() {
	for _, e := range []composite{
		{
			op: OpSquare, doc: "x·x. Integers wrap.", types: numbers,
			body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return Mul(b, in[0], in[0]) },
		},
		{
			op: OpReciprocal, doc: "1 / x.", types: floats | complexes,
			body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return Div(b, OnesLike(b, in[0]), in[0]) },
		},
		{
			op: OpLogit, doc: "log(x / (1 − x)), the inverse of sigmoid: infinite at 0 and 1, NaN outside.",
			types: floats,
			body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
				return Sub(b, Log(b, in[0]), Log1p(b, Neg(b, in[0])))
			},
		},
		{
			op: OpSinc, doc: "sin(πx) / (πx), and 1 at 0, smooth everywhere: near 0 it is a power series up to x²⁸.",
			types: floats,
			body:  func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return inWide(b, in[0], sinc) },
		},
		{
			op: OpDegrees, doc: "x·180/π: radians to degrees.", types: floats,
			body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
				return Mul(b, in[0], ConstLike(b, in[0], 180/math.Pi))
			},
		},
		{
			op: OpRadians, doc: "x·π/180: degrees to radians.", types: floats,
			body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
				return Mul(b, in[0], ConstLike(b, in[0], math.Pi/180))
			},
		},
		{
			op: OpRoundSTE, doc: "The integer nearest to x, ties to even, with derivative 1: the straight-through estimator (Bengio, " +
				"Léonard and Courville).",
			types: floats,
			body:  func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value { return Round(b, in[0]) },
			jvp:   func(_ *ir.Builder, _ *ir.Node, _, _, t []ir.Value) []ir.Value { return t },
		},
		{
			op: OpIsInf, doc: "Whether x is infinite.", types: floats,
			noGrad: "boolean result",
			body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
				return Not(b, Or(b, IsFinite(b, in[0]), IsNaN(b, in[0])))
			},
		},
		{
			op: OpNanToNum, doc: "x with NaN and the infinities replaced by numbers. The derivative there is 0.",
			types: floats, newAttrs: newNanToNumAttrs,
			body: nanToNum,
		},
	} {
		defineComposite(e)
	}
}

// sinc takes sin(u)/u by its power series for |u| < 1: its derivatives there,
// those at 0 among them, are those of the series.
func sinc(b *ir.Builder, x ir.Value) ir.Value {
	u := Mul(b, x, ConstLike(b, x, math.Pi))
	one := OnesLike(b, x)
	near := Lt(b, Abs(b, u), one)
	square := Mul(b, u, u)
	series := one
	for k := 14; k >= 1; k-- { // 1 − u²/(2·3)·(1 − u²/(4·5)·(…
		series = Sub(b, one, Mul(b, Mul(b, square, ConstLike(b, x, 1/float64(2*k*(2*k+1)))), series))
	}
	// sin(πx) after range reduction by whole periods
	periods := Mul(b, Round(b, Mul(b, x, ConstLike(b, x, 0.5))), ConstLike(b, x, 2))
	sine := Sin(b, Mul(b, Sub(b, x, periods), ConstLike(b, x, math.Pi)))
	return Select(b, near, series, Div(b, sine, Select(b, near, one, u)))
}

func nanToNum(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
	a, x := n.Attrs().(*NanToNumAttrs), in[0]
	d := x.DType()
	limit := func(v float64) ir.Value { return ConstLike(b, x, max(-d.MaxFloat(), min(v, d.MaxFloat()))) }
	ends := Select(b, Gt(b, x, ZerosLike(b, x)), limit(a.PosInf), limit(a.NegInf))
	ends = Select(b, IsNaN(b, x), ConstLike(b, x, a.NaN), ends)
	return Select(b, IsFinite(b, x), x, ends)
}

// Square returns x·x.
func Square(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSquare, nil, x) }

// Reciprocal returns 1 / x.
func Reciprocal(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpReciprocal, nil, x) }

// Logit returns log(x / (1 − x)), the inverse of [Sigmoid].
func Logit(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpLogit, nil, x) }

// Sinc returns sin(πx) / (πx), and 1 at 0.
func Sinc(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSinc, nil, x) }

// Degrees converts radians to degrees.
func Degrees(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpDegrees, nil, x) }

// Radians converts degrees to radians.
func Radians(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRadians, nil, x) }

// RoundSTE returns x rounded to the nearest integer, ties to even, with derivative 1
// (straight-through estimator) where [Round] has 0.
func RoundSTE(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRoundSTE, nil, x) }

// IsInf returns whether x is infinite.
func IsInf(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpIsInf, nil, x) }

// NanToNum returns x with NaN replaced by 0 and the infinities by the largest and smallest
// finite numbers of the element type.
func NanToNum(b *ir.Builder, x ir.Value) ir.Value {
	return b.Add1(OpNanToNum, newNanToNumAttrs(), x)
}

// paired describes a composite of two operands that are broadcast.
type paired struct {
	op    ir.Op
	doc   string
	types domain
	body  func(b *ir.Builder, x, y ir.Value) ir.Value
	// slopes are the derivatives by each operand, if the body's are wrong at some points.
	// Their operands have one shape.
	slopes [2]slope2
}

func definePaired(p paired) {
	c := composite{
		op: p.op, doc: p.doc, types: p.types, operands: []string{"x", "y"},
		constraints: []string{"the operands have one element type, and are broadcast against each other"},
		check:       oneDType,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			in = Broadcast(b, n.Op(), in...)
			if b.Err() != nil {
				return ir.Value{}
			}
			x, y := wideFloat(b, in[0]), wideFloat(b, in[1])
			return Convert(b, p.body(b, x, y), in[0].DType())
		},
	}
	if p.slopes[0] != nil {
		c.jvp = func(b *ir.Builder, n *ir.Node, in, out, t []ir.Value) []ir.Value {
			d := in[0].DType()
			x := Broadcast(b, n.Op(), wide(b, in[0]), wide(b, in[1]), wide(b, out[0]))
			var sum ir.Value
			for i, slope := range p.slopes {
				if t[i].Valid() {
					tangent := Broadcast(b, n.Op(), wide(b, t[i]), x[2])[0]
					sum = addTangents(b, sum, scale(b, tangent, slope(b, x[0], x[1], x[2])))
				}
			}
			if sum.Valid() {
				sum = Convert(b, sum, d)
			}
			return []ir.Value{sum}
		}
	}
	defineComposite(c)
}

// wideFloat is [wide] for floats and the identity for integers.
func wideFloat(b *ir.Builder, x ir.Value) ir.Value {
	if x.DType().IsFloat() {
		return wide(b, x)
	}
	return x
}

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
			op: OpXLogY, doc: "x·log(y), 0 where x is 0, and NaN where x or y is, and where x is infinite and y is 1.", types: floats,
			body: func(b *ir.Builder, x, y ir.Value) ir.Value {
				return unlessNaN(b, x, y, zeroTimes(b, x, Log(b, y)))
			},
		},
		{
			op: OpXLog1pY, doc: "x·log(1 + y), 0 where x is 0, and NaN where x or y is, and where x is infinite and y is 0.", types: floats,
			body: func(b *ir.Builder, x, y ir.Value) ir.Value {
				return unlessNaN(b, x, y, zeroTimes(b, x, Log1p(b, y)))
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

// zeroTimes returns x·y, and 0 where x is 0 even if y is infinite; but an infinite x times 0 is NaN.
func zeroTimes(b *ir.Builder, x, y ir.Value) ir.Value {
	undefined := And(b, IsInf(b, x), Eq(b, y, ZerosLike(b, y)))
	return Select(b, undefined, ConstLike(b, x, math.NaN()), MulZero(b, x, y))
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
	q, r := Div(b, x, y), Rem(b, x, y)
	if x.DType().IsFloat() {
		// x − r is an exact multiple of y: the quotient is an integer up to rounding.
		q = Select(b, Eq(b, y, ZerosLike(b, y)), q, Round(b, Div(b, Sub(b, x, r), y)))
	}
	return Select(b, signsDiffer(b, r, y), Sub(b, q, OnesLike(b, q)), q)
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
		reference: scalarReference{float: func(x []float64) float64 { return math.FMA(x[0], x[1], x[2]) }},
		scalar:    func(x []scalar.Expr) scalar.Expr { return scalar.Fma(x[0], x[1], x[2]) },
		jvp: func(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
			product := addTangents(b, scale(b, t[0], in[1]), scale(b, t[1], in[0]))
			return []ir.Value{addTangents(b, product, t[2])}
		},
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
func Fma(b *ir.Builder, x, y, z ir.Value) ir.Value { return broadcasting(b, OpFma, x, y, z) }

func defineNextAfter() {
	define(&ir.Def{
		Op: OpNextAfter, Operands: []string{"x", "y"},
		Doc: "The next representable number after x toward y (C's nextafter), y where they are equal, NaN if one is NaN. " +
			"A device that flushes subnormal numbers steps from the smallest normal number to 0.",
		Constraints: numbered("the operands have one type, whose elements are f32 or f64", "the result has that type"),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			t, err := sameTypes(n, floats)
			if err == nil && t.DType.Size() < 4 {
				err = ir.DTypef("the operands are %s, not f32 or f64", t.DType)
			}
			return []ir.Type{t}, err
		},
		Eval: evalResult(func(n *ir.Node, in []*ir.Array, out *ir.Array) {
			for i := range out.F {
				if x, y := in[0].F[i], in[1].F[i]; out.DType == ir.F32 {
					out.F[i] = float64(math.Nextafter32(float32(x), float32(y)))
				} else {
					out.F[i] = math.Nextafter(x, y)
				}
			}
		}),
		NoGrad: "a step between representable numbers has no derivative",
		Batch:  batchElementwise,
		Scalar: func(_ *ir.Node, x []scalar.Expr) scalar.Expr { return nextAfter(x[0], x[1]) },
	})
}

// nextAfter steps the bits, whose order as integers is that of positive floats.
func nextAfter(x, y scalar.Expr) scalar.Expr {
	bits := ir.I32
	if x.Type == ir.F64 {
		bits = ir.I64
	}
	zero, one := scalar.ConstF(x.Type, 0), scalar.ConstI(bits, 1)
	away := scalar.Eq(scalar.Gt(y, x), scalar.Gt(x, zero))
	at := scalar.Bitcast(x, bits)
	next := scalar.Bitcast(scalar.Select(away, scalar.Add(at, one), scalar.Sub(at, one)), x.Type)
	smallest := scalar.Bitcast(one, x.Type)
	next = scalar.Select(scalar.Eq(x, zero), scalar.Select(scalar.Gt(y, zero), smallest, scalar.Neg(smallest)), next)
	next = scalar.Select(scalar.Eq(x, y), y, next)
	return scalar.Select(scalar.Or(scalar.IsNaN(x), scalar.IsNaN(y)), scalar.ConstF(x.Type, math.NaN()), next)
}

// NextAfter returns the next representable number after x toward y, for f32 or f64,
// broadcast.
func NextAfter(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpNextAfter, x, y) }
