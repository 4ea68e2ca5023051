//go:build cgo && linux

package msl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/clang"
	"github.com/rlx-go/rlx/internal/codegen/msl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/metal"
)

// TestOpKernelsRespectAddressSpaces has clang check the kernels of all ops that Metal has types for.
func TestOpKernelsRespectAddressSpaces(t *testing.T) {
	clang.TestOps(t, msl.Prefix, func(op ir.Op, s ir.Sample) (*plan.Plan, error) {
		g, _, err := irtest.SampleGraph(op, s)
		if err != nil || slices.ContainsFunc(g.Nodes(), func(n *ir.Node) bool { return metal.Backend().Support(n).Level == native.Unsupported }) {
			return nil, err
		}
		return planOf(t, g), nil
	}, clang.CheckMetal)
}

// TestTrainingKernelsRespectAddressSpaces checks the kernels of whole models, whose
// products are wide enough for fragments.
func TestTrainingKernelsRespectAddressSpaces(t *testing.T) {
	for name, model := range map[string]func() (*ir.Graph, error){
		"MLP": func() (*ir.Graph, error) { return irtest.MLP(128, 784, 512, 512, 10) },
		"GPT": irtest.GPT{Vocab: 65, Context: 64, Width: 128, Heads: 4, Blocks: 2, Batch: 12}.Loss,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loss, err := model()
			must(t, err)
			g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
			must(t, err)
			var all clang.Batch
			all.Add("step", msl.Prefix, planOf(t, g))
			if err := clang.CheckMetal(all.String()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAttentionKernelsRespectAddressSpaces checks the kernels of attention whose scores
// are not kept.
func TestAttentionKernelsRespectAddressSpaces(t *testing.T) {
	target := newest()
	target.ScoreBytes = 1
	var batch clang.Batch
	for _, op := range []ir.Op{ops.OpAttentionForward, ops.OpAttentionBackward} {
		d, _ := ir.Lookup(op)
		for i, s := range d.Samples() {
			g, _, err := irtest.SampleGraph(op, s)
			must(t, err)
			batch.Add(fmt.Sprintf("%s_%d", op, i), msl.Prefix, planFor(t, g, target))
		}
	}
	if err := clang.CheckMetal(batch.String()); err != nil {
		t.Error(err)
	}
	if n := strings.Count(batch.String(), "simdgroup_multiply_accumulate"); n == 0 {
		t.Error("nothing is multiplied in fragments")
	}
}

// newest is Metal with all that it may have.
func newest() plan.Target {
	t := metal.Target()
	t.BFloat = true
	return t
}

// planOf returns the plan of a graph for it.
func planOf(t *testing.T, g *ir.Graph) *plan.Plan {
	t.Helper()
	return planFor(t, g, newest())
}

func planFor(t *testing.T, g *ir.Graph, target plan.Target) *plan.Plan {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	must(t, err)
	p, err := plan.Compile(m, target, msl.Printer{BFloat: target.BFloat})
	must(t, err)
	return p
}
