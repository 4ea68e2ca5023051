package autodiff_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// power is Σ x³·c with c from outside of the function, and x itself as a second
// value.
func power(c ir.Value) autodiff.Function {
	return func(b *ir.Builder, in []ir.Value) []ir.Value {
		x := in[0]
		return []ir.Value{ops.ReduceSum(b, ops.Mul(b, ops.Mul(b, x, ops.Mul(b, x, x)), c)), x}
	}
}

func TestGradientsOfFunctionsAreThoseOfTheClosedForm(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, c := b.Input("x", ir.F64, ir.N(3)), b.Input("c", ir.F64, ir.N(3))
		values, grads := autodiff.ValueAndGradOf(b, power(c), []ir.Value{x})
		b.Output("y", values[0])
		b.Output("aux", values[1])
		b.Output("g", grads[0])
		// A gradient of a function of a gradient: Σ (3cx²)·x = 3·Σ cx³, by x 9cx².
		b.Output("second", autodiff.GradOf(b, func(b *ir.Builder, in []ir.Value) []ir.Value {
			first := autodiff.GradOf(b, power(c), in)
			return []ir.Value{ops.ReduceSum(b, ops.Mul(b, first[0], in[0]))}
		}, []ir.Value{x})[0])
		// The same value twice: by the first place alone, and used from outside.
		b.Output("twice", autodiff.GradOf(b, func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.ReduceSum(b, ops.Mul(b, ops.Mul(b, in[0], in[1]), ops.Mul(b, in[1], x)))}
		}, []ir.Value{x, x})[0])
	})
	x, c := []float64{1, -2, 3}, []float64{2, 5, -1}
	got := eval(t, g, values{"x": vec(x...), "c": vec(c...)})
	want := map[string][]float64{"y": {0}, "aux": x, "g": {}, "second": {}, "twice": {}}
	for i := range x {
		want["y"][0] += c[i] * x[i] * x[i] * x[i]
		want["g"] = append(want["g"], 3*c[i]*x[i]*x[i])
		want["second"] = append(want["second"], 9*c[i]*x[i]*x[i])
		want["twice"] = append(want["twice"], x[i]*x[i]*x[i])
	}
	for name, w := range want {
		checkFloats(t, name, got[name], w, 1e-14)
	}
}

// TestGradientThroughAnInnerStep differentiates a loss after a step of gradient
// descent by where the step began: with f(w) = (w−a)²/2 and w' = w − r·(w−a) the
// gradient of (w'−c)²/2 by w is (1−r)·(w'−c), and by r it is −(w−a)·(w'−c).
func TestGradientThroughAnInnerStep(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		w, r := b.Param("w", ir.F64), b.Param("r", ir.F64)
		a, c := b.Input("a", ir.F64), b.Input("c", ir.F64)
		half := func(x, y ir.Value) []ir.Value {
			d := ops.Sub(b, x, y)
			return []ir.Value{ops.Mul(b, ops.Mul(b, d, d), constant(b, 0.5))}
		}
		inner := autodiff.GradOf(b, func(_ *ir.Builder, in []ir.Value) []ir.Value { return half(in[0], a) }, []ir.Value{w})
		b.Output("loss", half(ops.Sub(b, w, ops.Mul(b, r, inner[0])), c)[0])
	})
	d, err := autodiff.Grad(g, "loss")
	w, r, a, c := 3.0, 0.25, 1.0, -2.0
	after := w - r*(w-a)
	got := eval(t, must(t, d, err), values{"w": num(w), "r": num(r), "a": num(a), "c": num(c)})
	checkFloats(t, "by w", got["grad/w"], []float64{(1 - r) * (after - c)}, 1e-14)
	checkFloats(t, "by r", got["grad/r"], []float64{-(w - a) * (after - c)}, 1e-14)
}

func TestPullbacksAndTangentsOfFunctions(t *testing.T) {
	f := func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Sin(b, in[0]), ops.Mul(b, in[0], in[1]), in[2]}
	}
	g := build(t, func(b *ir.Builder) {
		xs := []ir.Value{b.Input("x", ir.F64), b.Input("y", ir.F64), b.Input("i", ir.I32), b.Input("z", ir.F64)}
		_, pull := autodiff.VJPOf(b, f, xs)
		first := pull([]ir.Value{constant(b, 2), {}, {}})
		second := pull([]ir.Value{{}, constant(b, 3), {}})
		_, tangents := autodiff.JVPOf(b, f, xs, []ir.Value{constant(b, 5), {}, {}, {}})
		for name, v := range map[string]ir.Value{
			"2cos x": first[0], "0 by y": first[1], "3y": second[0], "3x": second[1], "0 by z": first[3],
			"5cos x": tangents[0], "5y": tangents[1],
		} {
			b.Output(name, v)
		}
		if first[2].Valid() || tangents[2].Valid() {
			t.Error("an integer has a derivative")
		}
	})
	got := eval(t, g, values{"x": num(0.7), "y": num(4), "i": ir.Int(ir.I32, 1), "z": num(1)})
	for name, want := range map[string]float64{
		"2cos x": 2 * math.Cos(0.7), "0 by y": 0, "3y": 12, "3x": 2.1, "0 by z": 0, "5cos x": 5 * math.Cos(0.7), "5y": 20,
	} {
		checkFloats(t, name, got[name], []float64{want}, 1e-14)
	}
}

