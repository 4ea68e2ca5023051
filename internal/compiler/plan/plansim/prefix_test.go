package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestScansOfMoreRowsThanTheGridLimit has rows whose grid is a rectangle with workgroups past the
// end. These must not write: they would store the last row a second time and race with its
// workgroup.
func TestScansOfMoreRowsThanTheGridLimit(t *testing.T) {
	short := plan.WebGPU()
	short.Limits.Groups = 7
	for name, c := range map[string]struct {
		target plan.Target
		dims   []int
		axis   int
	}{
		"a short grid":             {short, []int{11, 5}, 1},
		"a short grid, other axis": {short, []int{5, 2, 13}, 0},
		"one row to spare":         {short, []int{13, 300}, 1},
		"none to spare":            {short, []int{14, 3}, 1},
		"the default limits":       {plan.WebGPU(), []int{65537, 2}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := schedtest.Build(t, func(b *ir.Builder) {
				s := b.State("s", ir.F32, ir.Dims(c.dims...)...)
				sums := ops.CumSum(b, s, ops.CumSumAttrs{Axis: c.axis})
				b.Output("sums", sums)
				b.SetState("s", ops.CumSum(b, s, ops.CumSumAttrs{Axis: c.axis, Reverse: true, Exclusive: true}))
			})
			checkTwoRuns(t, g, someValues(g), c.target)
		})
	}
}
