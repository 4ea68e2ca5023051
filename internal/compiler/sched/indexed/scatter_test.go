package indexed_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestSmallScattersAreSearchedInSoftware: the gradient of a small embedding is a copy and a search there, without
// the workgroup memory and the barriers of a sort.
func TestSmallScattersAreSearchedInSoftware(t *testing.T) {
	software := plan.WebGPU()
	software.Device = hardware.Named("google swiftshader")
	for _, c := range []struct {
		positions, kernels int
		target             plan.Target
	}{{256, 2, software}, {256, 4, plan.WebGPU()}, {2048, 4, software}} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			rows := b.Input("rows", ir.I32, ir.Dims(c.positions, 1)...)
			table, x := b.Input("table", ir.F32, ir.Dims(65, 32)...), b.Input("x", ir.F32, ir.Dims(c.positions, 32)...)
			b.Output("y", ops.ScatterAdd(b, table, rows, x, ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0}}}))
		})
		if kernels := schedtest.Kernels(t, g, c.target); len(kernels) != c.kernels {
			t.Errorf("%d positions on %s: %d kernels, not %d", c.positions, c.target.Device.Name, len(kernels), c.kernels)
		}
		if c.positions == 256 {
			schedtest.RunOn(t, g, c.target, schedtest.Wholes)
		}
	}
}
