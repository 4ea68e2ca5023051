package ops

import (
	"cmp"
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Affine quantisation by a scale and a zero point.
const (
	OpQuantizeLinear   ir.Op = "quantize_linear"
	OpDequantizeLinear ir.Op = "dequantize_linear"
	OpQMatMul          ir.Op = "qmatmul"
	OpQConv2D          ir.Op = "qconv2d"
)

// LinearQuantAttrs hold the quantisation axis, for scales and zero points per axis, and
// the integer type.
type LinearQuantAttrs struct {
	Axis  int
	DType ir.DType
}

// Visit shows the attributes.
func (a *LinearQuantAttrs) Visit(v ir.AttrVisitor) {
	v.Int("axis", &a.Axis)
	v.DType("dtype", &a.DType)
}

// RequantAttrs describe a quantised product: the zero points of both factors and of the
// result, and the multiplier of the sums, the product of the factors' scales over the
// scale of the result (0 means 1). The result is i8 if DType is left out.
type RequantAttrs struct {
	XZero, WZero, OutZero int
	Mult                  float64
	DType                 ir.DType
}

// Visit shows the attributes.
func (a *RequantAttrs) Visit(v ir.AttrVisitor) {
	v.Int("x_zero", &a.XZero)
	v.Int("w_zero", &a.WZero)
	v.Int("out_zero", &a.OutZero)
	v.Float("mult", &a.Mult)
	v.DType("dtype", &a.DType)
}

// QConv2DAttrs are the attributes of the convolution and of the quantisation.
type QConv2DAttrs struct {
	Conv2DAttrs
	RequantAttrs
}

// Visit shows the attributes.
func (a *QConv2DAttrs) Visit(v ir.AttrVisitor) {
	a.Conv2DAttrs.Visit(v)
	a.RequantAttrs.Visit(v)
}

func init() {
	defineLinearQuantization()
	defineQuantizedProducts()
}

// defineLinearQuantization defines the conversions between floats and integers with a scale and a zero point.
func defineLinearQuantization() {
	parametersDoc := []string{
		"scale and zero, which may be left out for 0, are scalars (per tensor) or vectors [size of axis] (per axis)",
		"scale has the type of the float side, zero that of the integer side",
	}
	defineComposite(composite{
		op: OpQuantizeLinear, operands: []string{"x", "scale", "zero"}, optional: 1, types: floats, noGrad: "integer result",
		doc:         "x / scale rounded to the nearest integer, ties to even, plus zero, saturated to an integer type (ONNX QuantizeLinear).",
		newAttrs:    func() ir.Attrs { return &LinearQuantAttrs{DType: ir.I8} },
		constraints: append(parametersDoc, "dtype is an integer type of at most 16 bits, or i32, which then holds numbers of 8 bits, for devices without such a type"),
		check: func(n *ir.Node) error {
			if d := n.Attrs().(*LinearQuantAttrs).DType; !isQuantType(d) {
				return ir.DTypef("dtype is %s, not an integer type of at most 16 bits or i32", d)
			}
			return checkScale(n, n.Input(0).DType(), n.Attrs().(*LinearQuantAttrs).DType)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a, x := n.Attrs().(*LinearQuantAttrs), wide(b, in[0])
			q := Round(b, Div(b, x, alongAxis(b, wide(b, in[1]), x, a.Axis)))
			if len(in) > 2 {
				q = Add(b, q, alongAxis(b, Convert(b, in[2], q.DType()), x, a.Axis))
			}
			return limited(b, q, a.DType)
		},
	})
	defineComposite(composite{
		op: OpDequantizeLinear, operands: []string{"x", "scale", "zero"}, optional: 1, types: integers,
		doc:      "(x − zero)·scale (ONNX DequantizeLinear). The derivative by scale is x − zero.",
		newAttrs: func() ir.Attrs { return &AxisAttrs{} }, constraints: parametersDoc,
		check: func(n *ir.Node) error {
			if err := floats.checkOperand(n, 1); err != nil {
				return err
			}
			return checkScale(n, n.Input(1).DType(), n.Input(0).DType())
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			axis, x, scale := n.Attrs().(*AxisAttrs).Axis, in[0], wide(b, in[1])
			x = Convert(b, x, scale.DType())
			if len(in) > 2 {
				x = Sub(b, x, alongAxis(b, Convert(b, in[2], scale.DType()), x, axis))
			}
			return Convert(b, Mul(b, x, alongAxis(b, scale, x, axis)), in[1].DType())
		},
	})
}

// defineQuantizedProducts defines the products of integers whose results are scaled to integers.
func defineQuantizedProducts() {
	productDoc := []string{
		"x and w are of one integer type, the bias, which may be left out, is i32[columns of w]",
		"mult is finite; dtype is an integer type of at most 16 bits, or i32, which then holds numbers of 8 bits",
	}
	const roundingDoc = " Sums accumulate exactly in i32; they are multiplied by mult in f32, rounded to the nearest integer, ties to even, and saturated."
	defineComposite(composite{
		op: OpQMatMul, operands: []string{"x", "w", "bias"}, optional: 1, types: integers, noGrad: "integer result",
		doc:         "((x − x_zero)·(w − w_zero) + bias)·mult + out_zero for x [..., k] and w [k, n]: a quantised matrix product (ONNX QLinearMatMul)." + roundingDoc,
		newAttrs:    func() ir.Attrs { return &RequantAttrs{Mult: 1, DType: ir.I8} },
		constraints: productDoc,
		check:       func(n *ir.Node) error { return checkRequant(n, n.Attrs().(*RequantAttrs)) },
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := n.Attrs().(*RequantAttrs)
			x, w := a.centred(b, in)
			return a.requantized(b, MatMul(b, x, w), in[2:])
		},
	})
	defineComposite(composite{
		op: OpQConv2D, operands: []string{"x", "w", "bias"}, optional: 1, types: integers, noGrad: "integer result",
		doc:         "conv2d of x − x_zero and w − w_zero, plus bias, times mult, plus out_zero: a quantised convolution (ONNX QLinearConv). Padding is x_zero." + roundingDoc,
		newAttrs:    func() ir.Attrs { return &QConv2DAttrs{RequantAttrs: RequantAttrs{Mult: 1, DType: ir.I8}} },
		constraints: append([]string{"x, w and the attributes of the convolution are those of conv2d"}, productDoc...),
		check: func(n *ir.Node) error {
			if n.Input(0).Rank() != 4 || n.Input(1).Rank() != 4 {
				return ir.Shapef("x of rank %d and a weight of rank %d, both must be 4", n.Input(0).Rank(), n.Input(1).Rank())
			}
			return checkRequant(n, &n.Attrs().(*QConv2DAttrs).RequantAttrs)
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			a := *n.Attrs().(*QConv2DAttrs)
			a.complete()
			x, w := a.centred(b, in)
			return a.requantized(b, ConvGeneral(b, x, w, a.general()), in[2:])
		},
	})
}

