package recipe_test

import (
	"errors"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/recipe"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

func model(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.Build("model", func(b *ir.Builder) {
		w := b.Param("w", ir.F32, ir.N(2), ir.N(2))
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, w, w), 0, 1))
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestEveryOptimizerMakesAStep asserts that each name makes a step, and that a weight decay of 0 is none, where the
// default of AdamW is one.
func TestEveryOptimizerMakesAStep(t *testing.T) {
	for _, name := range recipe.OptimizerNames {
		if _, err := (recipe.Step{Loss: "loss", Optimizer: name, History: 4}).Graph(model(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, row := range []struct {
		h    recipe.Numbers
		want float64
	}{{nil, 0}, {recipe.Numbers{"weight_decay": 0.5}, 0.5}, {recipe.Numbers{"weight_decay": 0}, optim.NoDecay}} {
		o, err := recipe.Optimizer("adamw", row.h)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.(optim.AdamW).WeightDecay; got != row.want {
			t.Errorf("a weight decay of %v is %v, not %v", row.h, got, row.want)
		}
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	adam := recipe.Step{Loss: "loss", Optimizer: "adam"}
	schedule, policy, group := adam, adam, adam
	schedule.Schedule, policy.Policy = "waves", []string{"within", "-1"}
	group.Groups = []recipe.Group{{Params: []string{"w"}, Optimizer: "magic"}}
	for _, row := range []struct {
		step recipe.Step
		kind error
	}{{recipe.Step{Loss: "loss", Optimizer: "magic"}, ir.ErrName}, {schedule, ir.ErrName}, {policy, ir.ErrAttr}, {group, ir.ErrName}} {
		if _, err := row.step.Graph(model(t)); !errors.Is(err, row.kind) {
			t.Errorf("%+v: %v, not of kind %v", row.step, err, row.kind)
		}
	}
	if _, err := (recipe.Limits{}).Target("vulkan"); !errors.Is(err, ir.ErrName) {
		t.Errorf("an unknown target: %v", err)
	}
	if _, err := (recipe.Limits{Subgroup: 3}).Target("webgpu"); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("a subgroup of 3: %v", err)
	}
}
