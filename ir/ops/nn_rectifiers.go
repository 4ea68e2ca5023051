package ops

import "github.com/rlx-go/rlx/ir"

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
			body: func(b *ir.Builder, x ir.Value, alpha float64) ir.Value {
				a := ConstLike(b, x, alpha)
				outside := Select(b, Lt(b, x, Neg(b, a)), Add(b, x, a), Sub(b, x, a))
				return Select(b, Le(b, Abs(b, x), a), ZerosLike(b, x), outside)
			},
		},
	)
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