func isQuantType(d ir.DType) bool { return d.IsInteger() && d.Size() <= 2 || d == ir.I32 }

// limited saturates integral floats to an integer type; i32 holds 8 bits.
func limited(b *ir.Builder, q ir.Value, d ir.DType) ir.Value {
	low, high, _ := d.IntRange()
	if d == ir.I32 {
		low, high = math.MinInt8, math.MaxInt8
	}
	return Convert(b, Clamp(b, q, ConstLike(b, q, float64(low)), ConstLike(b, q, float64(high))), d)
}

// checkScale reports an error unless operand 1 is a scale for operand 0 and operand 2, if
// present, a matching zero point.
func checkScale(n *ir.Node, float, integer ir.DType) error {
	axis := 0
	switch a := n.Attrs().(type) {
	case *LinearQuantAttrs:
		axis = a.Axis
	case *AxisAttrs:
		axis = a.Axis
	}
	x, scale := n.Input(0).Type(), n.Input(1).Type()
	if len(scale.Shape) > 0 {
		if err := checkAxes([]int{axis}, len(x.Shape)); err != nil {
			return err
		}
		if want := (ir.Shape{x.Shape[axis]}); !scale.Shape.Equal(want) {
			return ir.Shapef("the scale is %s, neither [] nor %s", scale.Shape, want)
		}
	}
	if scale.DType != float {
		return ir.DTypef("scale is %s, not %s", scale, float)
	}
	if len(n.Inputs()) > 2 && !n.Input(2).Type().Equal(ir.Type{DType: integer, Shape: scale.Shape}) {
		return ir.Shapef("the zero point is %s, not %s", n.Input(2).Type(), ir.Type{DType: integer, Shape: scale.Shape})
	}
	return nil
}

