package special_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/special"
)

// TestDerivativesAtSeams differentiates functions up to three times at round numbers, where their formulas may change, and on
// both sides: there a maximum or an absolute value within a formula has a derivative of neither piece.
func TestDerivativesAtSeams(t *testing.T) {
	var at []float64
	for k := range 21 {
		at = append(at, float64(k)/4, -float64(k)/4, float64(k), -float64(k))
	}
	at = append(at, 0.125, 32, 40, 60, 64)
	by8 := func(f func(b *ir.Builder, x, y ir.Value) ir.Value) func(b *ir.Builder, x ir.Value) ir.Value {
		return func(b *ir.Builder, x ir.Value) ir.Value { return f(b, x, ops.ConstLike(b, x, 8)) }
	}
	for name, f := range map[string]func(b *ir.Builder, x ir.Value) ir.Value{
		"e1": special.E1, "ei": special.Ei, "erfcx": special.Erfcx, "j0": special.J0, "j1": special.J1, "logNdtr": special.LogNdtr, "ndtri": special.Ndtri, "gammaEntropy": special.GammaEntropy, "entr": special.Entr,
		"gammainc": by8(special.Gammainc), "gammaincc": by8(special.Gammaincc), "logBeta": by8(special.LogBeta), "logAddExp": by8(ops.LogAddExp), "hypot": by8(ops.Hypot),
		"i0e": ops.I0e, "i1e": ops.I1e, "digamma": ops.Digamma, "lgamma": ops.Lgamma, "erf": ops.Erf, "erfc": ops.Erfc, "erfinv": ops.Erfinv,
		"sinc": ops.Sinc, "softplus": ops.Softplus, "logSigmoid": ops.LogSigmoid, "sigmoid": ops.Sigmoid, "tanh": ops.Tanh, "gelu": ops.Gelu,
		"geluTanh": ops.GeluTanh, "silu": ops.Silu, "mish": ops.Mish, "expm1": ops.Expm1, "log1p": ops.Log1p, "sinh": ops.Sinh, "cosh": ops.Cosh,
		"asinh": ops.Asinh, "acosh": ops.Acosh, "atanh": ops.Atanh, "asin": ops.Asin, "acos": ops.Acos, "atan": ops.Atan, "cbrt": ops.Cbrt,
		"tanhShrink": ops.TanhShrink, "logit": func(b *ir.Builder, x ir.Value) ir.Value { return ops.Logit(b, x) },
	} {
		const h = 1. / (1 << 14)
		most := 3
		if strings.HasPrefix(name, "gammainc") {
			most = 2 // which take long
		}
		g := derivativesOf(t, name, f, len(at), most)
		derivatives := func(move float64) map[string][]float64 { return evaluatedAt(t, g, at, move) }
		left, here, right := derivatives(-h), derivatives(0), derivatives(h)
		for i, x := range at {
			for order := range most + 1 {
				output := fmt.Sprint(order)
				l, y, r := left[output][i], here[output][i], right[output][i]
				if math.IsNaN(l) || math.IsNaN(r) || math.Abs(l) > 1e6 || math.Abs(l-r) > 0.01*(1+math.Abs(l)) {
					break // at the end of the domain, a pole or a kink
				}
				if !(math.Abs(y-(l+r)/2) <= 1e-4*(1+math.Abs(y))) {
					t.Errorf("%s: derivative %d at %v is %v: it is %v and %v beside it", name, order, x, y, l, r)
				}
			}
		}
	}
}

// derivativesOf returns the graph of a function of n points and its derivatives up to an order.
func derivativesOf(t *testing.T, name string, f func(b *ir.Builder, x ir.Value) ir.Value, n, most int) *ir.Graph {
	t.Helper()
	g, err := ir.Build(name, func(b *ir.Builder) {
		derivative := func(b *ir.Builder, in []ir.Value) []ir.Value { return []ir.Value{f(b, in[0])} }
		x := []ir.Value{b.Input("x", ir.F64, ir.N(n))}
		for order := range most + 1 {
			b.Output(fmt.Sprint(order), derivative(b, x)[0])
			before := derivative
			derivative = func(b *ir.Builder, in []ir.Value) []ir.Value {
				_, tangents := autodiff.JVPOf(b, before, in, []ir.Value{ops.OnesLike(b, in[0])})
				return tangents
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// evaluatedAt returns the outputs of a graph at points that are moved.
func evaluatedAt(t *testing.T, g *ir.Graph, at []float64, move float64) map[string][]float64 {
	t.Helper()
	moved := make([]float64, len(at))
	for i, x := range at {
		moved[i] = x + move
	}
	return evaluated(t, g, map[string]*ir.Array{"x": ir.Floats(ir.F64, moved, len(moved))})
}
