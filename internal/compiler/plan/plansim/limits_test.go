package plansim_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/sim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// optimisers keep none, one or two states for each parameter; a clipped one
// waits for all gradients.
var optimisers = []optimiser{
	{"sgd", optim.SGD{}, optim.Options{}},
	{"momentum", optim.SGD{Momentum: 0.9, Nesterov: true}, optim.Options{}},
	{"adam", optim.Adam{}, optim.Options{}},
	{"clipped adamw", optim.AdamW{WeightDecay: 0.1}, optim.Options{ClipNorm: 1}},
}

type optimiser struct {
	name    string
	rule    optim.Optimizer
	options optim.Options
}

// model is a loss whose largest tensor takes about as many MiB as its name says.
type model struct {
	name string
	loss func() (*ir.Graph, error)
}

func gptModel(c irtest.GPT) model {
	largest := max(c.Batch*c.Context*max(4*c.Width, c.Vocab), c.Batch*c.Heads*c.Context*c.Context, c.Vocab*c.Width)
	return model{fmt.Sprintf("gpt, %d MiB", largest*4>>20), c.Loss}
}

func mlpModel(batch, width int) model {
	return model{fmt.Sprintf("mlp, %d MiB", max(batch, width)*width*4>>20), func() (*ir.Graph, error) { return irtest.MLP(batch, 784, width, width, 10) }}
}

func cnnModel(batch int) model {
	return model{fmt.Sprintf("cnn, %d MiB", batch*8*8*16*4>>20), func() (*ir.Graph, error) { return cnn(batch) }}
}

// TestModelsWhoseTensorsFitAreAccepted compiles training steps of models up to the last size at
// which each tensor fits a binding of the smallest WebGPU device: each with the last optimiser, which needs most, and with
// one of the others.
func TestModelsWhoseTensorsFitAreAccepted(t *testing.T) {
	character := func(batch int) irtest.GPT {
		c := irtest.CharacterGPT
		c.Batch = batch
		return c
	}
	models := []model{
		gptModel(irtest.GPT{Vocab: 65, Context: 64, Width: 128, Heads: 4, Blocks: 2, Batch: 8}),
		gptModel(character(32)), gptModel(character(64)), gptModel(character(85)),
		gptModel(irtest.GPT{Vocab: 43690, Context: 96, Width: 768, Heads: 12, Blocks: 1, Batch: 8}),
		mlpModel(128, 512), mlpModel(128, 2048), mlpModel(4096, 4096), mlpModel(128, 5792), mlpModel(8000, 4194),
		cnnModel(256), cnnModel(8192), cnnModel(32768),
	}
	for i, m := range models {
		last := len(optimisers) - 1
		for _, o := range []optimiser{optimisers[i%last], optimisers[last]} {
			t.Run(m.name+", "+o.name, func(t *testing.T) {
				t.Parallel()
				if _, _, err := plan.CompileKernels(stepModule(t, m, o.rule, o.options), plan.WebGPU(), plansim.Text); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestModelsAtTheLimitRunInTheSimulator runs a sample of the workgroups of models whose tensors
// fill the smallest possible bindings.
func TestModelsAtTheLimitRunInTheSimulator(t *testing.T) {
	models := []model{
		gptModel(irtest.GPT{Vocab: 65, Context: 32, Width: 32, Heads: 2, Blocks: 2, Batch: 16}),
		mlpModel(256, 250), cnnModel(60),
	}
	target := plan.WebGPU()
	target.Limits.BindingBytes = 256 << 10
	for i, m := range models {
		o := optimisers[(i+2)%len(optimisers)]
		t.Run(m.name+", "+o.name, func(t *testing.T) {
			if m.name == "mlp, 0 MiB" {
				target.Limits.BindingBytes = 784 * 256 * 4
			}
			s, err := plansim.Open(stepModule(t, m, o.rule, o.options), target)
			if err != nil {
				t.Fatal(err)
			}
			s.Options = sim.Options{Sample: 2}
			if _, err := s.Run("step", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func stepModule(t *testing.T, m model, rule optim.Optimizer, o optim.Options) *ir.Module {
	t.Helper()
	loss, err := m.loss()
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", rule, o)
	if err != nil {
		t.Fatal(err)
	}
	module, err := ir.NewModule("m", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return module
}
