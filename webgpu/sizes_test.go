package webgpu_test

import (
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native/backendtest"
	"github.com/rlx-go/rlx/webgpu"
)

// TestOpenBatch trains with batches of two sizes and infers with others; the parameters are copied
// between the programs. The function to learn is linear, so the loss must fall.
func TestOpenBatch(t *testing.T) {
	backendtest.Require(t, webgpu.Name, webgpu.Backend().Probe())
	model := func(b *ir.Builder) ir.Value { return nn.Linear(b, b.Input("x", ir.F32, ir.Sym("batch"), ir.N(2)), 1) }
	infer, err := ir.Build("infer", func(b *ir.Builder) { b.Output("y", model(b)) })
	if err != nil {
		t.Fatal(err)
	}
	loss, err := ir.Build("loss", func(b *ir.Builder) {
		y := model(b)
		b.Output("loss", ops.MSE(b, y, b.Input("y", ir.F32, ir.Sym("batch"), ir.N(1)), ops.LossMean))
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := rlx.Open(webgpu.Name)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := session.Train(t.Context(), loss, rlx.Training{Rate: 0.1, Eval: []ir.Entry{{Name: "infer", Graph: infer}}})
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Program().Close(t.Context())
	x, y := []float32{1, 0, 0, 1, 1, 1}, []float32{1, 3, 3}
	for step := range 120 {
		n := 3 - step%2
		if err := trainer.Step(t.Context(), rlx.Inputs{"x": rlx.Float32s(x[:2*n], n, 2), "y": rlx.Float32s(y[:n], n, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= 3; n++ {
		out, err := trainer.Program().Call(t.Context(), "infer", rlx.Inputs{"x": rlx.Float32s(x[:2*n], n, 2)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := out["y"].Float32s()
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if d := v - y[i]; len(got) != n || d > 0.3 || d < -0.3 {
				t.Errorf("%d points give %v, want about %v", n, got, y[:n])
			}
		}
	}
}
