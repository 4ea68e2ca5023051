package sched_test

import (
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// Rows that are too long for registers go by vectors where their elements lie so, in place
// too; others have points written out, and the rest of a row in a loop of its own. Workgroups
// of a warp make rows long that are quickly simulated.
func TestLongRowsGoByVectors(t *testing.T) {
	target := hopper()
	target.Invocations = loop.Warp
	for _, c := range []struct {
		name    string
		columns int
		d       ir.DType
		turned  bool
		vectors bool
	}{
		{"whole vectors", 1096, ir.BF16, false, true},
		{"whole vectors of f32", 1096, ir.F32, false, true},
		{"a part of a vector", 1097, ir.BF16, false, false},
		{"columns", 1096, ir.F32, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := build(t, func(b *ir.Builder) {
				dims := ir.Dims(4, c.columns)
				x := ops.Convert(b, b.Input("x", c.d, dims...), ir.F32)
				if c.turned {
					x = ops.Transpose(b, b.Input("turned", ir.F32, ir.Dims(c.columns, 4)...), 1, 0)
				}
				label := ops.BroadcastInDim(b, b.Input("labels", ir.I32, ir.N(4)), dims, []int{0})
				picked := ops.Select(b, ops.Eq(b, label, ops.Iota(b, ir.I32, 1, dims...)), x, ops.ZerosLike(b, x))
				b.Output("picked", ops.ReduceSum(b, picked, 1))
				b.Output("soft", ops.Convert(b, ops.Softmax(b, x, 1), c.d))
			})
			found := false
			for _, k := range kernelsOf(t, g, target) {
				loop.Walk(k.Body, func(s loop.Stmt) {
					_, is := s.(*loop.LoadVec)
					found = found || is
				})
			}
			if found != c.vectors {
				t.Errorf("vectors: %t", found)
			}
			runOn(t, g, target, 0)
		})
	}
}
