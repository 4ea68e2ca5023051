package matmul_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/internal/compiler/sched/matmul"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// fewProcessors is a GPU whose workgroups have several row tiles each.
func fewProcessors() plan.Target {
	t := schedtest.Hopper()
	t.Name, t.Multiprocessors = "two processors", 2
	return t
}

// runStationary runs a graph of one product that keeps the operand along the columns in shared memory.
func runStationary(t *testing.T, target plan.Target, g *ir.Graph) {
	t.Helper()
	target = schedtest.ContractionsBy(t, g, target, emit.Schedule{Family: emit.Stationary})
	kernels := schedtest.Kernels(t, g, target)
	if k := kernels[len(kernels)-1]; !k.HasMma() || k.Workgroup[0] != loop.WarpGroup {
		t.Fatalf("%s is not a kernel of one warp group", k.Name)
	}
	schedtest.NewCase(t, g, schedtest.Wholes).RunOn(t, target)
}

// Products of few columns and terms, of whole tiles and quads and of neither, with one tile for a workgroup and with several.
func TestStationaryOperands(t *testing.T) {
	matmul.WithFewRows(t)
	for _, target := range []plan.Target{schedtest.Hopper(), schedtest.Ampere(), fewProcessors()} {
		for _, s := range []struct{ m, n, k int }{{128, 32, 32}, {130, 33, 18}, {67, 10, 100}, {2400, 64, 16}, {70, 3, 5}, {64, 16, 256}} {
			for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F32} {
				for _, layout := range []string{"nn", "nt"} {
					t.Run(fmt.Sprintf("%s %s %dx%dx%d %s", target.Name, d, s.m, s.n, s.k, layout), func(t *testing.T) {
						runStationary(t, target, schedtest.Build(t, func(b *ir.Builder) { schedtest.MatmulOf(b, d, s.m, s.n, s.k, layout, false) }))
					})
				}
			}
		}
	}
}

// The left operand is also added to the results, and read across by another term: arrays that are loaded in vectors for
// fragments and by elements elsewhere.
func TestStationaryOperandsInEpilogues(t *testing.T) {
	matmul.WithFewRows(t)
	for _, target := range []plan.Target{schedtest.Hopper(), fewProcessors()} {
		for _, d := range []ir.DType{ir.BF16, ir.F32} {
			for _, n := range []int{16, 18} {
				t.Run(fmt.Sprintf("%s %s %d", target.Name, d, n), func(t *testing.T) {
					runStationary(t, target, schedtest.Build(t, func(b *ir.Builder) {
						x, w := b.Input("x", d, ir.Dims(3, 64, n)...), b.Input("w", d, ir.Dims(3, n, n)...)
						y := ops.Add(b, ops.MatMul(b, ops.Relu(b, x), w), x)
						b.Output("y", ops.Relu(b, ops.Sub(b, y, ops.Reverse(b, x, 1))))
					}))
				})
			}
		}
	}
}
