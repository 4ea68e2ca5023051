package sched_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestKernelTextIgnoresTensorOrder lowers a contraction with vector loads whose operands are
// tensors in either order.
func TestKernelTextIgnoresTensorOrder(t *testing.T) {
	product := func(names ...string) string {
		g := schedtest.Build(t, func(b *ir.Builder) {
			in := map[string]ir.Value{}
			for _, name := range names {
				in[name] = b.Input(name, ir.F32, ir.Dims(512, 512)...)
			}
			b.Output("z", ops.MatMul(b, ops.Transpose(b, in["x"], 1, 0), in["y"]))
		})
		return schedtest.Kernels(t, g, plan.WebGPU())[0].String()
	}
	if a, b := product("x", "y"), product("y", "x"); a != b {
		t.Errorf("one product is two kernels (- x before y, + y before x):\n%s", lineDiff(a, b))
	}
}
