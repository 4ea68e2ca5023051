package rlx_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Where no graph is given, the answer is an error.
func TestNoGraphIsAnError(t *testing.T) {
	ctx := context.Background()
	session, err := rlx.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	made := func(_ any, err error) error { return err }
	for what, err := range map[string]error{
		"ir.Build":          made(ir.Build("g", nil)),
		"ir.NewModule":      made(ir.NewModule("m", ir.Entry{Name: "e"})),
		"ir.Eval":           made(ir.Eval(nil, nil, ir.EvalOptions{})),
		"ir.Verify":         ir.Verify(nil),
		"passes.Run":        made(passes.Run(nil, passes.Options{})),
		"passes.Mixed":      made(passes.Mixed(nil, ir.BF16)),
		"passes.Pairs":      made(passes.LowerComplex(nil)),
		"plan.Compile":      made(plan.Compile(nil, plan.WebGPU(), nil)),
		"autodiff.Grad":     made(autodiff.Grad(nil, "loss")),
		"autodiff.Jet":      made(autodiff.Jet(nil, 2)),
		"optim.Step":        made(optim.Step(nil, "loss", optim.Adam{}, optim.Options{})),
		"optim.Init":        made(optim.Init(nil)),
		"optim.History":     made(optim.History(nil, "loss", 1)),
		"InitGraph":         made(rlx.InitGraph(nil, nil, nil)),
		"InitialParams":     made(rlx.InitialParams(ctx, nil, nil, 0)),
		"NewTrainer":        made(rlx.NewTrainer(context.Background(), nil, "loss")),
		"Compile":           made(session.Compile(ctx, nil)),
		"Compile of a hole": made(session.Compile(ctx, &ir.Module{Name: "m", Entries: []ir.Entry{{Name: "e"}}})),
		"Train":             made(session.Train(ctx, nil, rlx.Training{})),
	} {
		if !errors.Is(err, ir.ErrGraph) {
			t.Errorf("%s: error %v, want one of kind %v", what, err, ir.ErrGraph)
		}
	}
}

// TestNamesOfEntriesOfATraining: those that Train makes are taken.
func TestNamesOfEntriesOfATraining(t *testing.T) {
	for _, name := range []string{"", "step", "init"} {
		o := rlx.Training{Eval: []ir.Entry{{Name: name, Graph: classifier(t)}}}
		if _, err := session(t).Train(context.Background(), classifier(t), o); !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), "an entry of Eval") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An op whose function is nil is an error that names the op.
func TestNoFunctionIsAnError(t *testing.T) {
	vs := func(v ir.Value) []ir.Value { return []ir.Value{v} }
	for op, add := range map[ir.Op]func(b *ir.Builder, x ir.Value){
		ops.OpScan:            func(b *ir.Builder, x ir.Value) { ops.Scan(b, ops.Loop{Carries: vs(x), Length: ir.N(2)}) },
		ops.OpWhile:           func(b *ir.Builder, x ir.Value) { ops.WhileLoop(b, ops.While{Carries: vs(x)}) },
		ops.OpCond:            func(b *ir.Builder, x ir.Value) { ops.Cond(b, ops.Gt(b, x, x), vs(x), nil, nil) },
		ops.OpAssociativeScan: func(b *ir.Builder, x ir.Value) { ops.AssociativeScan(b, ops.AssociativeAttrs{}, vs(x), nil) },
		"keep_dims":           func(b *ir.Builder, x ir.Value) { ops.KeepDims(b, nil, x) },
		"checkpoint":          func(b *ir.Builder, x ir.Value) { autodiff.Checkpoint(b, vs(x), nil) },
		ops.OpCustomVJP:       func(b *ir.Builder, x ir.Value) { autodiff.CustomVJP(b, vs(x), nil, nil) },
		ops.OpCustomJVP:       func(b *ir.Builder, x ir.Value) { autodiff.CustomJVP(b, vs(x), nil, nil) },
		"derivative":          func(b *ir.Builder, x ir.Value) { autodiff.GradOf(b, nil, vs(x)) },
	} {
		_, err := ir.Build("g", func(b *ir.Builder) {
			x := b.Input("x", ir.F32)
			add(b, x)
			b.Output("y", x)
		})
		var at *ir.OpError
		if !errors.Is(err, ir.ErrGraph) || !errors.As(err, &at) || at.Op != op || at.Pos.File == "" {
			t.Errorf("%s: error %v, want one of kind %v with its place", op, err, ir.ErrGraph)
		}
	}
}

// An order that no derivative has is refused before graphs grow.
func TestDerivativeOrdersBeyondLimitAreErrors(t *testing.T) {
	g, err := ir.Build("g", func(b *ir.Builder) { b.Output("y", ops.Sin(b, b.Input("x", ir.F32))) })
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{-1, 0, autodiff.MaxOrder + 1, math.MaxInt} {
		if _, err := autodiff.Jet(g, n); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("series of order %d: error %v", n, err)
		}
		if _, err := autodiff.Directional(g, "y", "x", n); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("derivatives of order %d: error %v", n, err)
		}
		if _, err := autodiff.NthOrder(g, "y", "x", n); !errors.Is(err, ir.ErrAttr) {
			t.Errorf("the derivative of order %d: error %v", n, err)
		}
	}
}
