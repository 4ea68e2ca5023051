package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

type (
	unaryOp  = func(b *ir.Builder, x ir.Value) ir.Value
	binaryOp = func(b *ir.Builder, x, y ir.Value) ir.Value
	alphaOp  = func(b *ir.Builder, x ir.Value, alpha float64) ir.Value
)

func init() {
	for name, f := range map[string]unaryOp{
		"Abs": ops.Abs, "Acos": ops.Acos, "Acosh": ops.Acosh, "Asin": ops.Asin, "Asinh": ops.Asinh, "Atan": ops.Atan, "Atanh": ops.Atanh,
		"Ceil": ops.Ceil, "Cos": ops.Cos, "Cosh": ops.Cosh, "Erf": ops.Erf, "Exp": ops.Exp, "Floor": ops.Floor, "Log": ops.Log,
		"Neg": ops.Neg, "Reciprocal": ops.Reciprocal, "Relu": ops.Relu, "Round": ops.Round, "Sigmoid": ops.Sigmoid, "Sign": ops.Sign,
		"Sin": ops.Sin, "Sinh": ops.Sinh, "Softplus": ops.Softplus, "Softsign": ops.Softsign, "Sqrt": ops.Sqrt, "Tan": ops.Tan,
		"Tanh": ops.Tanh, "Not": ops.Not, "BitwiseNot": ops.Not, "IsNaN": ops.IsNaN, "Mish": ops.Mish, "Det": ops.Det, "Identity": identity,
	} {
		add(name, func(c *call) []ir.Value { return one(f(c.b, c.x(0))) })
	}
	for name, f := range map[string]binaryOp{
		"Add": ops.Add, "Sub": ops.Sub, "Mul": ops.Mul, "Div": ops.Div, "And": ops.And, "Or": ops.Or, "Xor": ops.Xor,
		"BitwiseAnd": ops.And, "BitwiseOr": ops.Or, "BitwiseXor": ops.Xor,
		"Equal": ops.Eq, "Less": ops.Lt, "LessOrEqual": ops.Le, "Greater": ops.Gt, "GreaterOrEqual": ops.Ge, "PRelu": prelu,
	} {
		add(name, func(c *call) []ir.Value { return one(f(c.b, c.x(0), c.x(1))) })
	}
	for name, f := range map[string]binaryOp{"Max": ops.Max, "Min": ops.Min, "Sum": ops.Add, "Mean": ops.Add} {
		add(name, func(c *call) []ir.Value { return one(combine(c, f)) })
	}
	for name, alpha := range map[string]struct {
		f         alphaOp
		otherwise float64
	}{"Elu": {ops.Elu, 1}, "Celu": {ops.Celu, 1}, "LeakyRelu": {ops.LeakyRelu, 0.01}, "ThresholdedRelu": {ops.ThresholdedRelu, 1}} {
		add(name, func(c *call) []ir.Value { return one(alpha.f(c.b, c.x(0), c.float("alpha", alpha.otherwise))) })
	}
	add("Pow", single(power))
	add("Mod", single(mod))
	add("Selu", single(selu))
	add("Gelu", func(c *call) []ir.Value {
		if c.text("approximate", "none") == "tanh" {
			return one(ops.GeluTanh(c.b, c.x(0)))
		}
		return one(ops.Gelu(c.b, c.x(0)))
	})
	add("HardSigmoid", func(c *call) []ir.Value {
		return one(hardSigmoid(c, c.x(0), c.float("alpha", 0.2), c.float("beta", 0.5)))
	})
	add("HardSwish", func(c *call) []ir.Value {
		return one(ops.Mul(c.b, c.x(0), hardSigmoid(c, c.x(0), 1.0/6, 0.5)))
	})
	add("Swish", func(c *call) []ir.Value {
		x := c.x(0)
		return one(ops.Mul(c.b, x, ops.Sigmoid(c.b, scaled(c, x, c.float("alpha", 1)))))
	})
	add("SwiGLU", swiglu)
	add("Shrink", single(shrink))
	add("IsInf", single(isInf))
	add("BitShift", single(bitShift))
	add("Where", func(c *call) []ir.Value { return one(ops.Select(c.b, c.x(0), c.x(1), c.x(2))) })
	addSince("Clip", 1, func(c *call) []ir.Value {
		x := c.x(0)
		number := func(v float64) ir.Value { return ops.Const(c.b, x.DType(), v) }
		return one(clip(c, x, number(c.float("min", math.Inf(-1))), number(c.float("max", math.Inf(1)))))
	})
	addSince("Clip", 11, func(c *call) []ir.Value { return one(clip(c, c.x(0), c.opt(1), c.opt(2))) })
	add("Dropout", dropout)
}

