package attention_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/attention"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

func TestWhichAttentionIsComputedInBlocks(t *testing.T) {
	small := loop.DefaultCaps()
	small.Invocations = 64
	for _, c := range []struct {
		name                       string
		heads, queries, keys, wide int
		d                          ir.DType
		device                     loop.Caps
		most                       int
		want                       bool
	}{
		{"scores that fit", 8, 1024, 1024, 64, ir.F32, loop.DefaultCaps(), 32 << 20, false},
		{"one more", 8, 1024, 1025, 64, ir.F32, loop.DefaultCaps(), 32 << 20, true},
		{"more than an int32 counts", 8, 16384, 16384, 64, ir.F32, loop.DefaultCaps(), attention.ScoreBytes, true},
		{"half", 8, 1024, 1025, 64, ir.F16, loop.DefaultCaps(), 32 << 20, true},
		{"double", 8, 1024, 1025, 64, ir.F64, loop.DefaultCaps(), 32 << 20, false},
		{"vectors too long", 8, 1024, 1025, 257, ir.F32, loop.DefaultCaps(), 32 << 20, false},
		{"few threads", 8, 1024, 1025, 64, ir.F32, small, 32 << 20, false},
		{"nothing", 8, 0, 1025, 64, ir.F32, loop.DefaultCaps(), 1, false},
	} {
		var n *ir.Node
		schedtest.Build(t, func(b *ir.Builder) {
			q := b.Input("q", c.d, ir.Dims(c.heads, c.queries, c.wide)...)
			k := b.Input("k", c.d, ir.Dims(c.heads, c.keys, c.wide)...)
			out, _ := ops.AttentionForward(b, q, k, k, ir.Value{}, ops.AttentionAttrs{Scale: 1})
			b.Output("out", out)
			n = out.Node()
		})
		if got := attention.InBlocks(n, c.device, c.most); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
