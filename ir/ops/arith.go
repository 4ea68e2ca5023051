package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The arithmetic ops.
const (
	OpAdd     ir.Op = "add"
	OpSub     ir.Op = "sub"
	OpMul     ir.Op = "mul"
	OpMulZero ir.Op = "mul_zero"
	OpDiv     ir.Op = "div"
	OpRem     ir.Op = "rem"
	OpNeg     ir.Op = "neg"
	OpAbs     ir.Op = "abs"
	OpSign    ir.Op = "sign"
)

func init() {
	defineSums()
	defineProducts()
	defineQuotients()
	defineSigns()
}

var addition = scalarReference{
	float:   func(x []float64) float64 { return x[0] + x[1] },
	integer: func(_ ir.DType, x []int64) int64 { return x[0] + x[1] },
	complex: func(x []complex128) complex128 { return x[0] + x[1] },
}

var multiplication = scalarReference{
	float:   func(x []float64) float64 { return x[0] * x[1] },
	integer: func(_ ir.DType, x []int64) int64 { return x[0] * x[1] },
	complex: func(x []complex128) complex128 { return x[0] * x[1] },
}

func defineSums() {
	defineBinary(binary{
		op: OpAdd, doc: "x + y. Integers wrap.", types: numbers, scalar: scalar.Add,
		reference: addition,
		jvp: func(b *ir.Builder, _ *ir.Node, _, _, t []ir.Value) []ir.Value {
			return []ir.Value{addTangents(b, t[0], t[1])}
		},
		transpose: transposeEach(func(_ *ir.Builder, _ *ir.Node, _ int, _ []ir.Value, ct ir.Value) ir.Value {
			return ct
		}),
	})
	defineBinary(binary{
		op: OpSub, doc: "x − y. Integers wrap.", types: numbers, scalar: scalar.Sub,
		reference: scalarReference{
			float:   func(x []float64) float64 { return x[0] - x[1] },
			integer: func(_ ir.DType, x []int64) int64 { return x[0] - x[1] },
			complex: func(x []complex128) complex128 { return x[0] - x[1] },
		},
		jvp: func(b *ir.Builder, _ *ir.Node, _, _, t []ir.Value) []ir.Value {
			switch {
			case t[0].Valid() && t[1].Valid():
				return []ir.Value{Sub(b, t[0], t[1])}
			case t[1].Valid():
				return []ir.Value{Neg(b, t[1])}
			}
			return []ir.Value{t[0]}
		},
		transpose: transposeEach(func(b *ir.Builder, _ *ir.Node, operand int, _ []ir.Value, ct ir.Value) ir.Value {
			if operand == 1 {
				return Neg(b, ct)
			}
			return ct
		}),
	})
}

func defineProducts() {
	masked := multiplication
	masked.float = func(x []float64) float64 {
		if x[0] == 0 || x[1] == 0 {
			return 0
		}
		return x[0] * x[1]
	}
	masked.complex = func(x []complex128) complex128 {
		if x[0] == 0 || x[1] == 0 {
			return 0
		}
		return x[0] * x[1]
	}
	other := func(b *ir.Builder, n *ir.Node, linear []bool, in, ct []ir.Value) []ir.Value {
		out := make([]ir.Value, 2)
		if ct[0].Valid() && onlyLinear(b, n, linear, 0, 1) {
			for i := range out {
				if linear[i] {
					out[i] = scale(b, ct[0], in[1-i])
				}
			}
		}
		return out
	}
	slopes := [2]slope2{
		func(_ *ir.Builder, _, y, _ ir.Value) ir.Value { return y },
		func(_ *ir.Builder, x, _, _ ir.Value) ir.Value { return x },
	}
	defineBinary(binary{
		op: OpMul, doc: "x · y. Integers wrap.", types: numbers, scalar: scalar.Mul, reference: multiplication,
		slopes: slopes, transpose: other,
	})
	defineBinary(binary{
		op: OpMulZero, doc: "x · y, but 0 wherever either operand is 0, even if the other is infinite or NaN: the product of a " +
			"tangent with a coefficient, which keeps masked tangents at 0. Zero is absorbing, so the product is associative and a chain of " +
			"coefficients gives the same result in forward and reverse order.",
		types: numbers, scalar: scalar.MulZero, reference: masked,
		slopes: slopes, transpose: other,
	})
}

func defineQuotients() {
	defineBinary(binary{
		op: OpDiv, doc: "x / y. Integers are truncated toward zero; x / 0 is x for them.",
		types: numbers, scalar: scalar.Div,
		reference: scalarReference{
			float:   func(x []float64) float64 { return x[0] / x[1] },
			integer: func(d ir.DType, x []int64) int64 { q, _ := divideInts(d, x[0], x[1]); return q },
			complex: func(x []complex128) complex128 { return x[0] / x[1] },
		},
		jvp: jvpDiv,
		transpose: transposeOperand(0, func(b *ir.Builder, _ *ir.Node, in []ir.Value, ct ir.Value) ir.Value {
			return overScale(b, ct, in[1])
		}),
	})
	defineBinary(binary{
		op: OpRem, doc: "The remainder of x / y truncated toward zero, with the sign of x (C's fmod). For integers x rem 0 is 0.",
		types: reals, scalar: scalar.Rem,
		reference: scalarReference{
			float:   float2(math.Mod),
			integer: func(d ir.DType, x []int64) int64 { _, r := divideInts(d, x[0], x[1]); return r },
		},
		jvp: jvpRem,
		// quotients from 1 to 2
	})
}