func identity(_ *ir.Builder, x ir.Value) ir.Value { return x }

// prelu imports PRelu, whose slope broadcasts.
func prelu(b *ir.Builder, x, slope ir.Value) ir.Value {
	return ops.Select(b, ops.Lt(b, x, ops.ConstLike(b, x, 0)), ops.Mul(b, x, slope), x)
}

// scaled returns x times a number.
func scaled(c *call, x ir.Value, by float64) ir.Value {
	if by == 1 {
		return x
	}
	return ops.Mul(c.b, x, ops.Const(c.b, x.DType(), by))
}

// offset returns x plus a number.
func offset(c *call, x ir.Value, by float64) ir.Value {
	return ops.Add(c.b, x, ops.Const(c.b, x.DType(), by))
}

// combine applies an op to all operands, from the left; Mean divides by their number.
func combine(c *call, f binaryOp) ir.Value {
	out := c.x(0)
	for i := 1; i < len(c.in); i++ {
		out = f(c.b, out, c.x(i))
	}
	if c.n.op == "Mean" {
		return scaled(c, out, 1/float64(len(c.in)))
	}
	return out
}

// power imports Pow. The result has the type of the base; the exponent may have another.
func power(c *call) ir.Value {
	x, y := c.x(0), c.x(1)
	if x.DType() == y.DType() && x.DType().IsFloat() {
		return ops.Pow(c.b, x, y)
	}
	d := ir.F32
	if x.DType().Size() == 8 || y.DType().Size() == 8 {
		d = ir.F64
	}
	return ops.Convert(c.b, ops.Pow(c.b, ops.Convert(c.b, x, d), ops.Convert(c.b, y, d)), x.DType())
}

// mod is Mod: with the sign of the divisor, or with fmod of the dividend.
func mod(c *call) ir.Value {
	if c.bool("fmod") {
		return ops.Rem(c.b, c.x(0), c.x(1))
	}
	return ops.Mod(c.b, c.x(0), c.x(1))
}

func selu(c *call) ir.Value {
	x := c.x(0)
	alpha, gamma := c.float("alpha", 1.67326319217681884765625), c.float("gamma", 1.05070102214813232421875)
	return scaled(c, ops.Elu(c.b, x, alpha), gamma)
}

func hardSigmoid(c *call, x ir.Value, alpha, beta float64) ir.Value {
	zero := ops.Const(c.b, x.DType(), 0)
	return ops.Clamp(c.b, offset(c, scaled(c, x, alpha), beta), zero, ops.Const(c.b, x.DType(), 1))
}

func shrink(c *call) ir.Value {
	x, bias, lambda := c.x(0), c.float("bias", 0), c.float("lambd", 0.5)
	d := x.DType()
	zero := ops.ConstLike(c.b, x, 0)
	at := func(v float64) ir.Value {
		if d.IsFloat() {
			return ops.Const(c.b, d, v)
		}
		return ops.Const(c.b, ir.F32, v)
	}
	compared := x
	if !d.IsFloat() {
		compared = ops.Convert(c.b, x, ir.F32)
	}
	number := func(v float64) ir.Value { return ops.Convert(c.b, at(v), d) }
	above := ops.Select(c.b, ops.Gt(c.b, compared, at(lambda)), ops.Sub(c.b, x, number(bias)), zero)
	return ops.Select(c.b, ops.Lt(c.b, compared, at(-lambda)), ops.Add(c.b, x, number(bias)), above)
}

