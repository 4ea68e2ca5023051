package ops

import (
	"math"

	"github.com/rlx-go/rlx/ir"
)

// OpPolygamma are the derivatives of digamma.
const OpPolygamma ir.Op = "polygamma"

// PolygammaAttrs hold the order of the derivative of digamma.
type PolygammaAttrs struct{ Order int }

// Visit shows the attributes.
func (a *PolygammaAttrs) Visit(v ir.AttrVisitor) { v.Int("order", &a.Order) }

func init() {
	defineComposite(composite{
		op: OpPolygamma, types: floats, newAttrs: func() ir.Attrs { return &PolygammaAttrs{1} },
		doc:         "The polygamma function, the derivative ψ⁽ⁿ⁾(x) of digamma for n = order. NaN where x is not positive.",
		constraints: []string{"order is from 1 to 20"},
		check: func(n *ir.Node) error {
			if o := n.Attrs().(*PolygammaAttrs).Order; o < 1 || o > 20 {
				return ir.Attrf("order is %d, not in [1, 20]", o)
			}
			return nil
		},
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			return inWide(b, in[0], func(b *ir.Builder, x ir.Value) ir.Value { return polygamma(b, x, n.Attrs().(*PolygammaAttrs).Order) })
		},
		jvp: func(b *ir.Builder, n *ir.Node, in, _, t []ir.Value) []ir.Value {
			if !t[0].Valid() {
				return []ir.Value{{}}
			}
			next := &PolygammaAttrs{n.Attrs().(*PolygammaAttrs).Order + 1}
			return []ir.Value{scale(b, t[0], b.Add1(OpPolygamma, next, in[0]))}
		},
	})
}

// evenBernoulli are the Bernoulli numbers B₂, B₄, …
var evenBernoulli = []float64{1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730, 7. / 6}

// polygamma is (−1)^(n+1)·n!·ζ(n+1, x), with Hurwitz's zeta by the Euler–Maclaurin
// formula: a sum of terms until z is large, and an asymptotic series in 1/z.
func polygamma(b *ir.Builder, x ir.Value, n int) ir.Value {
	const terms = 12
	number := func(v float64) ir.Value { return ConstLike(b, x, v) }
	power := func(v ir.Value, n int) ir.Value {
		p := v
		for range n - 1 {
			p = Mul(b, p, v)
		}
		return p
	}
	valid := Gt(b, x, number(0))
	safe := Select(b, valid, x, number(1))
	one, z := number(1), Add(b, safe, number(terms))
	rest := Div(b, one, z)
	base := power(rest, n)
	sum := Mul(b, base, number(1/float64(n)))
	last := Mul(b, base, rest)
	sum = Add(b, sum, Mul(b, last, number(0.5)))
	factor := 1.
	for j, bernoulli := range evenBernoulli {
		// term j, from 1: B₂ⱼ·(n+1)…(n+2j−1)/(2j)!·z^(−n−2j)
		factor *= float64(n+2*j+1) / float64(2*j+2)
		last = Mul(b, last, rest)
		if j > 0 {
			factor *= float64(n+2*j) / float64(2*j+1)
			last = Mul(b, last, rest)
		}
		sum = Add(b, sum, Mul(b, last, number(bernoulli*factor)))
	}
	for k := terms - 1; k >= 0; k-- {
		sum = Add(b, sum, power(Div(b, one, Add(b, safe, number(float64(k)))), n+1))
	}
	scale := math.Gamma(float64(n + 1))
	if n%2 == 0 {
		scale = -scale
	}
	return Select(b, valid, Mul(b, sum, number(scale)), number(math.NaN()))
}

// Polygamma returns the derivative of the given order, 1 to 20, of [Digamma]; NaN where x
// is not positive.
func Polygamma(b *ir.Builder, x ir.Value, order int) ir.Value {
	return b.Add1(OpPolygamma, &PolygammaAttrs{order}, x)
}
