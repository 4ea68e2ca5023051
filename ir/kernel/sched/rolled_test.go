package sched_test

import (
	"strings"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/webgpu/wgsl"
)

// TestSmallProductsStayLoops sees that a product that takes less than a launch is a loop
// that no driver writes out: one on a processor takes longer to compile what comes of it
// than for all else of a small model. Fewer terms are not worth a loop.
func TestSmallProductsStayLoops(t *testing.T) {
	for depth, rolled := range map[int]bool{8: false, 24: true, 64: true} {
		g := build(t, func(b *ir.Builder) {
			x, w := b.Input("x", ir.F32, ir.Dims(64, depth)...), b.Param("w", ir.F32, ir.Dims(depth, 24)...)
			b.Output("y", ops.MatMul(b, x, w))
		})
		for _, k := range kernelsOf(t, g, plan.WebGPU()) {
			found := false
			loop.Walk(k.Body, func(s loop.Stmt) {
				f, ok := s.(*loop.For)
				found = found || ok && f.Rolled
			})
			text, err := wgsl.Print(k)
			if err != nil {
				t.Fatal(err)
			}
			if hidden := strings.Contains(text, "= min(local_x, 0);"); found != rolled || hidden != rolled {
				t.Errorf("depth %d: rolled %t, its turns hidden %t, want %t:\n%s", depth, found, hidden, rolled, text)
			}
		}
	}
}
