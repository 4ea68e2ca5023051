package onnx

import (
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func init() {
	add("Cast", func(c *call) []ir.Value { return one(cast(c, c.x(0), c.element("to", 0))) })
	add("CastLike", func(c *call) []ir.Value {
		if !c.has(1) {
			return one(c.x(1))
		}
		return one(cast(c, c.x(0), c.in[1].elem))
	})
	add("BitCast", func(c *call) []ir.Value {
		to := c.element("to", 0)
		x := c.x(0)
		if x.DType() == ir.Bool {
			x = ops.Convert(c.b, x, ir.U8)
		}
		if to == Bool {
			return one(ops.Ne(c.b, x, ops.ConstLike(c.b, x, 0)))
		}
		c.elems = []Element{to}
		return one(ops.Bitcast(c.b, x, to.DType()))
	})
	add("QuantizeLinear", single(quantize))
	add("DequantizeLinear", single(dequantize))
	add("DynamicQuantizeLinear", dynamicQuantize)
	add("MatMulInteger", func(c *call) []ir.Value { return one(ops.MatMul(c.b, centred(c, 0, 2), centred(c, 1, 3))) })
	add("QLinearMatMul", single(qlinearMatMul))
	add("QLinearConv", single(qlinearConv))
}

// cast converts to an element type of ONNX and records it as that of the result.
func cast(c *call, x ir.Value, to Element) ir.Value {
	c.elems = []Element{to}
	info, ok := elements[to]
	if !ok || !info.in.Valid() {
		c.failf("the type to cast to is %v: it must be one of tensors here", to)
		return ir.Value{}
	}
	switch {
	case info.isSmall():
		from := Element(0)
		if c.has(0) {
			from = c.in[0].elem
		}
		if from == to {
			return x
		}
		return toSmall(c, x, info)
	case info.held():
		return castHeld(c, x, info)
	case info.in == ir.Bool:
		return ops.Ne(c.b, x, ops.ConstLike(c.b, x, 0))
	case info.in.IsInteger() && x.DType().IsFloat() && info.in.Size() < 4:
		return ops.Convert(c.b, ops.Convert(c.b, x, ir.I32), info.in)
	}
	return ops.Convert(c.b, x, info.in)
}

// castHeld converts to integers of few bits: floats by truncation, then the low bits.
func castHeld(c *call, x ir.Value, info elementInfo) ir.Value {
	x = ops.Convert(c.b, x, ir.I32)
	span := float64(int64(1) << info.bits)
	low := ops.Const(c.b, ir.I32, float64(info.low))
	return ops.Convert(c.b, ops.Add(c.b, ops.Mod(c.b, ops.Sub(c.b, x, low), ops.Const(c.b, ir.I32, span)), low), info.in)
}

// toSmall converts to a float of 8 bits or less, by the attribute saturate.
func toSmall(c *call, x ir.Value, info elementInfo) ir.Value {
	saturate := c.int("saturate", 1) != 0
	x = ops.Convert(c.b, x, ir.F32)
	switch {
	case info.small != nil:
		x = roundSmall(c, x, *info.small, saturate)
	case saturate:
		return ops.ConvertSaturating(c.b, x, info.in)
	}
	return ops.Convert(c.b, x, info.in)
}

// roundSmall rounds f32 numbers to those of a smaller type, ties to even. Numbers beyond the largest
// become that with saturate, or where the type has no NaN, and otherwise NaN.
func roundSmall(c *call, x ir.Value, f smallFloat, saturate bool) ir.Value {
	b := c.b
	number := func(v float64) ir.Value { return ops.Const(b, ir.F32, v) }
	magnitude := ops.Abs(b, x)
	bits := ops.Bitcast(b, magnitude, ir.I32)
	exponent := ops.ShiftRight(b, bits, ops.Const(b, ir.I32, 23))
	// The distance between neighbours at this exponent, and below the smallest normal number.
	lowest := 1 - f.bias + 127 - f.mantissa
	if f.unsigned {
		lowest = 1
	}
	step := ops.Max(b, ops.Sub(b, exponent, ops.Const(b, ir.I32, float64(f.mantissa))), ops.Const(b, ir.I32, float64(max(lowest, 1))))
	quantum := ops.Bitcast(b, ops.ShiftLeft(b, step, ops.Const(b, ir.I32, 23)), ir.F32)
	var rounded ir.Value
	if f.unsigned {
		rounded = roundPower(c, bits, exponent)
	} else {
		rounded = ops.Mul(b, ops.Round(b, ops.Div(b, magnitude, quantum)), quantum)
	}
	over := number(math.NaN())
	if saturate || !f.nan {
		over = number(f.max)
	}
	rounded = ops.Select(b, ops.Gt(b, rounded, number(f.max)), over, rounded)
	nan := number(math.NaN())
	if !f.nan {
		nan = number(0)
	}
	rounded = ops.Select(b, ops.IsNaN(b, x), nan, rounded)
	if f.unsigned {
		return rounded
	}
	signed := ops.CopySign(b, rounded, x)
	if f.fnuz {
		signed = ops.Select(b, ops.Eq(b, rounded, number(0)), number(0), signed)
	}
	return signed
}

// roundPower rounds positive numbers, by their bits and exponents, to powers of two, up or to nearest by round_mode.
func roundPower(c *call, bits, exponent ir.Value) ir.Value {
	b := c.b
	fraction := ops.And(b, bits, ops.Const(b, ir.I32, 1<<23-1))
	whole := ops.ShiftLeft(b, exponent, ops.Const(b, ir.I32, 23))
	var up ir.Value
	switch c.text("round_mode", "up") {
	case "down":
		up = ops.Const(b, ir.Bool, 0)
	case "nearest":
		up = ops.Ge(b, fraction, ops.Const(b, ir.I32, 1<<22))
	default:
		up = ops.Gt(b, fraction, ops.Const(b, ir.I32, 0))
	}
	next := ops.Add(b, whole, ops.Const(b, ir.I32, 1<<23))
	return ops.Bitcast(b, ops.Select(b, up, next, whole), ir.F32)
}

// blocked returns a scale or zero point for each element of x: for all, along an axis, or for blocks
// of block_size along it.
func blocked(c *call, v, x ir.Value, axis int) ir.Value {
	switch {
	case v.Rank() == 0 || v.Rank() == 1 && v.Dim(0).Is(1):
		return ops.Reshape(c.b, v)
	case v.Rank() == 1:
		return ops.Reshape(c.b, v, alone(v.Dim(0), axis, x.Rank())...)
	}
	size := c.int("block_size", 0)
	if size < 1 || v.Rank() != x.Rank() {
		c.fail(ir.Shapef("the scale is %s and block_size %d: it must have the axes of the operand, %s, and blocks of 1 or more", v.Shape(), size, x.Shape()))
		return ir.Value{}
	}
	y := ops.Repeat(c.b, v, axis, size)
	if y.Dim(axis) != x.Dim(axis) {
		y = ops.SliceAxis(c.b, y, axis, ir.N(0), x.Dim(axis))
	}
	return y
}

func quantAxis(c *call, x ir.Value) int {
	if x.Rank() < 2 {
		return c.axisOf(min(c.int("axis", 1), max(x.Rank()-1, 0)), max(x.Rank(), 1))
	}
	return c.axis("axis", 1, x.Rank())
}

func quantize(c *call) ir.Value {
	x, scale := c.x(0), c.x(1)
	axis := quantAxis(c, x)
	to := c.element("output_dtype", Uint8)
	if c.has(2) {
		to = c.in[2].elem
	}
	d := ir.F32
	if e := Element(c.int("precision", 0)); e.DType().IsFloat() {
		d = e.DType()
	} else if scale.DType() == ir.F64 {
		d = ir.F64
	}
	y := ops.Div(c.b, ops.Convert(c.b, x, d), ops.Convert(c.b, blocked(c, scale, x, axis), d))
	info := elements[to]
	c.elems = []Element{to}
	if info.isSmall() {
		return toSmall(c, y, info)
	}
	y = ops.Round(c.b, ops.Convert(c.b, y, ir.F32))
	if c.has(2) {
		y = ops.Add(c.b, y, ops.Convert(c.b, blocked(c, c.x(2), x, axis), ir.F32))
	}
	return saturate(c, y, info)
}

// saturate converts whole floats to an integer type.
func saturate(c *call, y ir.Value, info elementInfo) ir.Value {
	low, high, _ := info.in.IntRange()
	if info.held() {
		low, high = info.low, info.high
	}
	if info.in.Size() >= 4 {
		return ops.Convert(c.b, y, info.in)
	}
	y = ops.Clamp(c.b, y, ops.Const(c.b, y.DType(), float64(low)), ops.Const(c.b, y.DType(), float64(high)))
	return ops.Convert(c.b, ops.Convert(c.b, y, ir.I32), info.in)
}

func dequantize(c *call) ir.Value {
	x, scale := c.x(0), c.x(1)
	axis := quantAxis(c, x)
	d := ir.F32
	if scale.DType() == ir.F64 {
		d = ir.F64
	}
	wide := ir.I32
	if x.DType().IsFloat() {
		wide = d
	}
	v := ops.Convert(c.b, x, wide)
	if c.has(2) {
		v = ops.Sub(c.b, v, ops.Convert(c.b, blocked(c, c.x(2), x, axis), wide))
	}
	y := ops.Mul(c.b, ops.Convert(c.b, v, d), ops.Convert(c.b, blocked(c, scale, x, axis), d))
	return ops.Convert(c.b, y, c.element("output_dtype", elementOf(scale.DType())).DType())
}

// dynamicQuantize quantizes to u8 by the range of the operand, which is made to include 0.
func dynamicQuantize(c *call) []ir.Value {
	x := c.x(0)
	b, zero := c.b, ops.Const(c.b, ir.F32, 0)
	axes := all(x.Rank())
	low := ops.Min(b, ops.ReduceMin(b, x, axes...), zero)
	high := ops.Max(b, ops.ReduceMax(b, x, axes...), zero)
	scale := ops.Div(b, ops.Sub(b, high, low), ops.Const(b, ir.F32, 255))
	safe := ops.Select(b, ops.Eq(b, scale, zero), ops.ConstLike(b, scale, 1), scale)
	info := elements[Uint8]
	point := ops.Round(b, ops.Clamp(b, ops.Sub(b, zero, ops.Div(b, low, safe)), zero, ops.Const(b, ir.F32, 255)))
	y := saturate(c, ops.Add(b, ops.Round(b, ops.Div(b, x, safe)), point), info)
	return []ir.Value{y, scale, saturate(c, point, info)}
}

// requantize scales i32 sums to the type of the zero point.
func requantize(c *call, sum ir.Value, scale, zero ir.Value, to Element) ir.Value {
	y := ops.Round(c.b, ops.Mul(c.b, ops.Convert(c.b, sum, ir.F32), scale))
	y = ops.Add(c.b, y, ops.Convert(c.b, zero, ir.F32))
	return saturate(c, y, elements[to])
}

// qlinearMatMul has the operands a, its scale and zero point, the same of b and of the result.
func qlinearMatMul(c *call) ir.Value {
	if !c.needs(8) {
		return ir.Value{}
	}
	line := func(v ir.Value, columns bool) ir.Value {
		switch {
		case v.Rank() == 1 && v.Dim(0).Is(1):
			return ops.Reshape(c.b, v)
		case v.Rank() == 1 && !columns:
			return ops.ExpandDims(c.b, v, 1)
		}
		return v
	}
	wide := func(x, zero ir.Value, columns bool) ir.Value {
		return ops.Sub(c.b, ops.Convert(c.b, x, ir.I32), ops.Convert(c.b, line(zero, columns), ir.I32))
	}
	sum := ops.MatMul(c.b, wide(c.x(0), c.x(2), false), wide(c.x(3), c.x(5), true))
	f32 := func(i int, columns bool) ir.Value { return ops.Convert(c.b, line(c.x(i), columns), ir.F32) }
	scale := ops.Div(c.b, ops.Mul(c.b, f32(1, false), f32(4, true)), f32(6, false))
	return requantize(c, sum, scale, line(c.x(7), false), c.in[7].elem)
}

// qlinearConv has the operands x, its scale and zero point, the same of w, scale and zero point of the
// result, and an i32 bias.
func qlinearConv(c *call) ir.Value {
	if !c.needs(8) {
		return ir.Value{}
	}
	x := ops.Sub(c.b, ops.Convert(c.b, c.x(0), ir.I32), ops.Convert(c.b, ops.Reshape(c.b, c.x(2)), ir.I32))
	w := ops.Convert(c.b, c.x(3), ir.I32)
	each := func(v ir.Value, axis int) ir.Value { // for each output channel
		if v.Rank() == 0 || v.Dim(0).Is(1) {
			return ops.Reshape(c.b, v)
		}
		return ops.Reshape(c.b, v, alone(v.Dim(0), axis, x.Rank())...)
	}
	w = ops.Sub(c.b, w, ops.Convert(c.b, each(c.x(5), 0), ir.I32))
	sum := conv(c, x, w, c.opt(8))
	scale := ops.Div(c.b, ops.Mul(c.b, ops.Reshape(c.b, c.x(1)), each(c.x(4), 1)), ops.Reshape(c.b, c.x(6)))
	return requantize(c, sum, scale, ops.Reshape(c.b, c.x(7)), c.in[7].elem)
}