// alongAxis reshapes a vector to broadcast along an axis of x; a scalar is unchanged.
func alongAxis(b *ir.Builder, v, x ir.Value, axis int) ir.Value {
	if v.Rank() == 0 || b.Err() != nil {
		return v
	}
	return BroadcastInDim(b, v, x.Shape(), []int{axis})
}

func checkRequant(n *ir.Node, a *RequantAttrs) error {
	x, w := n.Input(0), n.Input(1)
	if x.DType() != w.DType() {
		return ir.DTypef("x is %s, w is %s", x.Type(), w.Type())
	}
	if !isQuantType(a.DType) {
		return ir.DTypef("dtype is %s, not an integer type of at most 16 bits or i32", a.DType)
	}
	if a.Mult-a.Mult != 0 {
		return ir.Attrf("mult is %v, not finite", a.Mult)
	}
	if len(n.Inputs()) > 2 && !n.Input(2).Type().Equal(ir.TypeOf(ir.I32, w.Dim(-1))) {
		return ir.Shapef("the bias is %s, not %s", n.Input(2).Type(), ir.TypeOf(ir.I32, w.Dim(-1)))
	}
	return nil
}

// centred returns both factors minus their zero points, as i32.
func (a *RequantAttrs) centred(b *ir.Builder, in []ir.Value) (x, w ir.Value) {
	less := func(v ir.Value, zero int) ir.Value { return minus(b, Convert(b, v, ir.I32), zero) }
	return less(in[0], a.XZero), less(in[1], a.WZero)
}

// requantized rescales sums to the type of the result.
func (a *RequantAttrs) requantized(b *ir.Builder, sum ir.Value, bias []ir.Value) ir.Value {
	y := Convert(b, addBias(b, sum, bias), ir.F32)
	y = Round(b, Mul(b, y, ConstLike(b, y, a.Mult)))
	return limited(b, Add(b, y, ConstLike(b, y, float64(a.OutZero))), a.DType)
}

// QuantizeLinear returns x / scale rounded to the nearest integer, plus zero, saturated to
// type d (ONNX QuantizeLinear). scale and zero are scalars or vectors along axis; zero may
// be left out (the zero Value).
func QuantizeLinear(b *ir.Builder, x, scale, zero ir.Value, axis int, d ir.DType) ir.Value {
	return b.Add1(OpQuantizeLinear, &LinearQuantAttrs{fromFront([]int{axis}, x.Rank())[0], d}, given(x, scale, zero)...)
}

// DequantizeLinear returns (x − zero)·scale (ONNX DequantizeLinear): see [QuantizeLinear].
func DequantizeLinear(b *ir.Builder, x, scale, zero ir.Value, axis int) ir.Value {
	return b.Add1(OpDequantizeLinear, axisAttrs(x, axis), given(x, scale, zero)...)
}

// fill sets the defaults.
func (a *RequantAttrs) fill() {
	a.Mult, a.DType = cmp.Or(a.Mult, 1), cmp.Or(a.DType, ir.I8)
}

// QMatMul returns the quantised matrix product of x [..., k] and w [k, n], of one integer
// type (ONNX QLinearMatMul): see [RequantAttrs]. bias, i32[n], may be left out (the zero
// Value).
func QMatMul(b *ir.Builder, x, w, bias ir.Value, a RequantAttrs) ir.Value {
	a.fill()
	return b.Add1(OpQMatMul, &a, given(x, w, bias)...)
}

// QConv2D returns the quantised [Conv2D] of x and w, of one integer type (ONNX
// QLinearConv): see [RequantAttrs]. bias, i32[out], may be left out (the zero Value).
func QConv2D(b *ir.Builder, x, w, bias ir.Value, a QConv2DAttrs) ir.Value {
	a.complete()
	a.fill()
	return b.Add1(OpQConv2D, &a, given(x, w, bias)...)
}
