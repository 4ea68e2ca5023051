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
		JVP: flatJVP,
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

// inside replaces 0 by the smallest normal number, as jax.random.gumbel does.
func inside(b *ir.Builder, u ir.Value) ir.Value {
	smallest := 0x1p-126
	if u.Valid() && u.DType() == ir.F64 {
		smallest = 0x1p-1022
	}
	return Max(b, u, ConstLike(b, u, smallest))
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

// Distributions with parameters, by rejection sampling.
const (
	OpRandomGamma   ir.Op = "random_gamma"
	OpRandomBeta    ir.Op = "random_beta"
	OpRandomPoisson ir.Op = "random_poisson"
)

// trials is the maximum number of trials. A trial of the gamma distribution is accepted
// with probability 0.95 or more, one of the Poisson distribution with 0.6: 64 rejections
// have probability 1e-25.
const trials = 64

func init() {
	const key = "key is u32[2]"
	const noGrad = "numbers are accepted or not: the derivative by a parameter is not that of the numbers drawn"
	defineComposite(composite{
		op: OpRandomGamma, operands: []string{"alpha", "key"}, types: floats, constraints: []string{key}, noGrad: noGrad,
		doc: "Numbers of the gamma distribution with the shapes alpha and scale 1 (Marsaglia and Tsang, A Simple Method for Generating Gamma Variables). NaN " +
			"where alpha is not positive.",
		check: func(n *ir.Node) error { return checkKey(n.Input(1).Type()) },
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			return inWide(b, in[0], func(b *ir.Builder, alpha ir.Value) ir.Value { return Exp(b, logGamma(b, in[1], alpha)) })
		},
	})
	defineComposite(composite{
		op: OpRandomBeta, operands: []string{"a", "b", "key"}, types: floats, constraints: []string{"a and b have one type", key}, noGrad: noGrad,
		doc: "Numbers of the beta distribution: g/(g + h) for g and h of gamma distributions with shapes a and b.",
		check: func(n *ir.Node) error {
			if !n.Input(0).Type().Equal(n.Input(1).Type()) {
				return ir.Shapef("a is %s, b is %s", n.Input(0).Type(), n.Input(1).Type())
			}
			return checkKey(n.Input(2).Type())
		},
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			keys := twoKeys(b, in[2])
			x, y := logGamma(b, keys[0], wide(b, in[0])), logGamma(b, keys[1], wide(b, in[1]))
			return Convert(b, Sigmoid(b, Sub(b, x, y)), in[0].DType())
		},
	})
	defineComposite(composite{
		op: OpRandomPoisson, operands: []string{"rate", "key"}, types: floats, constraints: []string{key}, noGrad: "integer result",
		doc: "Numbers of the Poisson distribution, i32: by inversion for rates below 10, by transformed rejection (Hörmann, 1993) otherwise. −1 where the " +
			"rate is negative or NaN. From 2³⁰ on the last digits of numbers are those that the type of the rate holds.",
		check: func(n *ir.Node) error { return checkKey(n.Input(1).Type()) },
		body: func(b *ir.Builder, _ *ir.Node, in []ir.Value) ir.Value {
			keys, rate := twoKeys(b, in[1]), wide(b, in[0])
			ten, zero := ConstLike(b, rate, 10), ZerosLike(b, rate)
			low := poissonInverse(b, keys[0], Clamp(b, rate, zero, ten))
			many := Max(b, rate, ten)
			high := poissonRejection(b, keys[1], many)
			k := Convert(b, Select(b, Lt(b, rate, ten), low, Add(b, high, Floor(b, many))), ir.I32)
			// Above 2²⁴ f32 does not hold every integer: the parts are added as integers.
			exact := Add(b, Convert(b, high, ir.I32), Convert(b, many, ir.I32))
			isHigh := And(b, Ge(b, rate, ten), Lt(b, rate, ConstLike(b, rate, 1<<30)))
			return Select(b, Ge(b, rate, zero), Select(b, isHigh, exact, k), ConstLike(b, k, -1))
		},
	})
}

// twoKeys splits a key into two.
func twoKeys(b *ir.Builder, key ir.Value) []ir.Value {
	keys := SplitKey(b, key, ir.N(2))
	part := func(i int) ir.Value { return Squeeze(b, SliceAxis(b, keys, 0, ir.N(i), ir.N(1)), 0) }
	return []ir.Value{part(0), part(1)}
}