func TestFunctionsThatCannotBeDifferentiatedAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		f    autodiff.Function
		want error
	}{
		"not a scalar": {func(_ *ir.Builder, in []ir.Value) []ir.Value { return in }, ir.ErrShape},
		"no path": {func(b *ir.Builder, _ []ir.Value) []ir.Value {
			return []ir.Value{constant(b, 1)}
		}, autodiff.ErrNoPath},
		"path that ends": {func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.ReduceSum(b, autodiff.StopGradient(b, in[0]))}
		}, autodiff.ErrNoPath},
		"nothing":  {func(*ir.Builder, []ir.Value) []ir.Value { return nil }, ir.ErrGraph},
		"no value": {func(*ir.Builder, []ir.Value) []ir.Value { return make([]ir.Value, 1) }, ir.ErrGraph},
		"its own error": {func(b *ir.Builder, in []ir.Value) []ir.Value {
			return []ir.Value{ops.Reshape(b, in[0], ir.N(7))}
		}, ir.ErrShape},
	} {
		_, err := ir.Build("f", func(b *ir.Builder) {
			autodiff.GradOf(b, c.f, []ir.Value{b.Input("x", ir.F64, ir.N(3))})
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want one of kind %v", name, err, c.want)
		}
	}
}

// TestGradientsByValuesOnTheWay: of loss = Σ exp(h)·w with h = w·x, by h it is
// exp(h)·w, by w it counts h's share too.
func TestGradientsByValuesOnTheWay(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		w, x := b.Param("w", ir.F64, ir.N(2)), b.Input("x", ir.F64, ir.N(2))
		h := ops.Mul(b, w, x)
		b.Output("h", h)
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, ops.Exp(b, h), w)))
		b.Output("same", w)
		b.Output("beside", ops.Sin(b, x))
	})
	d, err := autodiff.Grad(g, "loss", "h", "w", "same")
	w, x := []float64{0.5, -1}, []float64{2, 0.25}
	var byH, byW []float64
	for i := range w {
		e := math.Exp(w[i] * x[i])
		byH, byW = append(byH, e*w[i]), append(byW, e+e*w[i]*x[i])
	}
	got := eval(t, must(t, d, err), values{"w": vec(w...), "x": vec(x...)})
	checkFloats(t, "by h", got["grad/h"], byH, 1e-14)
	checkFloats(t, "by w", got["grad/w"], byW, 1e-14)
	checkFloats(t, "by an output that is w", got["grad/same"], byW, 1e-14)
	if _, err := autodiff.Grad(g, "loss", "beside"); !errors.Is(err, autodiff.ErrNoPath) {
		t.Errorf("error %v for a value beside the way", err)
	}
}

func TestSplitVJPIsVJPInTwoGraphs(t *testing.T) {
	g, in := models["mlp"].graph(t, ir.N(4))
	whole, err := autodiff.VJP(g)
	in["cotangent/loss"] = num(2)
	want := eval(t, must(t, whole, err), in)
	forward, backward, err := autodiff.SplitVJP(g, autodiff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	between := eval(t, forward, onlyPorts(forward, in))
	checkFloats(t, "loss", between["loss"], want["loss"].F, 1e-14)
	maps.Copy(between, in)
	if slices.Contains(portNames(backward), "input labels") || !slices.Contains(portNames(backward), "param w2") {
		t.Errorf("the second graph takes %q", portNames(backward))
	}
	for name, x := range eval(t, backward, onlyPorts(backward, between)) {
		checkFloats(t, name, x, want[name].F, 1e-13)
	}
	if _, _, err := autodiff.SplitVJP(g, autodiff.Options{Policy: autodiff.SaveMinCut()}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("error %v for a policy", err)
	}
}

// TestSwishGradientByBeta: of x·σ(βx) it is x²·σ(βx)·(1 − σ(βx)).
func TestSwishGradientByBeta(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, beta := b.Input("x", ir.F64, ir.N(3)), b.Param("beta", ir.F64)
		b.Output("loss", ops.ReduceSum(b, ops.Swish(b, x, beta)))
	})
	d, err := autodiff.ValueAndGrad(g, "loss")
	got := eval(t, must(t, d, err), values{"x": vec(-2, 0, 1.5), "beta": num(0.7)})
	loss, grad := 0.0, 0.0
	for _, x := range []float64{-2, 0, 1.5} {
		s := 1 / (1 + math.Exp(-0.7*x))
		loss += x * s
		grad += x * x * s * (1 - s)
	}
	checkFloats(t, "loss", got["loss"], []float64{loss}, 1e-14)
	checkFloats(t, "by beta", got["grad/beta"], []float64{grad}, 1e-14)
}
