package ops

import "github.com/rlx-go/rlx/ir"

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
				if !t[0].Valid() {
					return []ir.Value{{}}
				}
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