// untilAccepted repeats trials, each with a new key, until every element has accepted a
// number. Elements that accept none are otherwise.
func untilAccepted(b *ir.Builder, key, otherwise ir.Value, consts []ir.Value, trial func(b *ir.Builder, keys, consts []ir.Value) (x, accepted ir.Value)) ir.Value {
	open := Const(b, ir.Bool, 1, otherwise.Shape()...)
	out := WhileLoop(b, While{
		Consts: append([]ir.Value{key}, consts...), Carries: []ir.Value{Const(b, ir.U32, 0), open, otherwise}, MaxSteps: trials,
		Cond: func(b *ir.Builder, _, c []ir.Value) ir.Value { return Any(b, c[1]) },
		Body: func(b *ir.Builder, consts, c []ir.Value) []ir.Value {
			x, accepted := trial(b, twoKeys(b, FoldIn(b, consts[0], c[0])), consts[1:])
			now := And(b, c[1], accepted)
			return []ir.Value{Add(b, c[0], OnesLike(b, c[0])), And(b, c[1], Not(b, accepted)), Select(b, now, x, c[2])}
		},
	})
	return out[2]
}

// logGamma returns logarithms of gamma-distributed numbers, since small shapes give
// numbers that underflow. Shapes below 1 are raised by 1 and the number multiplied by
// u^(1/alpha).
func logGamma(b *ir.Builder, key, alpha ir.Value) ir.Value {
	keys, one := twoKeys(b, key), OnesLike(b, alpha)
	small := Lt(b, alpha, one)
	valid := Gt(b, alpha, ZerosLike(b, alpha))
	safe := Select(b, valid, alpha, one)
	d := Sub(b, Select(b, small, Add(b, safe, one), safe), ConstLike(b, alpha, 1./3))
	c := Div(b, ConstLike(b, alpha, 1./3), Sqrt(b, d))
	x := untilAccepted(b, keys[0], Log(b, d), []ir.Value{d, c}, func(b *ir.Builder, keys, consts []ir.Value) (x, accepted ir.Value) {
		d, c := consts[0], consts[1]
		normal, u := Normal(b, keys[0], d.DType(), d.Shape()...), inside(b, Uniform(b, keys[1], d.DType(), d.Shape()...))
		root := Add(b, OnesLike(b, d), Mul(b, c, normal))
		positive := Gt(b, root, ZerosLike(b, root))
		logRoot := Log(b, Select(b, positive, root, OnesLike(b, root)))
		logV := Mul(b, logRoot, ConstLike(b, logRoot, 3))
		bound := Add(b, Mul(b, ConstLike(b, d, 0.5), Square(b, normal)), Mul(b, d, Add(b, Sub(b, OnesLike(b, d), Exp(b, logV)), logV)))
		return Add(b, Log(b, d), logV), And(b, positive, Lt(b, Log(b, u), bound))
	})
	u := inside(b, Uniform(b, keys[1], alpha.DType(), alpha.Shape()...))
	x = Add(b, x, Select(b, small, Div(b, Log(b, u), safe), ZerosLike(b, alpha)))
	return Select(b, valid, x, ConstLike(b, x, math.NaN()))
}

// poissonInverse samples by inversion of the cumulative distribution.
func poissonInverse(b *ir.Builder, key, rate ir.Value) ir.Value {
	u := Uniform(b, key, rate.DType(), rate.Shape()...)
	p := Exp(b, Neg(b, rate))
	out := WhileLoop(b, While{
		Consts: []ir.Value{u, rate}, Carries: []ir.Value{ZerosLike(b, rate), p, p}, MaxSteps: trials,
		Cond: func(b *ir.Builder, consts, c []ir.Value) ir.Value { return Any(b, Ge(b, consts[0], c[2])) },
		Body: func(b *ir.Builder, consts, c []ir.Value) []ir.Value {
			more := Ge(b, consts[0], c[2])
			k := Add(b, c[0], Convert(b, more, rate.DType()))
			p := Select(b, more, Div(b, Mul(b, c[1], consts[1]), Max(b, k, OnesLike(b, k))), c[1])
			return []ir.Value{k, p, Select(b, more, Add(b, c[2], p), c[2])}
		},
	})
	return out[0]
}

