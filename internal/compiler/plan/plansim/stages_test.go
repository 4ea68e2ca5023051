package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// normOf is the gradient of the sum of sines of normalised elements.
func normOf(dims []int, axes ...int) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		norm := func(b *ir.Builder, in []ir.Value) []ir.Value {
			centred := ops.Sub(b, in[0], ops.KeepDims(b, ops.Mean, in[0], axes...))
			variance := ops.KeepDims(b, ops.Mean, ops.Square(b, centred), axes...)
			y := ops.Mul(b, centred, ops.Rsqrt(b, ops.Add(b, variance, ops.ConstLike(b, variance, 1))))
			return []ir.Value{ops.ReduceSum(b, ops.Sin(b, y))}
		}
		b.Output("gradient", autodiff.GradOf(b, norm, []ir.Value{b.Input("x", ir.F32, ir.Dims(dims...)...)})[0])
	}
}

// Norms whose rows are few workgroups are computed stage by stage, each split, and by one kernel if
// each processor has a row. A launch cost of zero makes small ones worth splitting.
func TestNormsOfFewRowsAreSplitByStage(t *testing.T) {
	many := plan.WebGPU()
	many.Device = hardware.Unknown()
	many.Device.Launch = 1
	few := many
	few.Device.Processors = 1
	for _, c := range []struct {
		name      string
		dims      []int
		axes      []int
		many, few int // dispatches
	}{
		{"channels last", []int{4, 16, 17, 64}, []int{0, 1, 2}, 11, 1},
		{"groups of channels", []int{2, 33, 32, 32, 9}, []int{1, 2, 4}, 11, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			apart{build: normOf(c.dims, c.axes...), dispatches: c.many}.check(t, many)
			apart{build: normOf(c.dims, c.axes...), dispatches: c.few}.check(t, few)
		})
	}
}
