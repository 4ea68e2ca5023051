package autodiff_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// repeatedJVP returns g with what n times JVP adds. A port of it whose name
// begins with m prefixes "tangent" is to be given the m-th derivative of the
// curve; such an output is the m-th derivative along it.
func repeatedJVP(t *testing.T, g *ir.Graph, n int) *ir.Graph {
	t.Helper()
	for range n {
		d, err := autodiff.JVP(g)
		g = must(t, d, err)
	}
	return g
}

// tangents splits the prefixes off a name that JVP gave, and counts them.
func tangents(name string) (n int, rest string) {
	for strings.HasPrefix(name, "tangent") {
		_, name, _ = strings.Cut(name, "/")
		n++
	}
	return n, name
}

// curveOf returns derivatives 1 to n of a curve through x: numbers like those of
// wave, so small that it stays in the domains of the samples.
func curveOf(x *ir.Array, n int) []*ir.Array {
	out := []*ir.Array{x}
	for k := 1; k <= n; k++ {
		d := ir.NewArray(x.DType, x.Dims...)
		for i := range d.F {
			d.F[i] = 0.25 * math.Sin(float64(3*k)+0.7*float64(i))
		}
		out = append(out, d)
	}
	return out
}

// TestSeriesOfEveryOpAreRepeatedDerivatives compares, for every sample of every
// op, the derivatives to the third that Jet gives with those of JVP of JVP of
// JVP.
func TestSeriesOfEveryOpAreRepeatedDerivatives(t *testing.T) {
	const order = 3
	checked := 0
	eachSample(t, func(t *testing.T, d *ir.Def, s ir.Sample) {
		if d.NoGrad != "" || isComplex(s) || elements(s) > 60 {
			return
		}
		g, in := sampleGraph(t, d.Op, s)
		if !isFinite(t, g, in) {
			return
		}
		given, curve := values{}, map[string][]*ir.Array{}
		for name, x := range in {
			curve[name] = curveOf(x, order)
			given[name] = x
			for k := 1; k <= order; k++ {
				given[autodiff.SeriesName(k, name)] = curve[name][k]
			}
		}
		j, err := autodiff.Jet(g, order)
		if _, refused := autodiff.JVP(g); refused != nil {
			if !errors.Is(err, ir.ErrNoRule) {
				t.Errorf("error %v, JVP has %v", err, refused)
			}
			return
		}
		got := eval(t, must(t, j, err), onlyPorts(j, given))
		deep := repeatedJVP(t, g, order)
		points := values{}
		for _, p := range deep.Ports() {
			n, name := tangents(p.Name)
			points[p.Name] = curve[name][n]
		}
		for name, want := range eval(t, deep, points) {
			if k, y := tangents(name); k > 0 {
				checked++
				checkFloats(t, name, got[autodiff.SeriesName(k, y)], want.F, tolerance(s))
			}
		}
	})
	if checked < 3000 {
		t.Errorf("only %d derivatives were compared", checked)
	}
}

// onlyPorts returns those of the values that g takes.
func onlyPorts(g *ir.Graph, all values) values {
	out := values{}
	for _, p := range g.Ports() {
		out[p.Name] = all[p.Name]
	}
	return out
}

// TestSeriesAlongACurveFollowFaaDiBruno takes y = exp(x) along x(s) with
// derivatives a, b, c: y' = a·y, y″ = (a² + b)·y, y‴ = (a³ + 3ab + c)·y.
func TestSeriesAlongACurveFollowFaaDiBruno(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(2))
		b.Output("y", ops.Exp(b, x))
		b.Output("rest", b.Input("other", ir.F64))
	})
	j, err := autodiff.Jet(g, 3, "x")
	got := eval(t, must(t, j, err), values{
		"x": vec(0.3, -1), "other": num(4),
		"series/1/x": vec(2, 0.5), "series/2/x": vec(3, -1), "series/3/x": vec(5, 7),
	})
	y := [2]float64{math.Exp(0.3), math.Exp(-1)}
	checkFloats(t, "first", got["series/1/y"], []float64{2 * y[0], 0.5 * y[1]}, 1e-14)
	checkFloats(t, "second", got["series/2/y"], []float64{7 * y[0], -0.75 * y[1]}, 1e-14)
	checkFloats(t, "third", got["series/3/y"], []float64{31 * y[0], (0.125 - 1.5 + 7) * y[1]}, 1e-14)
	checkFloats(t, "what rests", got["series/2/rest"], []float64{0}, 0)
}

