package autodiff_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// function is a function of one number with its derivatives at points, in
// closed form: value, first, second, third.
type function struct {
	name string
	f    func(b *ir.Builder, x ir.Value) ir.Value
	at   []float64
	want func(x float64) [4]float64
}

func at(x ...float64) []float64 { return x }

func constant(b *ir.Builder, x float64) ir.Value { return ops.Const(b, ir.F64, x) }

// fixed is for functions whose derivatives are numbers written down.
func fixed(y, d1, d2, d3 float64) func(float64) [4]float64 {
	return func(float64) [4]float64 { return [4]float64{y, d1, d2, d3} }
}

var inf = math.Inf(1)

var smooth = []function{
	{"exp", ops.Exp, at(-2, 0, 1.5), func(x float64) [4]float64 {
		e := math.Exp(x)
		return [4]float64{e, e, e, e}
	}},
	{"expm1", ops.Expm1, at(-2, 0, 1e-9, 1.5), func(x float64) [4]float64 {
		e := math.Exp(x)
		return [4]float64{math.Expm1(x), e, e, e}
	}},
	{"log", ops.Log, at(0.2, 1, 7), func(x float64) [4]float64 { return [4]float64{math.Log(x), 1 / x, -1 / x / x, 2 / x / x / x} }},
	{"log1p", ops.Log1p, at(-0.5, 0, 7), func(x float64) [4]float64 {
		u := 1 + x
		return [4]float64{math.Log1p(x), 1 / u, -1 / u / u, 2 / u / u / u}
	}},
	{"sqrt", ops.Sqrt, at(0.25, 1, 9), func(x float64) [4]float64 {
		s := math.Sqrt(x)
		return [4]float64{s, 0.5 / s, -0.25 / s / x, 0.375 / s / x / x}
	}},
	{"rsqrt", ops.Rsqrt, at(0.25, 1, 9), func(x float64) [4]float64 {
		r := 1 / math.Sqrt(x)
		return [4]float64{r, -0.5 * r / x, 0.75 * r / x / x, -1.875 * r / x / x / x}
	}},
	{"sin", ops.Sin, at(-1, 0, 2), func(x float64) [4]float64 {
		s, c := math.Sincos(x)
		return [4]float64{s, c, -s, -c}
	}},
	{"cos", ops.Cos, at(-1, 0, 2), func(x float64) [4]float64 {
		s, c := math.Sincos(x)
		return [4]float64{c, -s, -c, s}
	}},
	{"tan", ops.Tan, at(-1, 0, 0.5), func(x float64) [4]float64 {
		u := math.Tan(x)
		return [4]float64{u, 1 + u*u, 2 * u * (1 + u*u), (2 + 6*u*u) * (1 + u*u)}
	}},
	{"sinh", ops.Sinh, at(-1, 0, 2), func(x float64) [4]float64 {
		return [4]float64{math.Sinh(x), math.Cosh(x), math.Sinh(x), math.Cosh(x)}
	}},
	{"cosh", ops.Cosh, at(-1, 0, 2), func(x float64) [4]float64 {
		return [4]float64{math.Cosh(x), math.Sinh(x), math.Cosh(x), math.Sinh(x)}
	}},
	{"tanh", ops.Tanh, at(-3, 0, 0.5), func(x float64) [4]float64 {
		u := math.Tanh(x)
		return [4]float64{u, 1 - u*u, -2 * u * (1 - u*u), (6*u*u - 2) * (1 - u*u)}
	}},
	{"sigmoid", ops.Sigmoid, at(-3, 0, 0.5), func(x float64) [4]float64 {
		s := 1 / (1 + math.Exp(-x))
		d := s * (1 - s)
		return [4]float64{s, d, d * (1 - 2*s), d * (1 - 6*s + 6*s*s)}
	}},
	{"erf", ops.Erf, at(-1, 0, 2), func(x float64) [4]float64 {
		d := 2 / math.Sqrt(math.Pi) * math.Exp(-x*x)
		return [4]float64{math.Erf(x), d, -2 * x * d, (4*x*x - 2) * d}
	}},
	{"asin", ops.Asin, at(-0.5, 0, 0.9), func(x float64) [4]float64 {
		u := 1 - x*x
		return [4]float64{math.Asin(x), math.Pow(u, -0.5), x * math.Pow(u, -1.5), (1 + 2*x*x) * math.Pow(u, -2.5)}
	}},
	{"acos", ops.Acos, at(-0.5, 0, 0.9), func(x float64) [4]float64 {
		u := 1 - x*x
		return [4]float64{math.Acos(x), -math.Pow(u, -0.5), -x * math.Pow(u, -1.5), -(1 + 2*x*x) * math.Pow(u, -2.5)}
	}},
	{"atan", ops.Atan, at(-2, 0, 0.5), func(x float64) [4]float64 {
		u := 1 / (1 + x*x)
		return [4]float64{math.Atan(x), u, -2 * x * u * u, (6*x*x - 2) * u * u * u}
	}},
	{
		"reciprocal", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Div(b, constant(b, 1), x) }, at(-2, 0.5),
		func(x float64) [4]float64 { return [4]float64{1 / x, -1 / x / x, 2 / x / x / x, -6 / x / x / x / x} },
	},
	{
		"x to the 2.5", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, constant(b, 2.5)) }, at(0.3, 4),
		func(x float64) [4]float64 {
			return [4]float64{math.Pow(x, 2.5), 2.5 * math.Pow(x, 1.5), 3.75 * math.Sqrt(x), 1.875 / math.Sqrt(x)}
		},
	},
	{
		"2.5 to the x", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, constant(b, 2.5), x) }, at(-1, 0, 3),
		func(x float64) [4]float64 {
			y, l := math.Pow(2.5, x), math.Log(2.5)
			return [4]float64{y, y * l, y * l * l, y * l * l * l}
		},
	},
	{
		"x to the x", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, x) }, at(0.5, 1, 2),
		func(x float64) [4]float64 {
			y, l := math.Pow(x, x), math.Log(x)+1
			return [4]float64{y, y * l, y * (l*l + 1/x), y * (l*l*l + 3*l/x - 1/x/x)}
		},
	},
	{
		"negative base cubed", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, constant(b, 3)) }, at(-2, -0.5),
		func(x float64) [4]float64 { return [4]float64{x * x * x, 3 * x * x, 6 * x, 6} },
	},
	{"silu", ops.Silu, at(-3, 0, 2), func(x float64) [4]float64 {
		s := 1 / (1 + math.Exp(-x))
		d := s * (1 - s)
		d2 := d * (1 - 2*s)
		return [4]float64{x * s, s + x*d, 2*d + x*d2, 3*d2 + x*d*(1-6*s+6*s*s)}
	}},
	// The exact gelu is x·Φ(x): Φ + xφ, (2 − x²)φ, (x³ − 4x)φ.
	{"gelu", ops.Gelu, at(-2, 0, 1, 2), func(x float64) [4]float64 {
		cdf, pdf := 0.5*math.Erfc(-x/math.Sqrt2), math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		return [4]float64{x * cdf, cdf + x*pdf, (2 - x*x) * pdf, (x*x*x - 4*x) * pdf}
	}},
	// y = x(1+tanh u)/2 with u = √(2/π)(x + 0.044715x³).
	{"gelu with tanh", ops.GeluTanh, at(-2, 0, 1, 2), func(x float64) [4]float64 {
		c := math.Sqrt(2 / math.Pi)
		u1, u2, u3 := c*(1+0.134145*x*x), c*0.26829*x, c*0.26829
		h := math.Tanh(c * (x + 0.044715*x*x*x))
		s := 1 - h*h
		h1 := s * u1
		h2 := s*u2 - 2*h*s*u1*u1
		h3 := s*u3 - 6*h*s*u1*u2 + (6*h*h-2)*s*u1*u1*u1
		return [4]float64{x * (1 + h) / 2, (1+h)/2 + x*h1/2, h1 + x*h2/2, 1.5*h2 + x*h3/2}
	}},
}

