package rlx_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// adrift is a training step of y = w·x + b, and an entry that only computes, without any
// that gives w and b a value.
func adrift(t *testing.T, entries ...ir.Entry) *rlx.Program {
	t.Helper()
	forward := func(b *ir.Builder) ir.Value {
		w, c := b.Param("w", ir.F32, ir.N(3)), b.Param("b", ir.F32, ir.N(3))
		return ops.Add(b, ops.Mul(b, w, b.Input("x", ir.F32, ir.N(3))), c)
	}
	loss := must(ir.Build("loss", func(b *ir.Builder) { b.Output("loss", ops.Mean(b, ops.Square(b, forward(b)))) }))(t)
	step := must(optim.Step(loss, "loss", optim.Adam{}, optim.Options{}))(t)
	y := must(ir.Build("y", func(b *ir.Builder) { b.Output("y", forward(b)) }))(t)
	init := must(rlx.InitGraph(step, []string{"w", "b"}, nil))(t)
	all := map[string]*ir.Graph{"step": step, "y": y, "init": init}
	for i, e := range entries {
		entries[i].Graph = all[e.Name]
	}
	p := must(session(t).Compile(ctx, must(ir.NewModule("adrift", entries...))(t)))(t)
	t.Cleanup(func() { _ = p.Close(ctx) })
	return p
}

var three = rlx.Float32s([]float32{1, 2, 3}, 3)

func namesUnset(err error, entry, params string) bool {
	return errors.Is(err, ir.ErrName) && strings.Contains(err.Error(), `"`+entry+`"`) && strings.Contains(err.Error(), params)
}

// A module compiled by hand has no weights until somebody gives them: an entry that reads
// them is no network of zeros.
func TestUnsetParametersAreNamed(t *testing.T) {
	p := adrift(t, ir.Entry{Name: "y"}, ir.Entry{Name: "step"}, ir.Entry{Name: "init"})
	in := rlx.Inputs{"x": three}
	if _, err := p.Call(ctx, "y", in); !namesUnset(err, "y", `["w" "b"]`) {
		t.Errorf("an inference: %v", err)
	}
	if _, err := p.Call(ctx, "step", rlx.Inputs{"x": three, "lr": rlx.Float32(1)}); !namesUnset(err, "step", `["w" "b"]`) {
		t.Errorf("a step: %v", err)
	}
	if err := p.LoadWith(ctx, map[string]rlx.Tensor{"w": three}, rlx.LoadOptions{AllowMissing: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(ctx, "y", in); !namesUnset(err, "y", `["b"]`) {
		t.Errorf("after a part was loaded: %v", err)
	}
	if _, err := p.Call(ctx, "init", rlx.Inputs{rlx.SeedInput: rlx.Uint32(1)}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(ctx, "y", in); err != nil {
		t.Errorf("after the entry that sets them: %v", err)
	}
}

// A step alone distinguishes its parameters, which it changes, from moments and counters, which
// begin as zeros.
func TestStepDistinguishesParametersFromMoments(t *testing.T) {
	p := adrift(t, ir.Entry{Name: "step"})
	tr := must(rlx.NewTrainer(ctx, p, "loss"))(t)
	batch := rlx.Inputs{"x": three}
	for range 2 {
		if err := tr.Step(ctx, batch); !namesUnset(err, "step", `["w" "b"]`) {
			t.Errorf("a step of a trainer: %v", err)
		}
	}
	if err := p.Set(ctx, "w", three); err != nil {
		t.Fatal(err)
	}
	if err := tr.Step(ctx, batch); !namesUnset(err, "step", `["b"]`) {
		t.Errorf("with w alone: %v", err)
	}
	if err := p.Set(ctx, "b", three); err != nil {
		t.Fatal(err)
	}
	if err := tr.Step(ctx, batch); err != nil || tr.Steps() != 1 {
		t.Errorf("%d steps, %v", tr.Steps(), err)
	}
}
