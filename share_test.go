package rlx_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
)

// scores returns a module that computes x·w for open batches, w of a size, and counts its runs.
func scores(t *testing.T, size int) *ir.Module {
	t.Helper()
	g := must(ir.Build("scores", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Sym("batch"), ir.N(size)), b.Param("w", ir.F32, ir.N(size), ir.N(1))
		b.Output("y", ops.MatMul(b, x, w))
		b.Output("shift", ops.Add(b, b.Param("shift", ir.F32), ops.Const(b, ir.F32, 0)))
		b.SetState("calls", ops.Add(b, b.State("calls", ir.F32), ops.Const(b, ir.F32, 1)))
	}))(t)
	return must(ir.NewModule("scores", ir.Entry{Name: "scores", Graph: g}))(t)
}

// TestAProgramSharesTheWeightsOfATrainer adds an entry of open sizes to a model that trains: it computes
// with the weights of the last step.
func TestAProgramSharesTheWeightsOfATrainer(t *testing.T) {
	s := session(t)
	loss := must(ir.Build("loss", func(b *ir.Builder) {
		x, w := b.Input("x", ir.F32, ir.Dims(1, 2)...), b.Param("w", ir.F32, ir.Dims(2, 1)...)
		b.Output("loss", ops.Mean(b, ops.Square(b, ops.Sub(b, ops.MatMul(b, x, w), ops.Const(b, ir.F32, 1, ir.Dims(1, 1)...)))))
	}))(t)
	trainer := must(s.Train(ctx, loss, rlx.Training{Rate: 0.1}))(t)
	p := must(s.CompileWith(ctx, scores(t, 2), rlx.CompileOptions{Share: trainer.Program()}))(t)
	x := rlx.Float32s([]float32{1, 0, 0, 1, 1, 1}, 3, 2)
	if _, err := p.Call(ctx, "scores", rlx.Inputs{"x": x}); !namesUnset(err, "scores", `["shift"]`) {
		t.Fatalf("a parameter of its own has no value: %v", err)
	}
	if err := p.Set(ctx, "shift", rlx.Float32(0)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := trainer.Step(ctx, rlx.Inputs{"x": rlx.Float32s([]float32{1, 2}, 1, 2)}); err != nil {
			t.Fatal(err)
		}
		w := must(must(trainer.Program().Get(ctx, "w"))(t).Float32s())(t)
		y := must(must(p.Call(ctx, "scores", rlx.Inputs{"x": x}))(t)["y"].Float32s())(t)
		if y[0] != w[0] || y[1] != w[1] || y[2] != w[0]+w[1] {
			t.Errorf("weights %v, scores %v", w, y)
		}
	}
	again := must(s.CompileWith(ctx, scores(t, 2), rlx.CompileOptions{Share: p}))(t)
	must(again.Call(ctx, "scores", rlx.Inputs{"x": x}))(t)
	if n := must(must(p.Get(ctx, "calls"))(t).Float32s())(t)[0]; n != 4 {
		t.Errorf("%v calls are counted, want 4", n)
	}
}

func TestSharingIsRefused(t *testing.T) {
	s := session(t)
	p := must(s.Compile(ctx, scores(t, 2)))(t)
	if _, err := s.CompileWith(ctx, scores(t, 3), rlx.CompileOptions{Share: p}); !errors.Is(err, ir.ErrShape) {
		t.Errorf("another type: %v", err)
	}
	if _, err := session(t).CompileWith(ctx, scores(t, 2), rlx.CompileOptions{Share: p}); !errors.Is(err, ir.ErrUnsupported) {
		t.Errorf("a program of another session: %v", err)
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CompileWith(ctx, scores(t, 2), rlx.CompileOptions{Share: p}); !errors.Is(err, native.ErrClosed) {
		t.Errorf("a closed program: %v", err)
	}
}