// kinks are functions at points where a derivative does not exist, is infinite,
// or is easily computed to NaN. The expected value is the convention of package
// ops.
var kinks = []function{
	{"relu at 0", ops.Relu, at(0), fixed(0, 0, 0, 0)},
	{"relu at infinity", ops.Relu, at(inf), fixed(inf, 1, 0, 0)},
	{"relu at minus infinity", ops.Relu, at(-inf), fixed(0, 0, 0, 0)},
	{"abs at 0", ops.Abs, at(0), fixed(0, 0, 0, 0)},
	{"abs below 0", ops.Abs, at(-3), fixed(3, -1, 0, 0)},
	{"sign at 0", ops.Sign, at(0), fixed(0, 0, 0, 0)},
	{"round", ops.Round, at(1.3), fixed(1, 0, 0, 0)},
	{"floor at a step", ops.Floor, at(2), fixed(2, 0, 0, 0)},
	{"sqrt at 0", ops.Sqrt, at(0), fixed(0, inf, -inf, inf)},
	{"log at 0", ops.Log, at(0), fixed(-inf, inf, -inf, inf)},
	{"square by pow at 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, constant(b, 2)) }, at(0), fixed(0, 0, 2, 0)},
	{"cube by pow at 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, constant(b, 3)) }, at(0), fixed(0, 0, 0, 6)},
	{"first power at 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, constant(b, 1)) }, at(0), fixed(0, 1, 0, 0)},
	{"zeroth power at 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, constant(b, 0)) }, at(0), fixed(1, 0, 0, 0)},
	{"x to the 1.5 at 0", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, x, constant(b, 1.5)) }, at(0), fixed(0, 0, inf, -inf)},
	{"0 to the x", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Pow(b, constant(b, 0), x) }, at(2), fixed(0, 0, 0, 0)},
	{"max with itself", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Max(b, x, x) }, at(2), fixed(2, 1, 0, 0)},
	{"max tie", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Max(b, x, ops.Mul(b, x, x)) }, at(1), fixed(1, 1.5, 1, 0)},
	{"min tie", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Min(b, x, ops.Mul(b, x, x)) }, at(1), fixed(1, 1.5, 1, 0)},
	{"max with a constant tie", func(b *ir.Builder, x ir.Value) ir.Value { return ops.Max(b, x, constant(b, 0)) }, at(0), fixed(0, 0.5, 0, 0)},
	{"clamp inside", clamped, at(0.5), fixed(0.5, 1, 0, 0)},
	{"clamp at its bound", clamped, at(0), fixed(0, 1, 0, 0)},
	{"clamp outside", clamped, at(-2), fixed(0, 0, 0, 0)},
	{"masked log at 0", masked(ops.Log), at(0), fixed(0, 0, 0, 0)},
	{"masked log below 0", masked(ops.Log), at(-1), fixed(0, 0, 0, 0)},
	{"masked log above 0", masked(ops.Log), at(2), fixed(math.Log(2), 0.5, -0.25, 0.25)},
	{"masked sqrt at 0", masked(ops.Sqrt), at(0), fixed(0, 0, 0, 0)},
	{"masked rsqrt at 0", masked(ops.Rsqrt), at(0), fixed(0, 0, 0, 0)},
	{"masked reciprocal at 0", masked(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Div(b, constant(b, 1), x) }), at(0), fixed(0, 0, 0, 0)},
	{"masked exp overflow", masked(func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Exp(b, ops.Mul(b, x, constant(b, -1)))
	}), at(-1e4), fixed(0, 0, 0, 0)},
	{"masked norm at 0", masked(func(b *ir.Builder, x ir.Value) ir.Value { return ops.Sqrt(b, ops.Mul(b, x, x)) }), at(0), fixed(0, 0, 0, 0)},
	{"product of a vector with one zero", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ReduceProd(b, stack(b, x, constant(b, 2), constant(b, 5)))
	}, at(0), fixed(0, 10, 0, 0)},
	{"product of a vector with two zeros", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ReduceProd(b, stack(b, x, constant(b, 2), x))
	}, at(0), fixed(0, 0, 4, 0)},
	{"product of a vector with three zeros", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ReduceProd(b, stack(b, x, x, x))
	}, at(0), fixed(0, 0, 0, 6)},
	{"reduce max of ties", func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.ReduceMax(b, stack(b, x, ops.Mul(b, x, x), constant(b, 1), constant(b, 0)))
	}, at(1), fixed(1, 1, 2./3, 0)},
}

