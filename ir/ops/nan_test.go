package ops_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func valueOf(t *testing.T, f function, x float64) float64 {
	t.Helper()
	g := must(ir.Build("f", func(b *ir.Builder) { b.Output("y", f(b, b.Input("x", ir.F64, ir.N(1)))) }))(t)
	return valueAt(t, g, []float64{x})[0]
}

// TestFunctionsOutsideTheirDomain checks that functions are NaN outside their domain.
func TestFunctionsOutsideTheirDomain(t *testing.T) {
	for name, c := range map[string]struct {
		f  function
		at []float64
	}{
		"acosh": {ops.Acosh, []float64{0.999, 0, -1, -1.5, -4.9e5, -1e10, -1e22, -1e200, math.Inf(-1)}},
		"atanh": {ops.Atanh, []float64{1.001, -1.001, 4.9e5, -1e10, 1e22, math.Inf(1), math.Inf(-1)}},
		"log":   {ops.Log, []float64{-1e-300, -1, math.Inf(-1)}},
		"log1p": {ops.Log1p, []float64{-1.001, -1e10, math.Inf(-1)}},
		"sqrt":  {ops.Sqrt, []float64{-1e-300, -1, math.Inf(-1)}},
		"asin":  {ops.Asin, []float64{1.001, -1.001, 1e200, math.Inf(-1)}},
		"acos":  {ops.Acos, []float64{1.001, -1.001, 1e200, math.Inf(-1)}},
	} {
		for _, x := range c.at {
			if y := valueOf(t, c.f, x); !math.IsNaN(y) {
				t.Errorf("%s(%v) is %v, not NaN", name, x, y)
			}
		}
	}
}

// TestLogSumExpOfInfinity holds the values of jax.scipy.special.logsumexp 0.10.
func TestLogSumExpOfInfinity(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		x    []float64
		want float64
	}{
		{[]float64{inf, 0, 1}, inf},
		{[]float64{inf, inf}, inf},
		{[]float64{inf, -inf}, inf},
		{[]float64{-inf, -inf}, -inf},
		{[]float64{-inf, 2}, 2},
		{[]float64{inf, math.NaN()}, math.NaN()},
	} {
		g := must(ir.Build("f", func(b *ir.Builder) {
			b.Output("y", ops.LogSumExp(b, b.Input("x", ir.F64, ir.N(len(c.x))), 0))
		}))(t)
		if y := valueAt(t, g, c.x)[0]; y != c.want && !(math.IsNaN(y) && math.IsNaN(c.want)) {
			t.Errorf("of %v: %v, want %v", c.x, y, c.want)
		}
	}
}

// TestSoftmaxOfNaN checks that a NaN in a row makes all of the row NaN, as in JAX and PyTorch,
// and that derivatives of the row are NaN, too.
func TestSoftmaxOfNaN(t *testing.T) {
	for name, f := range map[string]function{
		"softmax":     func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmax(b, x, 0) },
		"log_softmax": func(b *ir.Builder, x ir.Value) ir.Value { return ops.LogSoftmax(b, x, 0) },
		"softmin":     func(b *ir.Builder, x ir.Value) ir.Value { return ops.Softmin(b, x, 0) },
		"gradient of logsumexp": func(b *ir.Builder, x ir.Value) ir.Value {
			g := must(ir.Build("f", func(b *ir.Builder) { b.Output("y", ops.LogSumExp(b, b.Input("x", ir.F64, ir.N(3)), 0)) }))(t)
			return b.Splice(must(autodiff.ValueAndGrad(g, "y", "x"))(t), []ir.Value{x})[1]
		},
	} {
		g := must(ir.Build("f", func(b *ir.Builder) { b.Output("y", f(b, b.Input("x", ir.F64, ir.N(3)))) }))(t)
		for i, y := range valueAt(t, g, []float64{1, math.NaN(), 0}) {
			if !math.IsNaN(y) {
				t.Errorf("%s: element %d is %v", name, i, y)
			}
		}
	}
}
