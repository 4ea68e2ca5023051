//go:build !js

package passes_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestRoundedSigns differentiates relus in bf16. Their derivatives read the rounded operand of the next product,
// also of a sum of products and of a residual stream that norms read, except where a norm of one product is all that is
// computed again. Results keep every bit.
func TestRoundedSigns(t *testing.T) {
	for _, c := range []struct {
		name  string
		net   func(b *ir.Builder, y ir.Value) ir.Value // before the relu
		reads bool
	}{
		{"bias", func(b *ir.Builder, y ir.Value) ir.Value {
			return ops.Add(b, y, b.Param("bias", ir.F32, ir.N(8)))
		}, true},
		{"skip", func(b *ir.Builder, y ir.Value) ir.Value {
			return ops.Add(b, y, ops.MatMul(b, b.Param("other", ir.F32, ir.Dims(6, 4)...), b.Param("u", ir.F32, ir.Dims(4, 8)...)))
		}, true},
		{"norm", func(b *ir.Builder, y ir.Value) ir.Value {
			return ops.Sub(b, y, ops.KeepDims(b, ops.Mean, y, 0))
		}, false},
		{"stream", func(b *ir.Builder, y ir.Value) ir.Value {
			return ops.Add(b, ops.Sub(b, y, ops.KeepDims(b, ops.Mean, y, 0)), b.Param("stream", ir.F32, ir.Dims(6, 8)...))
		}, true},
	} {
		g, err := ir.Build("g", func(b *ir.Builder) {
			x, w, v := b.Input("x", ir.F32, ir.Dims(6, 4)...), b.Param("w", ir.F32, ir.Dims(4, 8)...), b.Param("v", ir.F32, ir.Dims(8, 3)...)
			b.Output("loss", ops.ReduceSum(b, ops.Sin(b, ops.MatMul(b, ops.Relu(b, c.net(b, ops.MatMul(b, x, w))), v))))
		})
		if err == nil {
			g, err = autodiff.Grad(g, "loss")
		}
		if err == nil {
			g, err = passes.Mixed(g, ir.BF16)
		}
		if err == nil {
			g, err = passes.Run(g, passes.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		h, err := passes.RoundedSigns(g)
		if err != nil {
			t.Fatal(err)
		}
		if (h != g) != c.reads {
			t.Errorf("%s: a derivative reads the rounded value: %v, not %v\n%s", c.name, h != g, c.reads, h)
		}
		want, got := evalBoth(t, g, h)
		for i := range want {
			if !slices.Equal(got[i].F, want[i].F) {
				t.Errorf("%s: %s is %v, and was %v before", c.name, g.Outputs()[i].Name, got[i].F, want[i].F)
			}
		}
	}
}

// evalBoth returns the results of two graphs for the same values of their ports.
func evalBoth(t *testing.T, g, h *ir.Graph) (want, got []*ir.Array) {
	t.Helper()
	inputs := map[string]*ir.Array{}
	for k, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(ir.F32, dims...)
		for i := range a.F {
			a.F[i] = float64((i*37+k*5)%23-11) / 8
		}
		inputs[p.Name] = a
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{})
	got, err2 := ir.Eval(h, inputs, ir.EvalOptions{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return want, got
}
