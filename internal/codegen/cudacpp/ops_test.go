package cudacpp_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/codegen/cudacpp"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/irtest"
	_ "github.com/rlx-go/rlx/ir/irtest/ownop" // an op with kernels of its own
	_ "github.com/rlx-go/rlx/ir/ops"
)

func TestClangAcceptsTheKernelsOfAllOps(t *testing.T) {
	clang.TestOps(t, cudacpp.Prefix, compileSample, clang.Check)
}

// TestClangAcceptsTheKernelsOfTrainingSteps compiles the kernels of whole models.
func TestClangAcceptsTheKernelsOfTrainingSteps(t *testing.T) {
	for name, model := range map[string]func() (*ir.Graph, error){
		"MLP": func() (*ir.Graph, error) { return irtest.MLP(128, 784, 512, 512, 10) },
		"GPT": irtest.GPT{Vocab: 65, Context: 64, Width: 128, Heads: 4, Blocks: 2, Batch: 12}.Loss,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loss, err := model()
			if err != nil {
				t.Fatal(err)
			}
			p, err := compile(optim.Step(loss, "loss", optim.Adam{}, optim.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			var all clang.Batch
			all.Add("step", cudacpp.Prefix, p)
			if err := clang.Check(all.String()); err != nil {
				t.Error(err)
			}
		})
	}
}

// compileSample returns the plan of a sample, nil where the printer lacks a type.
func compileSample(op ir.Op, s ir.Sample) (*plan.Plan, error) {
	g, _, err := irtest.SampleGraph(op, s)
	if err != nil {
		return nil, err
	}
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if t.DType.On(dtype.CUDA) == dtype.Unsupported {
				return nil, nil
			}
		}
	}
	return compile(g, nil)
}