// deepMLP is a network of four layers whose output is a scalar, moved along one
// number.
func deepMLP(t *testing.T) *ir.Graph {
	return build(t, func(b *ir.Builder) {
		s := b.Input("s", ir.F64)
		h := ops.Mul(b, s, b.Param("x", ir.F64, ir.Dims(4, 8)...))
		for _, name := range []string{"w1", "w2", "w3"} {
			h = ops.Tanh(b, ops.MatMul(b, h, b.Param(name, ir.F64, ir.Dims(8, 8)...)))
		}
		b.Output("y", ops.ReduceSum(b, ops.Gelu(b, h)))
	})
}

// TestSeriesGrowPolynomially counts nodes after simplification. Repeated JVP of
// the same network at least doubles with each order.
func TestSeriesGrowPolynomially(t *testing.T) {
	g := deepMLP(t)
	size := func(d *ir.Graph, err error) int {
		small, err := passes.Run(must(t, d, err), passes.Options{})
		return len(must(t, small, err).Nodes())
	}
	var jets []int
	for order := 1; order <= 8; order++ {
		jets = append(jets, size(autodiff.Jet(g, order, "s")))
	}
	t.Logf("nodes of orders 1 to 8: %d", jets)
	for order := 2; order <= 8; order++ {
		first, now := float64(jets[0]), float64(jets[order-1])
		if now > first*math.Pow(float64(order), 2) {
			t.Errorf("order %d takes %v nodes, order 1 %v: more than the square", order, now, first)
		}
	}
	deep := size(repeatedJVP(t, g, 5), nil)
	t.Logf("JVP five times over: %d nodes", deep)
	if jets[4]*2 > deep {
		t.Errorf("order 5 takes %d nodes, JVP five times over %d", jets[4], deep)
	}
}

// tanhAt04 holds the derivatives 1 to 8 of tanh at 0.4: mpmath 1.4.1 with 40
// digits, taylor(tanh, mpf("0.4"), 8)[n]·n!.
var tanhAt04 = []float64{
	0.8556387860811777, -0.6501981376737277, -0.9701512491541174, 4.075224392081779,
	1.0074920302673323, -48.2506023304905, 86.98817185946375, 816.1528830024289,
}

func TestEighthDerivativeOfTanh(t *testing.T) {
	g := build(t, func(b *ir.Builder) { b.Output("y", ops.Tanh(b, b.Input("x", ir.F64))) })
	j, err := autodiff.Jet(g, 8)
	in := values{"x": num(0.4), "series/1/x": num(1)}
	for k := 2; k <= 8; k++ {
		in[autodiff.SeriesName(k, "x")] = num(0)
	}
	got := eval(t, must(t, j, err), in)
	for i, want := range tanhAt04 {
		checkFloats(t, "derivative", got[autodiff.SeriesName(i+1, "y")], []float64{want}, 1e-12)
	}
}

func TestSeriesRefuseUnsupportedGraphs(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64)
		b.Output("y", ops.Sin(b, x))
		b.Input("unused", ir.F64)
		b.Input("i", ir.I32)
	})
	for name, c := range map[string]struct {
		apply func() (*ir.Graph, error)
		want  error
	}{
		"order":   {func() (*ir.Graph, error) { return autodiff.Jet(g, 0, "x") }, ir.ErrAttr},
		"port":    {func() (*ir.Graph, error) { return autodiff.Jet(g, 1, "z") }, ir.ErrName},
		"integer": {func() (*ir.Graph, error) { return autodiff.Jet(g, 1, "i") }, ir.ErrDType},
		"nil":     {func() (*ir.Graph, error) { return autodiff.Jet(nil, 1) }, ir.ErrGraph},
		"no path": {func() (*ir.Graph, error) {
			return autodiff.JetWith(g, 2, autodiff.Options{Wrt: []string{"unused"}})
		}, autodiff.ErrNoPath},
	} {
		if _, err := c.apply(); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want one of kind %v", name, err, c.want)
		}
	}
}
