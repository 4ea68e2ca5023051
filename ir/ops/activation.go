package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Smooth activation functions and relu, composites of elementwise ops.
const (
	OpRelu       ir.Op = "relu"
	OpGelu       ir.Op = "gelu"
	OpGeluTanh   ir.Op = "gelu_tanh"
	OpQuickGelu  ir.Op = "quick_gelu"
	OpSilu       ir.Op = "silu"
	OpSoftplus   ir.Op = "softplus"
	OpLogSigmoid ir.Op = "log_sigmoid"
	OpMish       ir.Op = "mish"
	OpSoftsign   ir.Op = "softsign"
	OpSquareplus ir.Op = "squareplus"
	OpTanhShrink ir.Op = "tanh_shrink"
)

// AlphaAttrs hold the parameter of an activation function.
type AlphaAttrs struct{ Alpha float64 }

// Visit shows the attributes.
func (a *AlphaAttrs) Visit(v ir.AttrVisitor) { v.Float("alpha", &a.Alpha) }

// activation describes a composite of one operand.
type activation struct {
	op  ir.Op
	doc string
	// alpha is the default of the parameter, 0 where there is none.
	alpha float64
	// body computes the function of x in f32 or f64, and the parameter.
	body func(b *ir.Builder, x ir.Value, alpha float64) ir.Value
	// slope returns the derivative at x, in f32 or f64. If nil, the body is differentiated.
	slope func(b *ir.Builder, x ir.Value) ir.Value
	// tangent returns the tangent of the result y from y and that of the operand, for
	// functions whose derivative depends on y alone: then y, which the next layer keeps
	// anyway, is the only residual.
	tangent func(b *ir.Builder, y, t ir.Value) ir.Value
}

func init() {
	defineActivations(
		activation{
			op: OpRelu, doc: "0 where x ≤ 0 and x elsewhere, also where it is NaN. Its derivative at 0 is 0.",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return positivePart(b, x) },
			tangent: func(b *ir.Builder, y, t ir.Value) ir.Value {
				return Select(b, Le(b, y, ZerosLike(b, y)), ZerosLike(b, t), t)
			},
		},
		activation{
			op:   OpGelu,
			doc:  "x·Φ(x), where Φ is the distribution function of the standard normal distribution: x/2·(1 + erf(x/√2)).",
			body: gelu, slope: geluSlope,
		},
		activation{
			op:   OpGeluTanh,
			doc:  "The approximation x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) of gelu.",
			body: geluTanh, slope: geluTanhSlope,
		},
		activation{
			op: OpQuickGelu, doc: "The approximation x·sigmoid(1.702·x) of gelu.",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value {
				return Mul(b, x, Sigmoid(b, Mul(b, x, ConstLike(b, x, 1.702))))
			},
		},
		activation{
			op: OpSilu, doc: "x·sigmoid(x), also called swish.",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return Mul(b, x, Sigmoid(b, x)) },
		},
		activation{
			op: OpSoftplus, doc: "log(1 + e^x), computed stably. Its derivative is sigmoid(x), smooth also at 0.",
			body: softplus, slope: Sigmoid,
		},
		activation{
			op: OpLogSigmoid, doc: "log(sigmoid(x)), which is −softplus(−x).",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return Neg(b, Softplus(b, Neg(b, x))) },
		},
		activation{
			op: OpMish, doc: "x·tanh(softplus(x)) (Misra, Mish: A Self Regularized Non-Monotonic Activation Function).",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return Mul(b, x, Tanh(b, Softplus(b, x))) },
		},
		activation{
			op: OpSoftsign, doc: "x / (1 + |x|). The derivative at 0 is 1; the second one jumps there and is 0.",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value {
				return Div(b, x, Add(b, Abs(b, x), OnesLike(b, x)))
			},
		},
		activation{
			op: OpSquareplus, alpha: 4, doc: "(x + √(x² + alpha)) / 2, for alpha > 0.",
			body: squareplus,
		},
		activation{
			op: OpTanhShrink, doc: "x − tanh(x).",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return Sub(b, x, Tanh(b, x)) },
		},
	)
}

