package rlx_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestMixedPrecisionLearnsAsWell(t *testing.T) {
	wide := trainer(t, rlx.Training{Rate: 0.05, Seed: 1})
	steps(t, wide, 60)
	want := losses(t, wide)
	for _, p := range []rlx.Precision{rlx.MixedBF16, rlx.MixedF16} {
		tr := trainer(t, rlx.Training{Rate: 0.05, Seed: 1, Precision: p})
		steps(t, tr, 60)
		got := losses(t, tr)
		if equal(got, want) {
			t.Errorf("precision %d: the losses are those of f32 to the last bit", p)
		}
		// The f16 run may have skipped a few steps while its scale came down.
		if first, last := got[0], got[59]; math.Abs(float64(first-want[0])) > 0.02 || !(last < 0.1*first) {
			t.Errorf("precision %d: from %v to %v; f32 went from %v to %v", p, first, last, want[0], want[59])
		}
		for _, s := range tr.Program().Persistent() {
			if s.DType == ir.BF16 || s.DType == ir.F16 {
				t.Errorf("precision %d: %s is kept as %s", p, s.Name, s.DType)
			}
		}
	}
}

func equal(x, y []float32) bool {
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return len(x) == len(y)
}

// TestMixedF16RecoversFromAnOverflow gives one batch that no scale helps.
func TestMixedF16RecoversFromAnOverflow(t *testing.T) {
	tr := trainer(t, rlx.Training{Rate: 0.05, Seed: 1, Precision: rlx.MixedF16})
	steps(t, tr, 30)
	number := func(name string) int32 {
		x, err := tr.Program().Get(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := x.Int32s()
		if err != nil {
			t.Fatal(err)
		}
		return n[0]
	}
	saved, done, doubled := weights(t, tr), number(optim.StepState), number(optim.ScaleState)
	bad := examples()
	x, _ := bad["x"].Float32s()
	x[5] = 1e30 // infinite in f16: the loss, after a tanh, is finite, but no gradient of w1 is
	if err := tr.Step(ctx, bad); err != nil {
		t.Fatal(err)
	}
	for name, w := range weights(t, tr) {
		if !bytes.Equal(w.Data, saved[name].Data) {
			t.Errorf("%s changed in a step that was to be skipped", name)
		}
	}
	if number(optim.StepState) != done || number(optim.ScaleState) != doubled-1 {
		t.Errorf("%d steps and %d doublings after the overflow, %d and %d before", number(optim.StepState), number(optim.ScaleState), done, doubled)
	}
	steps(t, tr, 30)
	all := losses(t, tr)
	if before, after := all[29], all[60]; !(after < before) || number(optim.StepState) != done+30 {
		t.Errorf("the loss was %v before the overflow and is %v after 30 more steps, of which %d counted", before, after, number(optim.StepState)-done)
	}
}

func weights(t *testing.T, tr *rlx.Trainer) map[string]rlx.Tensor {
	t.Helper()
	saved, err := tr.Program().Save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]rlx.Tensor{}
	for _, name := range []string{"w1", "b1", "w2", "b2", optim.SlotState("m", "w1"), optim.SlotState("v", "w2")} {
		out[name] = saved[name]
	}
	return out
}

func TestCompileWithPrecision(t *testing.T) {
	g, err := ir.Build("f", func(b *ir.Builder) {
		x := b.Input("x", ir.F32, ir.N(2))
		b.Output("y", ops.MatMul(b, x, x))
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	// 1 + 2⁻⁹ is an f16 and rounds to 1 in bf16; its square plus 0 rounds to 1 + 2⁻⁸ in f16, whose
	// values are 2⁻¹⁰ apart there. A CPU has no TF32.
	for p, want := range map[rlx.Precision]float32{rlx.AsWritten: 1 + 0x1p-8 + 0x1p-18, rlx.TF32: 1 + 0x1p-8 + 0x1p-18, rlx.MixedF16: 1 + 0x1p-8, rlx.MixedBF16: 1} {
		program, err := session(t).CompileWith(ctx, m, rlx.CompileOptions{Precision: p})
		if err != nil {
			t.Fatal(err)
		}
		out, err := program.Call(ctx, "run", rlx.Inputs{"x": rlx.Float32s([]float32{1 + 0x1p-9, 0})})
		if err != nil {
			t.Fatal(err)
		}
		if y, _ := out["y"].Float32s(); y[0] != want {
			t.Errorf("precision %d: %v, want %v", p, y[0], want)
		}
	}
	if _, err := session(t).CompileWith(ctx, m, rlx.CompileOptions{Precision: 9}); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("an unknown precision: %v", err)
	}
}
