package fusion_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestBroadcastGathers adds values at given places of a table to many matrices, as attention within windows does: one
// thread gathers them once, many gather them for each matrix.
func TestBroadcastGathers(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		bias := ops.Embedding(b, b.Param("table", ir.F32, ir.Dims(20, 3)...), b.Input("places", ir.I32, ir.Dims(7, 7)...))
		b.Output("y", ops.Add(b, b.Input("x", ir.F32, ir.Dims(64, 3, 7, 7)...), ops.Transpose(b, bias, 2, 0, 1)))
	})
	for _, c := range []struct {
		policy fusion.Policy
		groups int
	}{{hardware.Unknown(), 1}, {hardware.Serial{Profile: hardware.Unknown()}, 2}} {
		o := fusion.DefaultOptions
		o.Policy = c.policy
		if p := groupsWith(t, g, o); len(p.Items) != c.groups {
			t.Errorf("%T: %d groups, want %d:\n%s", c.policy, len(p.Items), c.groups, p)
		}
	}
}
