package optim_test

import (
	"math"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestCenteredRMSPropOfAConstantGradient: the variance, a difference of equal numbers in the limit, is not negative.
func TestCenteredRMSPropOfAConstantGradient(t *testing.T) {
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		b.Output("loss", ops.SumAll(b, ops.Mul(b, b.Param("w", ir.F32, ir.N(6)), b.Input("x", ir.F32, ir.N(6)))))
	})
	if err != nil {
		t.Fatal(err)
	}
	step, err := optim.Step(loss, "loss", optim.RMSProp{Centered: true}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]*ir.Array{"x": ir.Floats(ir.F32, []float64{1, 0.1, 3.3, 0.7, 1e-3, 123.4}, 6), optim.RateInput: ir.NewArray(ir.F32)}
	values[optim.RateInput].F[0] = 1e-3
	for _, p := range step.Ports() {
		if values[p.Name] == nil {
			dims, _ := p.Value.Shape().Ints()
			values[p.Name] = ir.NewArray(p.Value.DType(), dims...)
		}
	}
	for i := range 1500 {
		out, err := ir.Eval(step, values, ir.EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for k, o := range step.Outputs() {
			if o.State {
				values[o.Name] = out[k]
			}
		}
		for _, w := range values["w"].F {
			if math.IsNaN(w) {
				t.Fatalf("after %d steps the parameters are %v", i+1, values["w"].F)
			}
		}
	}
}
