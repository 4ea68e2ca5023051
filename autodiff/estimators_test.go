package autodiff_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// gradients evaluates a graph's loss and its gradients at the given inputs.
func gradients(t *testing.T, in map[string]*ir.Array, wrt []string, loss func(b *ir.Builder, in map[string]ir.Value) ir.Value) map[string]*ir.Array {
	t.Helper()
	g, err := ir.Build("loss", func(b *ir.Builder) {
		ports := map[string]ir.Value{}
		for name, x := range in {
			ports[name] = b.Port(ir.InputPort, name, x.Type())
		}
		b.Output("loss", loss(b, ports))
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err = autodiff.ValueAndGrad(g, "loss", wrt...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ir.Eval(g, in, ir.EvalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]*ir.Array{}
	for i, o := range g.Outputs() {
		named[o.Name] = out[i]
	}
	return named
}

// TestEstimatorsOfRounding checks the estimators of the derivative of rounding,
// by the formulas of its names.
func TestEstimatorsOfRounding(t *testing.T) {
	x := []float64{-2, -1.01, -0.3, 0, 0.99, 1.2, 1.6}
	inRange := func(limit float64) func(x float64) float64 {
		return func(x float64) float64 {
			if math.Abs(x) <= limit {
				return 1
			}
			return 0
		}
	}
	for ste, slope := range map[string]func(x float64) float64{
		ops.STEIdentity: func(float64) float64 { return 1 },
		ops.STEClipped:  inRange(1.5),
		ops.STETanh:     func(x float64) float64 { return 1 - math.Tanh(x)*math.Tanh(x) },
		ops.STEHardTanh: inRange(1),
	} {
		in := map[string]*ir.Array{"x": ir.Floats(ir.F64, x), "largest": ir.Float(ir.F64, 1.5)}
		got := gradients(t, in, []string{"x"}, func(b *ir.Builder, in map[string]ir.Value) ir.Value {
			y, _ := ops.FakeQuant(b, in["x"], in["largest"], ops.FakeQuantAttrs{Bits: 4, STE: ste, Scale: ops.ScaleFixed})
			return ops.ReduceSum(b, y)
		})
		for i, v := range x {
			if d := got[autodiff.GradName("x")].F[i]; !(math.Abs(d-slope(v)) <= 1e-15) {
				t.Errorf("%s: the slope at %v is %v, want %v", ste, v, d, slope(v))
			}
		}
	}
}

// By torch._fake_quantize_learnable_per_tensor_affine of PyTorch 2.15 with scale
// 0.3, the range -4 to 3, gradient factor 0.5 and cotangents 1 to 7.
func TestLearnedStepSizeAgreesWithPyTorch(t *testing.T) {
	in := map[string]*ir.Array{
		"x": ir.Floats(ir.F64, []float64{0.625, -0.5, 1.25, 0.125, -1, 0.75, -0.375}), "scale": ir.Float(ir.F64, 0.3),
	}
	got := gradients(t, in, []string{"x", "scale"}, func(b *ir.Builder, in map[string]ir.Value) ir.Value {
		y := ops.FakeQuantLSQ(b, in["x"], in["scale"], ops.LSQAttrs{Bits: 3, Factor: 0.5})
		weights := ops.Literal(b, ir.Floats(ir.F64, []float64{1, 2, 3, 4, 5, 6, 7}))
		return ops.ReduceSum(b, ops.Mul(b, y, weights))
	})
	for i, want := range []float64{1, 2, 0, 4, 5, 6, 7} {
		if d := got[autodiff.GradName("x")].F[i]; d != want {
			t.Errorf("the gradient by element %d is %v, want %v", i, d, want)
		}
	}
	if d := got[autodiff.GradName("scale")].F[0]; !(math.Abs(d-3.5) <= 1e-12) {
		t.Errorf("the gradient by the scale is %v, want 3.5", d)
	}
}
