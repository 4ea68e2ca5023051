package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// Further distributions.
const (
	OpGumbel          ir.Op = "random_gumbel"
	OpExponential     ir.Op = "random_exponential"
	OpTruncatedNormal ir.Op = "random_truncated_normal"
	OpCategorical     ir.Op = "random_categorical"
)

// TruncatedAttrs add the interval.
type TruncatedAttrs struct {
	RandomFloatAttrs
	Low, High float64
}

// Visit shows the attributes.
func (a *TruncatedAttrs) Visit(v ir.AttrVisitor) {
	a.RandomFloatAttrs.Visit(v)
	v.Float("low", &a.Low)
	v.Float("high", &a.High)
}

func init() {
	for _, r := range []struct {
		op   ir.Op
		doc  string
		body func(b *ir.Builder, u ir.Value) ir.Value
	}{
		{OpGumbel, "Numbers of the standard Gumbel distribution, −log(−log u) for a uniform u in (0, 1), as jax.random.gumbel.", func(b *ir.Builder, u ir.Value) ir.Value {
			return Neg(b, Log(b, Neg(b, Log(b, inside(b, u)))))
		}},
		{OpExponential, "Numbers of the exponential distribution with mean 1, −log(1 − u) for a uniform u in [0, 1), as jax.random.exponential.", func(b *ir.Builder, u ir.Value) ir.Value {
			return Neg(b, Log1p(b, Neg(b, u)))
		}},
	} {
		defineRandom(r.op, r.doc, newRandomFloatAttrs, nil,
			func(b *ir.Builder, n *ir.Node, u ir.Value) ir.Value { return r.body(b, u) })
	}
	defineRandom(OpTruncatedNormal, "Normal numbers truncated to [low, high]: √2·erfinv(u) for a uniform u between erf(low/√2) and erf(high/√2), as jax.random.truncated_normal.",
		func() ir.Attrs { return &TruncatedAttrs{*newRandomFloatAttrs().(*RandomFloatAttrs), -2, 2} },
		func(n *ir.Node) error {
			if a := n.Attrs().(*TruncatedAttrs); !(a.Low < a.High) {
				return ir.Attrf("low is %v, not below high, %v", a.Low, a.High)
			}
			return nil
		}, truncatedNormal)
	defineComposite(composite{
		op: OpCategorical, doc: "Classes drawn with probabilities softmax(logits) along an axis, in i32, by the Gumbel-max trick: the argmax of the logits plus numbers of " +
			"the Gumbel distribution, as jax.random.categorical.",
		operands: []string{"logits", "key"}, types: floats, newAttrs: func() ir.Attrs { return &AxisAttrs{} },
		constraints: []string{"axis is an axis of the logits, not empty; the result has the others", "key is u32[2]"}, noGrad: "integer result",
		check: func(n *ir.Node) error { return checkKey(n.Input(1).Type()) },
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			x := StopGradient(b, wide(b, in[0]))
			noise := Gumbel(b, in[1], x.DType(), x.Shape()...)
			return ArgMax(b, Add(b, x, noise), n.Attrs().(*AxisAttrs).Axis)
		},
	})
}

// defineRandom defines an op that transforms uniform numbers in [0, 1), of type f32 or
// f64.
func defineRandom(op ir.Op, doc string, newAttrs func() ir.Attrs, check func(n *ir.Node) error, body func(b *ir.Builder, n *ir.Node, u ir.Value) ir.Value) {
	define(&ir.Def{
		Op: op, Doc: doc, Operands: []string{"key"}, NewAttrs: newAttrs,
		Constraints: numbered("key is u32[2]", "the element type is a float type", generatorText),
		Infer: func(n *ir.Node) ([]ir.Type, error) {
			a := randomFloatOf(n)
			if err := floats.check(a.DType); err != nil {
				return nil, err
			}
			if check != nil {
				if err := check(n); err != nil {
					return nil, err
				}
			}
			return a.types(a.DType, n.Input(0))
		},
		JVP: flatJVP, NoTranspose: notLinear,
		Body: func(b *ir.Builder, n *ir.Node, in []ir.Value) []ir.Value {
			a := randomFloatOf(n)
			u := a.Generator.Uniform(b, in[0], sumType(a.DType), a.Shape...)
			return []ir.Value{Convert(b, body(b, n, u), a.DType)}
		},
	})
}

func randomFloatOf(n *ir.Node) *RandomFloatAttrs {
	if a, ok := n.Attrs().(*TruncatedAttrs); ok {
		return &a.RandomFloatAttrs
	}
	return n.Attrs().(*RandomFloatAttrs)
}

// inside replaces 0 by the least normal number, as jax.random.gumbel does.
func inside(b *ir.Builder, u ir.Value) ir.Value {
	least := 0x1p-126
	if u.Valid() && u.DType() == ir.F64 {
		least = 0x1p-1022
	}
	return Max(b, u, ConstLike(b, u, least))
}

func truncatedNormal(b *ir.Builder, n *ir.Node, u ir.Value) ir.Value {
	a := n.Attrs().(*TruncatedAttrs)
	low, high := math.Erf(a.Low/math.Sqrt2), math.Erf(a.High/math.Sqrt2)
	return Clamp(b, normalOf(b, u, low, high), ConstLike(b, u, a.Low), ConstLike(b, u, a.High))
}

// Gumbel returns numbers of the standard Gumbel distribution, −log(−log u), of float type
// d and the given shape. key is u32[2].
func Gumbel(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return Threefry.Gumbel(b, key, d, shape...)
}

// Exponential returns numbers of the exponential distribution with mean 1, of float type d
// and the given shape. key is u32[2].
func Exponential(b *ir.Builder, key ir.Value, d ir.DType, shape ...ir.Dim) ir.Value {
	return Threefry.Exponential(b, key, d, shape...)
}

// TruncatedNormal returns standard normal numbers truncated to [low, high], of float type
// d and the given shape. key is u32[2].
func TruncatedNormal(b *ir.Builder, key ir.Value, low, high float64, d ir.DType, shape ...ir.Dim) ir.Value {
	return Threefry.TruncatedNormal(b, key, low, high, d, shape...)
}

// Categorical returns classes, i32, drawn with probabilities softmax(logits) along axis,
// which the result lacks. key is u32[2].
func Categorical(b *ir.Builder, key, logits ir.Value, axis int) ir.Value {
	return b.Add1(OpCategorical, axisAttrs(logits, axis), logits, key)
}