// divideInts returns the quotient and remainder of two integers; a zero divisor is
// replaced by one.
func divideInts(d ir.DType, x, y int64) (quotient, remainder int64) {
	if y == 0 {
		y = 1
	}
	if d == ir.U64 {
		return int64(uint64(x) / uint64(y)), int64(uint64(x) % uint64(y))
	}
	return x / y, x % y
}

// overScale returns t / c: a plain quotient if c is a finite nonzero constant, otherwise a
// [MulZero] product.
func overScale(b *ir.Builder, t, c ir.Value) ir.Value {
	if isFinite(c) && isNonzero(c) {
		return Div(b, t, c)
	}
	return scale(b, t, Div(b, OnesLike(b, c), c))
}

func jvpDiv(b *ir.Builder, _ *ir.Node, in, out, t []ir.Value) []ir.Value {
	by := [2]ir.Value{}
	if t[0].Valid() {
		by[0] = overScale(b, t[0], in[1])
	}
	if t[1].Valid() {
		by[1] = scale(b, t[1], Neg(b, Div(b, out[0], in[1])))
	}
	return []ir.Value{addTangents(b, by[0], by[1])}
}

// jvpRem differentiates x − y·trunc(x/y), where the quotient is piecewise constant.
func jvpRem(b *ir.Builder, _ *ir.Node, in, _, t []ir.Value) []ir.Value {
	if !t[1].Valid() {
		return []ir.Value{t[0]}
	}
	quotient := Trunc(b, Div(b, in[0], in[1]))
	return []ir.Value{addTangents(b, t[0], scale(b, t[1], Neg(b, quotient)))}
}

func defineSigns() {
	defineUnary(unary{
		op: OpNeg, doc: "−x. Unsigned integers wrap.", types: numbers, scalar: scalar.Neg,
		reference: scalarReference{
			float:   func(x []float64) float64 { return -x[0] },
			integer: func(_ ir.DType, x []int64) int64 { return -x[0] },
			complex: func(x []complex128) complex128 { return -x[0] },
		},
		linear: Neg,
	})
	defineUnary(unary{
		op: OpAbs, doc: "|x|. The derivative at 0 is 0. The smallest signed integer is its own absolute value.",
		types: reals, scalar: scalar.Abs,
		reference: scalarReference{
			float: float1(math.Abs),
			integer: func(d ir.DType, x []int64) int64 {
				if d.IsSigned() && x[0] < 0 {
					return -x[0]
				}
				return x[0]
			},
		},
		slope: func(b *ir.Builder, x, _ ir.Value) ir.Value { return Sign(b, x) },
	})
	defineUnary(unary{
		op: OpSign, doc: "−1, 0 or 1 as x is negative, zero or positive; NaN for NaN. The derivative is 0, also at the jump.",
		types: reals, scalar: scalar.Sign,
		reference: scalarReference{
			float: func(x []float64) float64 {
				if x[0] == 0 || math.IsNaN(x[0]) {
					return x[0]
				}
				return math.Copysign(1, x[0])
			},
			integer: func(d ir.DType, x []int64) int64 { return int64(compareInts(d, x[0], 0)) },
		},
	})
}

// Add returns x + y, broadcast. Integers wrap.
func Add(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpAdd, x, y) }

// Sub returns x − y, broadcast. Integers wrap.
func Sub(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpSub, x, y) }

// Mul returns x · y, broadcast. Integers wrap.
func Mul(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpMul, x, y) }

// MulZero returns x · y, broadcast, but 0 wherever either operand is 0, even if the other
// is infinite or NaN.
func MulZero(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpMulZero, x, y) }

// Div returns x / y, broadcast. Integers are truncated toward zero, and x / 0 is x for
// them.
func Div(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpDiv, x, y) }

// Rem returns the remainder of x / y truncated toward zero, with the sign of x, broadcast.
// For integers x rem 0 is 0.
func Rem(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpRem, x, y) }

// Neg returns −x.
func Neg(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpNeg, nil, x) }

// Abs returns |x|. Its derivative at 0 is 0.
func Abs(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpAbs, nil, x) }

// Sign returns −1, 0 or 1 by the sign of x, and NaN for NaN.
func Sign(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSign, nil, x) }

// Elementwise maximum and minimum.
const (
	OpMax ir.Op = "max"
	OpMin ir.Op = "min"
)