// defineActivations defines composites of one float operand, computed in f32
// for narrower types.
func defineActivations(list ...activation) {
	for _, a := range list {
		c := composite{
			op: a.op, doc: a.doc, types: floats,
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				return Convert(b, a.body(b, wide(b, in[0]), alphaOf(n)), in[0].DType())
			},
		}
		if a.alpha != 0 {
			c.newAttrs = func() ir.Attrs { return &AlphaAttrs{a.alpha} }
			c.check = checkAlpha
		}
		if a.slope != nil || a.tangent != nil {
			c.jvp = func(b *ir.Builder, _ *ir.Node, in, out, t []ir.Value) []ir.Value {
				if a.tangent != nil {
					return []ir.Value{a.tangent(b, out[0], t[0])}
				}
				return []ir.Value{Convert(b, scale(b, wide(b, t[0]), a.slope(b, wide(b, in[0]))), in[0].DType())}
			}
		}
		defineComposite(c)
	}
}

// alphaOf returns the parameter of an activation function, 0 if it has none.
func alphaOf(n *ir.Node) float64 {
	if a, ok := n.Attrs().(*AlphaAttrs); ok {
		return a.Alpha
	}
	return 0
}

func checkAlpha(n *ir.Node) error {
	if a := alphaOf(n); a-a != 0 {
		return ir.Attrf("alpha is %v, not finite", a)
	}
	return nil
}

// Relu returns max(x, 0), for x of a float type. Its derivative at 0 is 0.
func Relu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRelu, nil, x) }

// Silu returns x·sigmoid(x), for x of a float type (also called swish).
func Silu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSilu, nil, x) }

// Swish returns x·sigmoid(beta·x), with a beta that may be trained and is broadcast
// against x (Ramachandran, Zoph and Le, Searching for Activation Functions). [Silu] has
// beta 1.
func Swish(b *ir.Builder, x, beta ir.Value) ir.Value { return Mul(b, x, Sigmoid(b, Mul(b, beta, x))) }

// Softplus returns log(1 + e^x), for x of a float type, computed stably.
func Softplus(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSoftplus, nil, x) }

// LogSigmoid returns log(sigmoid(x)) = −softplus(−x), for x of a float type.
func LogSigmoid(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpLogSigmoid, nil, x) }

// Mish returns x·tanh(softplus(x)), for x of a float type (Misra, Mish).
func Mish(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpMish, nil, x) }

// Softsign returns x / (1 + |x|).
func Softsign(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSoftsign, nil, x) }

// Squareplus returns (x + √(x² + alpha)) / 2, for alpha > 0. alpha has no default here.
func Squareplus(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	return b.Add1(OpSquareplus, &AlphaAttrs{alpha}, x)
}

// TanhShrink returns x − tanh(x).
func TanhShrink(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpTanhShrink, nil, x) }

// positivePart returns x where x > 0 and 0 elsewhere.
func positivePart(b *ir.Builder, x ir.Value) ir.Value {
	return Select(b, Le(b, x, ZerosLike(b, x)), ZerosLike(b, x), x)
}

// softplus is max(x, 0) + log(1 + e^−|x|).
func softplus(b *ir.Builder, x ir.Value, _ float64) ir.Value {
	return Add(b, Max(b, x, ZerosLike(b, x)), Log1p(b, Exp(b, Neg(b, Abs(b, x)))))
}

func squareplus(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	root := Sqrt(b, Add(b, Mul(b, x, x), ConstLike(b, x, alpha)))
	return Mul(b, Add(b, x, root), ConstLike(b, x, 0.5))
}

// inWide returns f(x), computed in f32 for narrower types and converted back.
func inWide(b *ir.Builder, x ir.Value, f func(b *ir.Builder, x ir.Value) ir.Value) ir.Value {
	return Convert(b, f(b, wide(b, x)), x.DType())
}

// wide converts x to its accumulation type, [sumType].
func wide(b *ir.Builder, x ir.Value) ir.Value { return Convert(b, x, sumType(x.DType())) }

// inferFloat is the shape rule of ops whose results all have the type of operand 0, a
// float type.
func inferFloat(n *ir.Node) ([]ir.Type, error) {
	t := n.Input(0).Type()
	return []ir.Type{t}, floats.check(t.DType)
}

// Gelu returns x·Φ(x) = x/2·(1 + erf(x/√2)), for x of a float type (Hendrycks and Gimpel,
// Gaussian Error Linear Units).
func Gelu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpGelu, nil, x) }

// GeluTanh returns the tanh approximation x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))) of
// [Gelu].
func GeluTanh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpGeluTanh, nil, x) }

// QuickGelu returns the approximation x·sigmoid(1.702·x) of [Gelu].
func QuickGelu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpQuickGelu, nil, x) }

func gelu(b *ir.Builder, x ir.Value, _ float64) ir.Value {
	e := Erf(b, Mul(b, x, ConstLike(b, x, math.Sqrt2/2)))
	return Mul(b, Mul(b, x, ConstLike(b, x, 0.5)), Add(b, e, OnesLike(b, x)))
}

