package plansim_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Drivers for processors unroll loops of up to 32 iterations, and then take seconds to compile what
// loads much. The trip count of a small product is hidden from them: its loop begins
// at a zero that is not a constant, or at the number of a thread.
func TestLoopsOfSmallProductsHideTheirTripCount(t *testing.T) {
	for _, c := range []struct{ depth, loads int }{{24, 4}, {30, 2}, {64, 4}, {128, 4}, {256, 4}} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			b.Output("y", ops.MatMul(b, b.Input("x", ir.F32, ir.Dims(24, c.depth)...), b.Input("w", ir.F32, ir.Dims(c.depth, 24)...)))
		})
		p := compiled(t, g)
		source := string(p.Kernels[0].Source)
		n := strings.Count(source, "acc2 +=")
		hidden := strings.Contains(source, "= min(local_x, 0); ") || strings.Contains(source, "for (var r3 = local_y; ")
		if len(p.Kernels) != 1 || n != c.loads || !hidden || !strings.Contains(source, "for (") {
			t.Errorf("%d terms: %d in an iteration, hidden %t, want %d, true:\n%s", c.depth, n, hidden, c.loads, source)
		}
	}
}
