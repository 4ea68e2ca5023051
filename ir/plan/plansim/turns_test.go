package plansim_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/webgpu/wgsl"
)

// Drivers for processors write out loops of up to 32 turns, and take seconds for what then
// loads much. The loop of a small product is longer where it can be.
func TestSmallProductsStayLoops(t *testing.T) {
	for _, c := range []struct{ depth, loads int }{
		{64, 1},  // not 16 turns of 4
		{128, 2}, // 64 turns of 2, not 32 of 4
		{256, 4}, // 64 turns of 4
	} {
		g, err := ir.Build("product", func(b *ir.Builder) {
			b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(24, c.depth)...), b.Input("w", ir.F32, ir.Dims(c.depth, 24)...)))
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Compile(m, plan.WebGPU(), wgsl.Printer{})
		if err != nil {
			t.Fatal(err)
		}
		source := string(p.Kernels[0].Source)
		if n := strings.Count(source, "acc2 +="); len(p.Kernels) != 1 || n != c.loads || !strings.Contains(source, "for (") {
			t.Errorf("%d terms: %d in a turn, want %d:\n%s", c.depth, n, c.loads, source)
		}
	}
}
