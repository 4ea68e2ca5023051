package autodiff_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/gradcheck"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// softplusJVP is log(1+eˣ) with the derivative σ(x), which does not overflow.
func softplusJVP(b *ir.Builder, x ir.Value) ir.Value {
	return autodiff.CustomJVP(b, []ir.Value{x}, func(b *ir.Builder, in []ir.Value) []ir.Value {
		return []ir.Value{ops.Log1p(b, ops.Exp(b, in[0]))}
	}, func(b *ir.Builder, in, t []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, t[0], ops.Sigmoid(b, in[0]))}
	})[0]
}

// softplusVJP is the same by a reverse derivative, which uses its result too.
func softplusVJP(b *ir.Builder, x ir.Value) ir.Value {
	return autodiff.CustomVJP(b, []ir.Value{x}, func(b *ir.Builder, in []ir.Value) (results, kept []ir.Value) {
		y := ops.Log1p(b, ops.Exp(b, in[0]))
		return []ir.Value{y}, []ir.Value{in[0], y}
	}, func(b *ir.Builder, kept, ct []ir.Value) []ir.Value {
		return []ir.Value{ops.Mul(b, ct[0], ops.Exp(b, ops.Sub(b, kept[0], kept[1])))}
	})[0]
}

func TestCustomDerivativesHoldInEveryModeAndOrder(t *testing.T) {
	want := func(x float64) [4]float64 {
		s := 1 / (1 + math.Exp(-x))
		d := s * (1 - s)
		return [4]float64{math.Log1p(math.Exp(x)), s, d, d * (1 - 2*s)}
	}
	checkFunctions(t, []function{
		{"by a jvp", softplusJVP, at(-2, 0, 3), want},
		{"by a vjp", softplusVJP, at(-2, 0, 3), want},
		{"straight-through rounding", func(b *ir.Builder, x ir.Value) ir.Value {
			y := autodiff.CustomVJP(b, []ir.Value{x}, func(b *ir.Builder, in []ir.Value) (results, kept []ir.Value) {
				return []ir.Value{ops.Round(b, in[0])}, nil
			}, func(_ *ir.Builder, _, ct []ir.Value) []ir.Value { return ct })[0]
			return ops.Mul(b, y, y)
		}, at(1.3), fixed(1, 2, 2, 0)},
		{"scaled by a stopped value", func(b *ir.Builder, x ir.Value) ir.Value {
			return ops.Mul(b, x, autodiff.StopGradient(b, ops.Mul(b, x, x)))
		}, at(3), fixed(27, 9, 0, 0)},
	})
}

func TestCustomDerivativesPassGradcheckAndVmap(t *testing.T) {
	for name, f := range map[string]func(*ir.Builder, ir.Value) ir.Value{"jvp": softplusJVP, "vjp": softplusVJP} {
		t.Run(name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) {
				b.Output("y", f(b, ops.Mul(b, b.Input("x", ir.F64, ir.N(3)), b.Input("w", ir.F64, ir.N(3)))))
			})
			in := values{"x": vec(0.5, -1, 2), "w": vec(1, 3, -2)}
			if err := gradcheck.Check(g, in, gradcheck.Options{Order: 2}); err != nil {
				t.Error(err)
			}
			for _, axes := range []map[string]int{{"x": 0}, {"w": 1}, {"x": 1, "w": 0}} {
				checkVmap(t, g, in, axes)
			}
			d, err := autodiff.VJP(g)
			in["cotangent/y"] = vec(1, 2, 3)
			checkVmap(t, must(t, d, err), in, map[string]int{"x": 0})
			checkVmap(t, d, in, map[string]int{"cotangent/y": 0})
		})
	}
}

func TestCustomDerivativesSkipIntegerOperands(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x, i := b.Input("x", ir.F64), b.Input("i", ir.I32)
		out := autodiff.CustomVJP(b, []ir.Value{i, x}, func(b *ir.Builder, in []ir.Value) (results, kept []ir.Value) {
			return []ir.Value{ops.Neg(b, in[0]), ops.Mul(b, ops.Convert(b, in[0], ir.F64), in[1])}, in[:1]
		}, func(b *ir.Builder, kept, ct []ir.Value) []ir.Value {
			return []ir.Value{ops.Mul(b, ct[0], ops.Convert(b, kept[0], ir.F64))}
		})
		b.Output("i", out[0])
		b.Output("y", out[1])
	})
	d, err := autodiff.ValueAndGrad(g, "y", "x")
	got := eval(t, must(t, d, err), values{"x": num(2), "i": ir.Int(ir.I32, 7)})
	checkFloats(t, "grad", got["grad/x"], []float64{7}, 0)
	if got["i"].I[0] != -7 {
		t.Errorf("result %d, want -7", got["i"].I[0])
	}
}

func TestCustomDerivativesOfWrongTypesAreRefused(t *testing.T) {
	_, err := ir.Build("f", func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(3))
		b.Output("y", autodiff.CustomVJP(b, []ir.Value{x}, func(_ *ir.Builder, in []ir.Value) (results, kept []ir.Value) {
			return in, nil
		}, func(b *ir.Builder, _, ct []ir.Value) []ir.Value { return []ir.Value{ops.ReduceSum(b, ct[0])} })[0])
	})
	if !errors.Is(err, ir.ErrShape) {
		t.Errorf("error %v, want one of kind ErrShape", err)
	}
}

func TestDirectionalDerivativesContractWithEachDirection(t *testing.T) {
	// y = Σ x³: the derivatives along u, v, w are 3Σx²u, 6Σxuv and 6Σuvw.
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(2))
		b.Output("y", ops.ReduceSum(b, ops.Mul(b, x, ops.Mul(b, x, x))))
	})
	d, err := autodiff.Directional(g, "y", "x", 3)
	got := eval(t, must(t, d, err), values{
		"x": vec(2, 3), "direction1/x": vec(1, 10), "direction2/x": vec(5, 7), "direction3/x": vec(-1, 2),
	})
	checkFloats(t, "d1", got["d1/y"], []float64{3 * (4 + 90)}, 1e-14)
	checkFloats(t, "d2", got["d2/y"], []float64{6 * (10 + 210)}, 1e-14)
	checkFloats(t, "d3", got["d3/y"], []float64{6 * (-5 + 140)}, 1e-14)
}

// TestNestedDirectionalDerivatives nests them: of Σ x³ along u, then v and w.
func TestNestedDirectionalDerivatives(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.F64, ir.N(2))
		b.Output("y", ops.ReduceSum(b, ops.Mul(b, x, ops.Mul(b, x, x))))
	})
	first, err := autodiff.Directional(g, "y", "x", 1)
	name := autodiff.OrderName(1, "y")
	d, err2 := autodiff.Directional(must(t, first, err), name, "x", 2)
	in := values{"x": vec(2, 3)}
	for k, v := range []*ir.Array{vec(1, 10), vec(5, 7), vec(-1, 2)} {
		in[autodiff.DirectionName(k+1, "x")] = v
	}
	got := eval(t, must(t, d, err2), in)
	checkFloats(t, "first", got[name], []float64{3 * (4 + 90)}, 1e-14)
	checkFloats(t, "second", got[autodiff.OrderName(1, name)], []float64{6 * (10 + 210)}, 1e-14)
	checkFloats(t, "third", got[autodiff.OrderName(2, name)], []float64{6 * (-5 + 140)}, 1e-14)
}
