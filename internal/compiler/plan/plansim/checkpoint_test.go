package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// segments is a loop of loops over a reshaped parameter; each inner loop, and each of its steps, is
// under a Checkpoint.
func segments() (*ir.Graph, error) {
	return ir.Build("segments", func(b *ir.Builder) {
		x := ops.Reshape(b, b.Param("x", ir.F32, ir.Dims(12, 5)...), ir.Dims(3, 4, 5)...)
		w, h := b.Param("w", ir.F32, ir.Dims(5, 5)...), b.Input("h", ir.F32, ir.Dims(2, 5)...)
		var level func(b *ir.Builder, depth int, in []ir.Value) []ir.Value
		level = func(b *ir.Builder, depth int, in []ir.Value) []ir.Value {
			if depth == 0 {
				return []ir.Value{ops.Tanh(b, ops.Add(b, ops.MatMul(b, ops.Sin(b, in[1]), in[0]), ops.BroadcastTo(b, in[2], in[1].Shape())))}
			}
			out, _ := ops.Scan(b, ops.Loop{
				Consts: in[:1], Carries: in[1:2], Xs: in[2:], Reverse: depth == 1,
				Body: func(b *ir.Builder, consts, carries, xs []ir.Value) (next, ys []ir.Value) {
					return autodiff.Checkpoint(b, []ir.Value{consts[0], carries[0], xs[0]}, func(b *ir.Builder, in []ir.Value) []ir.Value {
						return level(b, depth-1, in)
					}), nil
				},
			})
			return out
		}
		y := level(b, 2, []ir.Value{w, h, x})[0]
		b.Output("loss", ops.ReduceSum(b, ops.Mul(b, y, y)))
	})
}

// TestGradientsOfCheckpointedLoops compares gradients of checkpoints in loops, and of views that
// loops take, with the reference implementation of the graph.
func TestGradientsOfCheckpointedLoops(t *testing.T) {
	g, err := segments()
	if err != nil {
		t.Fatal(err)
	}
	for name, keep := range map[string]autodiff.Policy{"none": nil, "least": autodiff.SaveMinCut(), "nothing": autodiff.SaveNothing()} {
		t.Run(name, func(t *testing.T) {
			d, err := autodiff.GradWith(g, autodiff.GradOptions{Loss: "loss", Wrt: []string{"x", "w", "h"}, Policy: keep})
			if err != nil {
				t.Fatal(err)
			}
			for _, target := range []plan.Target{plan.WebGPU(), plan.WebAssembly(false)} {
				checkTwoRuns(t, d, someValues(d), target)
			}
		})
	}
}