// geluSlope is Φ(x) + x·φ(x). Written out it is one factor of the gradient; differentiating the
// body would yield four, and [MulZero] tests each for zero.
func geluSlope(b *ir.Builder, x ir.Value) ir.Value {
	e := Erf(b, Mul(b, x, ConstLike(b, x, math.Sqrt2/2)))
	density := Exp(b, Mul(b, Mul(b, x, x), ConstLike(b, x, -0.5)))
	return Add(b,
		Mul(b, Add(b, e, OnesLike(b, x)), ConstLike(b, x, 0.5)),
		MulZero(b, Mul(b, x, ConstLike(b, x, 1/math.Sqrt(2*math.Pi))), density))
}

// geluTanh computes x/2·(1 + tanh u) as x·sigmoid(2u).
func geluTanh(b *ir.Builder, x ir.Value, _ float64) ir.Value {
	s, _ := geluSigmoid(b, x)
	return Mul(b, x, s)
}

// geluTanhSlope is s + x·s·(1 − s)·2u′ for s = sigmoid(2u), where 2u′ is
// 2√(2/π)·(1 + 3·0.044715·x²).
func geluTanhSlope(b *ir.Builder, x ir.Value) ir.Value {
	s, square := geluSigmoid(b, x)
	inner := Add(b, Mul(b, square, ConstLike(b, x, 3*0.044715*geluScale)), ConstLike(b, x, geluScale))
	bend := Mul(b, s, Sub(b, OnesLike(b, x), s))
	return Add(b, s, MulZero(b, bend, Mul(b, x, inner)))
}

// geluScale is 2√(2/π).
const geluScale = 1.5957691216057308

// geluSigmoid returns sigmoid(2√(2/π)·(x + 0.044715·x³)), and x².
func geluSigmoid(b *ir.Builder, x ir.Value) (s, square ir.Value) {
	square = Mul(b, x, x)
	cubic := Add(b, Mul(b, square, ConstLike(b, x, 0.044715*geluScale)), ConstLike(b, x, geluScale))
	return Sigmoid(b, Mul(b, x, cubic)), square
}

// Piecewise activation functions. At a kink the derivative is that of
// the constant piece if there is one, and that of the piece on the left if not.
const (
	OpLeakyRelu       ir.Op = "leaky_relu"
	OpThresholdedRelu ir.Op = "thresholded_relu"
	OpRelu6           ir.Op = "relu6"
	OpElu             ir.Op = "elu"
	OpCelu            ir.Op = "celu"
	OpSelu            ir.Op = "selu"
	OpHardTanh        ir.Op = "hard_tanh"
	OpHardSigmoid     ir.Op = "hard_sigmoid"
	OpHardSwish       ir.Op = "hard_swish"
	OpHardShrink      ir.Op = "hard_shrink"
	OpSoftShrink      ir.Op = "soft_shrink"
)

// The constants of selu, for which mean 0 and variance 1 are a fixed point
// (Klambauer et al., Self-Normalizing Neural Networks).
const (
	seluAlpha = 1.6732632423543772848170429916717
	seluScale = 1.0507009873554804934193349852946
)