func clamped(b *ir.Builder, x ir.Value) ir.Value {
	return ops.Clamp(b, x, constant(b, 0), constant(b, 1))
}

// masked is f where its operand is above zero, and 0 elsewhere.
func masked(f func(b *ir.Builder, x ir.Value) ir.Value) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value {
		return ops.Select(b, ops.Gt(b, x, constant(b, 0)), f(b, x), constant(b, 0))
	}
}

func stack(b *ir.Builder, x ...ir.Value) ir.Value {
	rows := make([]ir.Value, len(x))
	for i, v := range x {
		rows[i] = ops.Reshape(b, v, ir.N(1))
	}
	return ops.Concatenate(b, 0, rows...)
}

func TestDerivativesAreThoseOfTheClosedForm(t *testing.T) { checkFunctions(t, smooth) }

func TestDerivativesAtKinksFollowTheConvention(t *testing.T) { checkFunctions(t, kinks) }

// TestFourthDerivativeOfTheSelfPower takes x^x at 1, where the exponent of a factor is 0 from the
// second order on: 1, 1, 2, 3, 8.
func TestFourthDerivativeOfTheSelfPower(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64)
		b.Output("y", ops.Pow(b, x, x))
	})
	d, err := autodiff.NthOrder(g, "y", "x", 4)
	out := eval(t, must(t, d, err), values{"x": num(1)})
	for name, want := range map[string]float64{"d1/y": 1, "d2/y": 2, "d3/y": 3, "d4/y": 8} {
		checkFloats(t, name, out[name], []float64{want}, 1e-12)
	}
}