func isInf(c *call) ir.Value {
	x := c.x(0)
	if x.DType() != ir.F32 && x.DType() != ir.F64 {
		x = ops.Convert(c.b, x, ir.F32)
	}
	inf := ops.IsInf(c.b, x)
	zero := ops.ConstLike(c.b, x, 0)
	if c.int("detect_negative", 1) == 0 {
		inf = ops.And(c.b, inf, ops.Gt(c.b, x, zero))
	}
	if c.int("detect_positive", 1) == 0 {
		inf = ops.And(c.b, inf, ops.Lt(c.b, x, zero))
	}
	return inf
}

func clip(c *call, x, low, high ir.Value) ir.Value {
	if low.Valid() {
		x = ops.Max(c.b, x, ops.Reshape(c.b, low))
	}
	if high.Valid() {
		x = ops.Min(c.b, x, ops.Reshape(c.b, high))
	}
	return x
}

// swiglu imports SwiGLU of two operands, gate and value, or of one with these as halves.
func swiglu(c *call) []ir.Value {
	x := c.x(0)
	gate := x
	if c.has(1) {
		x = c.x(1)
	} else {
		halves := ops.SplitEvenly(c.b, x, c.axis("axis", -1, x.Rank()), 2)
		gate, x = halves[0], halves[1]
	}
	return one(ops.Mul(c.b, ops.Mul(c.b, gate, ops.Sigmoid(c.b, scaled(c, gate, c.float("alpha", 1)))), x))
}

// dropout is Dropout as inference has it: the operand. A training mode with a ratio above 0 is
// refused, because ONNX does not say which numbers are drawn.
func dropout(c *call) []ir.Value {
	x := c.x(0)
	if c.opset >= 12 && c.has(2) {
		if on := c.known(2); on != nil && on.Len() == 1 && on.I[0] != 0 {
			ratio := []float64{0.5}
			if c.has(1) {
				ratio = c.knownFloats(1)
			}
			if len(ratio) != 1 || ratio[0] != 0 {
				c.failf("training_mode is true: it must be false, as the numbers drawn are not defined")
			}
		}
	}
	d := ir.Bool
	if c.opset < 10 {
		d = x.DType()
	}
	return []ir.Value{x, ops.Const(c.b, d, 1, x.Shape()...)}
}

// bitShift shifts by the bits of the second operand taken as an unsigned number: by the width or more
// nothing is left, but the sign of a signed number that is shifted to the right.
func bitShift(c *call) ir.Value {
	x, y := c.x(0), c.x(1)
	if !x.DType().IsInteger() || !y.DType().IsInteger() {
		c.fail(ir.DTypef("the operands are of %s and %s: they must be integers", x.DType(), y.DType()))
		return ir.Value{}
	}
	width := x.DType().Bits()
	number := func(v int) ir.Value { return ops.Const(c.b, y.DType(), float64(v)) }
	inside := ops.And(c.b, ops.Ge(c.b, y, number(0)), ops.Lt(c.b, y, number(width)))
	if c.text("direction", "") == "LEFT" {
		shifted := ops.ShiftLeft(c.b, x, ops.Select(c.b, inside, y, number(0)))
		return ops.Select(c.b, inside, shifted, ops.Const(c.b, x.DType(), 0))
	}
	shifted := ops.ShiftRight(c.b, x, ops.Select(c.b, inside, y, number(width-1)))
	if x.DType().IsSigned() {
		return shifted
	}
	return ops.Select(c.b, inside, shifted, ops.Const(c.b, x.DType(), 0))
}
