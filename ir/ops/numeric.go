package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
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
// NegInf stands for the largest or smallest finite number of the element type.
type NanToNumAttrs struct{ NaN, PosInf, NegInf float64 }

// Visit shows the attributes.
func (a *NanToNumAttrs) Visit(v ir.AttrVisitor) {
	v.Float("nan", &a.NaN)
	v.Float("pos_inf", &a.PosInf)
	v.Float("neg_inf", &a.NegInf)
}

func newNanToNumAttrs() ir.Attrs { return &NanToNumAttrs{0, math.Inf(1), math.Inf(-1)} }

// named describes a composite of one operand.
type named struct {
	op       ir.Op
	doc      string
	types    domain
	newAttrs func() ir.Attrs
	body     func(b *ir.Builder, n *ir.Node, x ir.Value) ir.Value
	jvp      jvpRule
	// noGrad is the reason to skip gradient checks of all samples, if any.
	noGrad string
}

func init() {
	for _, e := range []named{
		{
			op: OpSquare, doc: "x·x. Integers wrap.", types: numbers,
			body: func(b *ir.Builder, _ *ir.Node, x ir.Value) ir.Value { return Mul(b, x, x) },
		},
		{
			op: OpReciprocal, doc: "1 / x.", types: floats | complexes,
			body: func(b *ir.Builder, _ *ir.Node, x ir.Value) ir.Value { return Div(b, OnesLike(b, x), x) },
		},
		{
			op: OpLogit, doc: "log(x / (1 − x)), the inverse of sigmoid: infinite at 0 and 1, NaN outside.",
			types: floats,
			body:  func(b *ir.Builder, _ *ir.Node, x ir.Value) ir.Value { return Sub(b, Log(b, x), Log1p(b, Neg(b, x))) },
		},
		{
			op: OpSinc, doc: "sin(πx) / (πx), and 1 at 0, smooth everywhere: near 0 it is a power series up to x²⁸.",
			types: floats,
			body:  func(b *ir.Builder, _ *ir.Node, x ir.Value) ir.Value { return inWide(b, x, sinc) },
		},
		{
			op: OpDegrees, doc: "x·180/π: radians to degrees.", types: floats,
			body: func(b *ir.Builder, _ *ir.Node, x ir.Value) ir.Value { return Mul(b, x, ConstLike(b, x, 180/math.Pi)) },
		},
		{
			op: OpRadians, doc: "x·π/180: degrees to radians.", types: floats,
			body: func(b *ir.Builder, _ *ir.Node, x ir.Value) ir.Value { return Mul(b, x, ConstLike(b, x, math.Pi/180)) },
		},
		{
			op: OpRoundSTE, doc: "The integer nearest to x, ties to even, with derivative 1: the straight-through estimator (Bengio, " +
				"Léonard and Courville). Round of RLX in Rust has this derivative.",
			types: floats, noGrad: "the derivative is 1 by decree",
			body: func(b *ir.Builder, _ *ir.Node, x ir.Value) ir.Value { return Round(b, x) },
			jvp:  func(_ *ir.Builder, _ *ir.Node, _, _, t []ir.Value) []ir.Value { return t },
		},
		{
			op: OpIsInf, doc: "Whether x is infinite.", types: floats,
			noGrad: "boolean result",
			body: func(b *ir.Builder, _ *ir.Node, x ir.Value) ir.Value {
				return Not(b, Or(b, IsFinite(b, x), IsNaN(b, x)))
			},
		},
		{
			op: OpNanToNum, doc: "x with NaN and the infinities replaced by numbers. The derivative there is 0.",
			types: floats, newAttrs: newNanToNumAttrs,
			body: nanToNum,
		},
	} {
		defineNamed(e)
	}
}

func defineNamed(e named) {
	c := composite{
		op: e.op, doc: e.doc, types: e.types, newAttrs: e.newAttrs, jvp: e.jvp,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value { return e.body(b, n, in[0]) },
	}
	if e.noGrad == "boolean result" {
		c.noGrad = e.noGrad
	}
	defineComposite(c)
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
	turns := Mul(b, Round(b, Mul(b, x, ConstLike(b, x, 0.5))), ConstLike(b, x, 2))
	sine := Sin(b, Mul(b, Sub(b, x, turns), ConstLike(b, x, math.Pi)))
	return Select(b, near, series, Div(b, sine, Select(b, near, one, u)))
}

func nanToNum(b *ir.Builder, n *ir.Node, x ir.Value) ir.Value {
	a, d := n.Attrs().(*NanToNumAttrs), x.DType()
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