func init() {
	defineActivations(
		activation{
			op: OpLeakyRelu, alpha: 0.01, doc: "x where x > 0 and alpha·x elsewhere. The derivative at 0 is alpha.",
			body: func(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
				return whereAbove(b, x, 0, x, Mul(b, x, ConstLike(b, x, alpha)))
			},
		},
		activation{
			op: OpThresholdedRelu, alpha: 1, doc: "0 where x ≤ alpha and x elsewhere, also where it is NaN.",
			body: func(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
				return Select(b, Le(b, x, ConstLike(b, x, alpha)), ZerosLike(b, x), x)
			},
		},
		activation{
			op: OpRelu6, doc: "x limited to [0, 6]. The derivative at 0 and 6 is 0.",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return upTo(b, positivePart(b, x), 6) },
		},
		activation{
			op: OpElu, alpha: 1, doc: "x where x > 0 and alpha·(e^x − 1) elsewhere.",
			body: func(b *ir.Builder, x ir.Value, alpha float64) ir.Value { return expBelow(b, x, alpha, 1) },
		},
		activation{
			op: OpCelu, alpha: 1, doc: "x where x > 0 and alpha·(e^(x/alpha) − 1) elsewhere.",
			body: func(b *ir.Builder, x ir.Value, alpha float64) ir.Value { return expBelow(b, x, alpha, alpha) },
		},
		activation{
			op: OpSelu, doc: "1.0507…·x where x > 0 and 1.0507…·1.6732…·(e^x − 1) elsewhere: elu scaled so that mean 0 and " +
				"variance 1 are a fixed point (Klambauer et al., Self-Normalizing Neural Networks).",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value {
				return Mul(b, expBelow(b, x, seluAlpha, 1), ConstLike(b, x, seluScale))
			},
		},
		activation{
			op: OpHardTanh, doc: "x limited to [−1, 1]. The derivative at ±1 is 0.",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return upTo(b, downTo(b, x, -1), 1) },
		},
		activation{
			op: OpHardSigmoid, doc: "x/6 + 1/2 limited to [0, 1]. The derivative at ±3 is 0.",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return hardSigmoid(b, x) },
		},
		activation{
			op: OpHardSwish, doc: "x·hard_sigmoid(x), also called hard_silu.",
			body: func(b *ir.Builder, x ir.Value, _ float64) ir.Value { return Mul(b, x, hardSigmoid(b, x)) },
		},
		activation{
			op: OpHardShrink, alpha: 0.5, doc: "0 where |x| ≤ alpha and x elsewhere, also where it is NaN.",
			body: func(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
				return Select(b, Le(b, Abs(b, x), ConstLike(b, x, alpha)), ZerosLike(b, x), x)
			},
		},
		activation{
			op: OpSoftShrink, alpha: 0.5, doc: "0 where |x| ≤ alpha, x + alpha where x < −alpha, and x − alpha elsewhere, also where x is NaN.",
			body: softShrink,
		},
	)
}

func softShrink(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	a := ConstLike(b, x, alpha)
	outside := Select(b, Lt(b, x, Neg(b, a)), Add(b, x, a), Sub(b, x, a))
	return Select(b, Le(b, Abs(b, x), a), ZerosLike(b, x), outside)
}

// whereAbove returns y where x > limit and z elsewhere.
func whereAbove(b *ir.Builder, x ir.Value, limit float64, y, z ir.Value) ir.Value {
	return Select(b, Gt(b, x, ConstLike(b, x, limit)), y, z)
}

// upTo returns min(x, limit) with derivative 0 at the limit, where [Clamp] has 1.
func upTo(b *ir.Builder, x ir.Value, limit float64) ir.Value {
	to := ConstLike(b, x, limit)
	return Select(b, Ge(b, x, to), to, x)
}

// downTo is [upTo] for a lower limit.
func downTo(b *ir.Builder, x ir.Value, limit float64) ir.Value {
	to := ConstLike(b, x, limit)
	return Select(b, Le(b, x, to), to, x)
}

// expBelow returns x where x > 0 and alpha·(e^(x/width) − 1) elsewhere.
func expBelow(b *ir.Builder, x ir.Value, alpha, width float64) ir.Value {
	scaled := x
	if width != 1 {
		scaled = Div(b, x, ConstLike(b, x, width))
	}
	return whereAbove(b, x, 0, x, Mul(b, Expm1(b, scaled), ConstLike(b, x, alpha)))
}

func hardSigmoid(b *ir.Builder, x ir.Value) ir.Value {
	shifted := Add(b, x, ConstLike(b, x, 3))
	return Div(b, upTo(b, downTo(b, shifted, 0), 6), ConstLike(b, x, 6))
}

// LeakyRelu returns x where it is positive, and alpha·x elsewhere.
func LeakyRelu(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	return b.Add1(OpLeakyRelu, &AlphaAttrs{alpha}, x)
}

// ThresholdedRelu returns x where it is above alpha, and 0 elsewhere.
func ThresholdedRelu(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	return b.Add1(OpThresholdedRelu, &AlphaAttrs{alpha}, x)
}

// Relu6 returns x limited to [0, 6].
func Relu6(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpRelu6, nil, x) }

// Elu returns x where it is positive, and alpha·(e^x − 1) elsewhere.
func Elu(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	return b.Add1(OpElu, &AlphaAttrs{alpha}, x)
}

// Celu returns x where it is positive, and alpha·(e^(x/alpha) − 1) elsewhere.
func Celu(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	return b.Add1(OpCelu, &AlphaAttrs{alpha}, x)
}

// Selu returns [Elu] with the constants for which mean 0 and variance 1 are a fixed point
// (Klambauer et al., Self-Normalizing Neural Networks).
func Selu(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpSelu, nil, x) }

// HardTanh returns x limited to [−1, 1].
func HardTanh(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpHardTanh, nil, x) }