// checkFunctions computes derivatives up to the third in every way there is.
func checkFunctions(t *testing.T, table []function) {
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) { b.Output("y", c.f(b, b.Input("x", ir.F64))) })
			for _, x := range c.at {
				want := c.want(x)
				for way, got := range everyWay(t, g, x) {
					for k, y := range got {
						if !same(y, want[k], 1e-11) {
							t.Errorf("at %v, %s: derivative %d is %v, want %v", x, way, k, y, want[k])
						}
					}
				}
			}
		})
	}
}

// everyWay returns value and derivatives of y by x: by forward mode three times
// over, as a Taylor series, by reverse mode three times over, and by a mix of them.
func everyWay(t *testing.T, g *ir.Graph, x float64) map[string][4]float64 {
	t.Helper()
	out := map[string][4]float64{}
	n, err := autodiff.NthOrder(g, "y", "x", 3)
	forward := eval(t, must(t, n, err), values{"x": num(x)})
	out["forward"] = [4]float64{forward["y"].F[0], forward["d1/y"].F[0], forward["d2/y"].F[0], forward["d3/y"].F[0]}

	j, err := autodiff.Jet(g, 3, "x")
	along := eval(t, must(t, j, err), values{"x": num(x), "series/1/x": num(1), "series/2/x": num(0), "series/3/x": num(0)})
	out["Taylor series"] = [4]float64{along["y"].F[0], along["series/1/y"].F[0], along["series/2/y"].F[0], along["series/3/y"].F[0]}

	zero := autodiff.GradOptions{Wrt: []string{"x"}, Missing: autodiff.MissingIsZero}
	r, loss := g, "y"
	for _, next := range []string{"grad/x", "grad2/x", "grad3/x"} {
		zero.Loss = loss
		d, err := autodiff.GradWith(r, zero)
		r, loss = must(t, d, err), next
	}
	reverse := eval(t, r, values{"x": num(x)})
	out["reverse"] = [4]float64{reverse["y"].F[0], reverse["grad/x"].F[0], reverse["grad2/x"].F[0], reverse["grad3/x"].F[0]}

	// Forward over reverse over forward.
	j, err = autodiff.JVP(g, "x")
	zero.Loss = "tangent/y"
	d, err := autodiff.GradWith(must(t, j, err), zero)
	jj, err := autodiff.JVP(must(t, d, err), "x")
	mixed := eval(t, must(t, jj, err), values{"x": num(x), "tangent/x": num(1), "tangent2/x": num(1)})
	out["mixed"] = [4]float64{mixed["y"].F[0], mixed["tangent/y"].F[0], mixed["grad/x"].F[0], mixed["tangent2/grad/x"].F[0]}
	return out
}