// poissonRejection is algorithm PTRS, for rates of 10 and more. It returns the difference from the rate
// rounded down, which f32 holds where it rounds the number.
func poissonRejection(b *ir.Builder, key, rate ir.Value) ir.Value {
	return untilAccepted(b, key, ZerosLike(b, rate), []ir.Value{rate}, func(b *ir.Builder, keys, consts []ir.Value) (x, accepted ir.Value) {
		rate := consts[0]
		number := func(v float64) ir.Value { return ConstLike(b, rate, v) }
		root, base := Sqrt(b, rate), Floor(b, rate)
		rest := Sub(b, rate, base)
		slope := Add(b, number(0.931), Mul(b, number(2.53), root))
		a := Sub(b, Mul(b, number(0.02483), slope), number(0.059))
		invAlpha := Add(b, number(1.1239), Div(b, number(1.1328), Sub(b, slope, number(3.4))))
		vr := Sub(b, number(0.9277), Div(b, number(3.6224), Sub(b, slope, number(2))))
		u := Sub(b, Uniform(b, keys[0], rate.DType(), rate.Shape()...), number(0.5))
		v := inside(b, Uniform(b, keys[1], rate.DType(), rate.Shape()...))
		us := Max(b, Sub(b, number(0.5), Abs(b, u)), number(1e-7))
		above := Floor(b, Add(b, Mul(b, Add(b, Div(b, Mul(b, number(2), a), us), slope), u), Add(b, rest, number(0.43))))
		k := Add(b, base, above)
		sure := And(b, Ge(b, us, number(0.07)), Le(b, v, vr))
		never := Or(b, Lt(b, k, number(0)), And(b, Lt(b, us, number(0.013)), Gt(b, v, us)))
		left := Log(b, Div(b, Mul(b, v, invAlpha), Add(b, Div(b, a, Square(b, us)), slope)))
		return above, Or(b, sure, And(b, Not(b, never), Le(b, left, poissonLog(b, Max(b, k, number(0)), rate, Sub(b, above, rest)))))
	})
}

// poissonLog returns the logarithm of the probability of k, which is d above the rate: k·log(rate/k) + d −
// log(2πk)/2 without Stirling's rest, after Loader, Fast and Accurate Computation of Binomial Probabilities
// (2000), as the terms of k·log rate − rate − log k! cancel.
func poissonLog(b *ir.Builder, k, rate, d ir.Value) ir.Value {
	number := func(v float64) ir.Value { return ConstLike(b, rate, v) }
	few := Lt(b, k, number(10))
	direct := Sub(b, Sub(b, Mul(b, k, Log(b, rate)), rate), Lgamma(b, Add(b, k, number(1))))
	many := Max(b, k, number(10))
	over := Div(b, number(1), many)
	square := Square(b, over)
	rest := Mul(b, over, Sub(b, number(1./12), Mul(b, square, Sub(b, number(1./360), Mul(b, square, number(1./1260))))))

	// With v = d/(k + rate), k·log(k/rate) − d is d·v + 2k·(v³/3 + v⁵/5 + …).
	v := Div(b, d, Add(b, many, rate))
	square = Square(b, v)
	series := number(1. / 17)
	for n := 15.; n >= 3; n -= 2 {
		series = Add(b, number(1/n), Mul(b, square, series))
	}
	close := Add(b, Mul(b, d, v), Mul(b, Mul(b, Add(b, many, many), v), Mul(b, square, series)))
	far := Sub(b, Mul(b, many, Log(b, Div(b, many, rate))), d)
	distance := Select(b, Lt(b, Abs(b, v), number(0.125)), close, far)
	half := Mul(b, number(0.5), Log(b, Mul(b, many, number(2*math.Pi))))
	return Select(b, few, direct, Neg(b, Add(b, Add(b, distance, half), rest)))
}

// Gamma returns numbers of the gamma distribution with the shape parameters alpha and
// scale 1, in the shape and float type of alpha (Marsaglia and Tsang). key is u32[2].
func Gamma(b *ir.Builder, key, alpha ir.Value) ir.Value {
	return b.Add1(OpRandomGamma, nil, alpha, key)
}

// Beta returns numbers of the beta distribution with the parameters x and y, of one float
// type and shape. key is u32[2].
func Beta(b *ir.Builder, key, x, y ir.Value) ir.Value { return b.Add1(OpRandomBeta, nil, x, y, key) }

// Poisson returns numbers, i32, of the Poisson distribution with the given rates, of a
// float type, in their shape. key is u32[2].
func Poisson(b *ir.Builder, key, rate ir.Value) ir.Value {
	return b.Add1(OpRandomPoisson, nil, rate, key)
}