// HardSigmoid returns x/6 + 1/2 limited to [0, 1].
func HardSigmoid(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpHardSigmoid, nil, x) }

// HardSwish returns x·hard_sigmoid(x).
func HardSwish(b *ir.Builder, x ir.Value) ir.Value { return b.Add1(OpHardSwish, nil, x) }

// HardShrink returns x where |x| is above alpha, and 0 elsewhere.
func HardShrink(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	return b.Add1(OpHardShrink, &AlphaAttrs{alpha}, x)
}

// SoftShrink returns x moved toward 0 by alpha, and 0 where |x| ≤ alpha.
func SoftShrink(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
	return b.Add1(OpSoftShrink, &AlphaAttrs{alpha}, x)
}

// Activation functions with a second operand or a gate, and softmin.
const (
	OpPRelu   ir.Op = "prelu"
	OpGlu     ir.Op = "glu"
	OpSwiGlu  ir.Op = "swiglu"
	OpGeGlu   ir.Op = "geglu"
	OpSoftmin ir.Op = "softmin"
)

func init() {
	defineComposite(composite{
		op: OpPRelu, doc: "x where x > 0 and slope·x elsewhere (He et al., Delving Deep into Rectifiers).",
		constraints: []string{"slope has the type of x and is broadcast against it"},
		operands:    []string{"x", "slope"}, types: floats,
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			return whereAbove(b, in[0], 0, in[0], Mul(b, in[0], in[1]))
		},
	})
	for _, g := range []struct {
		op   ir.Op
		doc  string
		glue func(b *ir.Builder, first, second ir.Value) ir.Value
	}{
		{
			OpGlu, "The first half of x along an axis times the sigmoid of the second (Dauphin et al., Language Modeling with Gated " +
				"Convolutional Networks).",
			func(b *ir.Builder, first, second ir.Value) ir.Value { return Mul(b, first, Sigmoid(b, second)) },
		},
		{
			OpSwiGlu, "silu of the first half of x along an axis times the second half (Shazeer, GLU Variants Improve Transformer).",
			func(b *ir.Builder, first, second ir.Value) ir.Value { return Mul(b, Silu(b, first), second) },
		},
		{
			OpGeGlu, "gelu of the first half of x along an axis times the second half (Shazeer, GLU Variants Improve Transformer).",
			func(b *ir.Builder, first, second ir.Value) ir.Value { return Mul(b, Gelu(b, first), second) },
		},
	} {
		defineComposite(composite{
			op: g.op, doc: g.doc, types: floats, newAttrs: func() ir.Attrs { return &AxisAttrs{} },
			constraints: []string{"axis is an axis of x, of even size"},
			check:       func(n *ir.Node) error { return checkAxes([]int{n.Attrs().(*AxisAttrs).Axis}, n.Input(0).Rank()) },
			body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
				halves := SplitEvenly(b, in[0], n.Attrs().(*AxisAttrs).Axis, 2)
				return g.glue(b, halves[0], halves[1])
			},
		})
	}
	defineComposite(composite{
		op: OpSoftmin, doc: "softmax(−x) along an axis.", types: floats, newAttrs: func() ir.Attrs { return &AxisAttrs{} },
		constraints: []string{"axis is an axis of x"},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return b.Add1(OpSoftmax, n.Attrs(), Neg(b, in[0]))
		},
	})
}

// PRelu returns x where it is positive and slope·x elsewhere (He et al., Delving Deep into
// Rectifiers). slope has the type of x and is broadcast against it.
func PRelu(b *ir.Builder, x, slope ir.Value) ir.Value { return b.Add1(OpPRelu, nil, x, slope) }

// Glu returns the first half of x along axis times the sigmoid of the second half (Dauphin
// et al.). The axis has even size.
func Glu(b *ir.Builder, x ir.Value, axis int) ir.Value { return b.Add1(OpGlu, axisAttrs(x, axis), x) }

// SwiGlu returns silu of the first half of x along axis, the gate, times the second half
// (Shazeer, GLU Variants Improve Transformer). The axis has even size.
func SwiGlu(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpSwiGlu, axisAttrs(x, axis), x)
}

// GeGlu returns gelu of the first half of x along axis times the second half (Shazeer, GLU
// Variants Improve Transformer). The axis has even size.
func GeGlu(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpGeGlu, axisAttrs(x, axis), x)
}

// Softmin returns softmax(−x) along an axis.
func Softmin(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return b.Add1(OpSoftmin, axisAttrs(x, axis), x)
}
