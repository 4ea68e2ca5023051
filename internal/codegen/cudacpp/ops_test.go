package cudacpp_test

import (
	"fmt"
	"slices"
	"strings"
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

// opsAtOnce is how many ops have their kernels compiled by one process, which reads the headers once.
const opsAtOnce = 12

// TestClangAcceptsTheKernelsOfAllOps prints the kernels of every sample of
// every op that the printer has types for, and compiles those of some ops at once:
// each in a namespace and with a name of its own, which begins with the op's. Of kernels that differ in
// numbers alone one is compiled, to save time.
func TestClangAcceptsTheKernelsOfAllOps(t *testing.T) {
	for list := range slices.Chunk(ir.Ops(), opsAtOnce) {
		t.Run(string(list[0]), func(t *testing.T) {
			t.Parallel()
			var all clang.Batch
			for _, op := range list {
				d, _ := ir.Lookup(op)
				if d.Samples == nil {
					continue
				}
				for i, s := range d.Samples() {
					p, err := compileSample(op, s)
					if err != nil {
						t.Errorf("%s, sample %d: %v", op, i, err)
						continue
					}
					all.Add(fmt.Sprintf("%s_sample_%d", strings.ReplaceAll(string(op), ".", "_"), i), cudacpp.Prefix, p)
				}
			}
			if err := clang.Check(all.String()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestClangAcceptsTheKernelsOfTrainingSteps does the same with whole models.
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

// compileSample returns the plan of a sample, an empty one where the printer
// lacks a type.
func compileSample(op ir.Op, s ir.Sample) (*plan.Plan, error) {
	g, _, err := irtest.SampleGraph(op, s)
	if err != nil {
		return nil, err
	}
	for _, n := range g.Nodes() {
		for _, t := range n.Types() {
			if t.DType.On(dtype.CUDA) == dtype.Unsupported {
				return &plan.Plan{}, nil
			}
		}
	}
	return compile(g, nil)
}