func init() {
	defineBinary(binary{
		op: OpMax, doc: "The larger of x and y, NaN if one is NaN. Where they are equal each has derivative 1/2.",
		types: reals, scalar: scalar.Max,
		reference: scalarReference{
			float: float2(larger),
			integer: func(d ir.DType, x []int64) int64 {
				if compareInts(d, x[0], x[1]) > 0 {
					return x[0]
				}
				return x[1]
			},
		},
		slopes: [2]slope2{
			func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return share(b, x, y) },
			func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return share(b, y, x) },
		},
	})
	defineBinary(binary{
		op: OpMin, doc: "The smaller of x and y, NaN if one is NaN. Where they are equal each has derivative 1/2.",
		types: reals, scalar: scalar.Min,
		reference: scalarReference{
			float: float2(smaller),
			integer: func(d ir.DType, x []int64) int64 {
				if compareInts(d, x[0], x[1]) < 0 {
					return x[0]
				}
				return x[1]
			},
		},
		slopes: [2]slope2{
			func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return share(b, y, x) },
			func(b *ir.Builder, x, y, _ ir.Value) ir.Value { return share(b, x, y) },
		},
	})
}

// larger and smaller give NaN if one is NaN. Those of package math take an
// infinity over a NaN.
func larger(x, y float64) float64  { return max(x, y) }
func smaller(x, y float64) float64 { return min(x, y) }

// share returns ∂max(x, y)/∂x: 1 where x is larger, 1/2 at ties, 0 where y is larger, and
// NaN where the result is.
func share(b *ir.Builder, x, y ir.Value) ir.Value {
	level := func(v float64) ir.Value { return ConstLike(b, x, v) }
	lost := Select(b, Lt(b, x, y), level(0), level(math.NaN()))
	return Select(b, Gt(b, x, y), level(1), Select(b, Eq(b, x, y), level(0.5), lost))
}

// compareInts returns -1, 0 or 1 as x is less than, equal to or greater than y as integers
// of type d.
func compareInts(d ir.DType, x, y int64) int {
	below := x < y
	if d == ir.U64 {
		below = uint64(x) < uint64(y)
	}
	switch {
	case x == y:
		return 0
	case below:
		return -1
	}
	return 1
}

// Max returns the larger of x and y, broadcast; NaN propagates. Ties have derivative 1/2
// each.
func Max(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpMax, x, y) }

// Min returns the smaller of x and y, broadcast; NaN propagates. Ties have derivative 1/2
// each.
func Min(b *ir.Builder, x, y ir.Value) ir.Value { return broadcasting(b, OpMin, x, y) }

// Rounding to integers. Derivatives are 0, also at the jumps.
const (
	OpFloor ir.Op = "floor"
	OpCeil  ir.Op = "ceil"
	OpRound ir.Op = "round"
	OpTrunc ir.Op = "trunc"
)

func init() {
	for _, r := range []struct {
		op     ir.Op
		doc    string
		float  func(float64) float64
		scalar func(scalar.Expr) scalar.Expr
	}{
		{OpFloor, "⌊x⌋, the largest integer not above x.", math.Floor, scalar.Floor},
		{OpCeil, "⌈x⌉, the smallest integer not below x.", math.Ceil, scalar.Ceil},
		{OpRound, "The integer nearest to x, ties to even.", math.RoundToEven, scalar.Round},
		{OpTrunc, "x rounded toward zero.", math.Trunc, scalar.Trunc},
	} {
		defineUnary(unary{
			op: r.op, doc: r.doc + " The derivative is 0, also at the jumps.",
			types: floats, scalar: r.scalar, reference: scalarReference{float: float1(r.float)},
		})
	}
}

// Floor returns the largest integer not above x.
func Floor(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpFloor, nil, x) }

// Ceil returns the smallest integer not below x.
func Ceil(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpCeil, nil, x) }

// Round returns the integer nearest to x, ties to even.
func Round(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRound, nil, x) }

// Trunc returns x rounded toward zero.
func Trunc(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpTrunc, nil, x) }

// Lerp returns x + weight·(y − x), broadcast, of one float type. It is computed from the nearer end, so that
// a weight of 1 gives y (torch.lerp).
func Lerp(b *ir.Builder, x, y, weight ir.Value) ir.Value {
	const op ir.Op = "lerp"
	for _, v := range []ir.Value{x, y, weight} {
		if !b.Require(op, "operand", v.Valid()) {
			return ir.Value{}
		}
		if err := floats.check(v.DType()); err != nil {
			b.Failf(op, []ir.Value{x, y, weight}, ir.DTypef("an operand is %s, not of a float type", v.Type()))
			return ir.Value{}
		}
	}
	difference := Sub(b, y, x)
	in := Broadcast(b, op, Add(b, x, Mul(b, weight, difference)), Sub(b, y, Mul(b, Sub(b, OnesLike(b, weight), weight), difference)), Lt(b, weight, ConstLike(b, weight, 0.5)))
	if b.Err() != nil {
		return ir.Value{}
	}
	return Select(b, in[2], in[0], in[1])
}
