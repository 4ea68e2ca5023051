package recipe_test

import (
	"errors"
	"strings"
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

// TestEveryOptimizerMakesAStep asserts that each name makes a step, also with hyperparameters of 0, and that a weight decay
// or a beta1 of 0 is not the default of AdamW.
func TestEveryOptimizerMakesAStep(t *testing.T) {
	for _, name := range recipe.OptimizerNames {
		for _, h := range []recipe.Numbers{nil, {"beta1": 0, "beta2": 0, "epsilon": 0, "momentum": 0}} {
			if _, err := (recipe.Step{Loss: "loss", Optimizer: name, Hyper: h, History: 4}).Graph(model(t)); err != nil {
				t.Errorf("%s with %v: %v", name, h, err)
			}
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
	o, err := recipe.Optimizer("adamw", recipe.Numbers{"beta1": 0})
	if err != nil {
		t.Fatal(err)
	}
	if beta := o.(optim.AdamW).Beta1; float32(beta) != 0 || beta == 0 {
		t.Errorf("a beta1 of 0 is %v", beta)
	}
}

func TestWrongNamesAndNumbersAreErrors(t *testing.T) {
	adam := recipe.Step{Loss: "loss", Optimizer: "adam"}
	schedule, policy, group, unknown := adam, adam, adam, adam
	schedule.Schedule, policy.Policy, unknown.Policy = "waves", []string{"within", "-1"}, []string{"everything"}
	part, fraction, rateless, op := adam, adam, adam, adam
	part.Hyper, op.Policy = recipe.Numbers{"accumulate": 1.5}, []string{"ops", "nonsense"}
	fraction.Schedule, fraction.Rates = "cosine", recipe.Numbers{"rate": 1, "steps": 2.5}
	rateless.Schedule, rateless.Rates = "cosine", recipe.Numbers{"steps": 2}
	group.Groups = []recipe.Group{{Params: []string{"w"}, Optimizer: "magic"}}
	for _, row := range []struct {
		step recipe.Step
		kind error
		says string // a name that is known
	}{
		{recipe.Step{Loss: "loss", Optimizer: "magic"}, ir.ErrName, `"adamw"`},
		{schedule, ir.ErrName, `"cosine"`},
		{policy, ir.ErrAttr, ""},
		{unknown, ir.ErrName, `"products"`},
		{group, ir.ErrName, `"adamw"`},
		{part, ir.ErrAttr, "accumulate"},
		{fraction, ir.ErrAttr, "steps"},
		{rateless, ir.ErrAttr, "rate"},
		{op, ir.ErrName, "nonsense"},
	} {
		if _, err := row.step.Graph(model(t)); !errors.Is(err, row.kind) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%+v: %v, not of kind %v with %s", row.step, err, row.kind, row.says)
		}
	}
	if _, err := (recipe.Limits{}).Target("vulkan"); !errors.Is(err, ir.ErrName) || !strings.Contains(err.Error(), `"wasm"`) {
		t.Errorf("an unknown target: %v", err)
	}
	if _, err := (recipe.Limits{Subgroup: 3}).Target("webgpu"); !errors.Is(err, ir.ErrAttr) {
		t.Errorf("a subgroup of 3: %v", err)
	}
}

// TestEveryNamedScheduleExists asserts that the names which an error lists are known.
func TestEveryNamedScheduleExists(t *testing.T) {
	_, err := recipe.Schedule("waves", nil)
	_, names, _ := strings.Cut(err.Error(), "have ")
	for _, name := range strings.Fields(strings.Trim(names, "[]")) {
		if _, err := recipe.Schedule(strings.Trim(name, `"`), recipe.Numbers{"rate": 1, "final_rate": 0.5, "steps": 10, "factor": 0.5, "exponent": 1}); err != nil {
			t.Error(err)
		}
	}
}
