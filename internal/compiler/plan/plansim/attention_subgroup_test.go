package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// bySubgroups is a target that computes all attention in blocks and multiplies in
// fragments, as Apple's GPUs do.
func bySubgroups() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers, l.BindingBytes, l.BufferBytes, l.SharedBytes = 29, 1<<30, 1<<30, 32<<10
	return plan.Target{Name: "apple", ScoreBytes: 1, Caps: loop.Caps{
		Dialect: dtype.MSL, Limits: l, F16: true, Subgroups: true, Subgroup: [2]int{32, 32}, Shuffles: true, Fragments: true,
	}}
}

func TestAttentionBySubgroups(t *testing.T) {
	for _, c := range attentions {
		for op, s := range c.samples() {
			t.Run(c.name+", "+string(op), func(t *testing.T) {
				t.Parallel()
				checkSampleOn(t, bySubgroups(), op, s)
			})
		}
	}
	for op, s := range matrices[0].samples() {
		for _, d := range []ir.DType{ir.BF16, ir.F16} {
			t.Run(string(op)+" "+d.String(), func(t *testing.T) { checkSampleOn(t, bySubgroups(), op, stored(s, d)) })
		}
	}
	for _, op := range []ir.Op{ops.OpAttentionForward, ops.OpAttentionBackward} {
		d, _ := ir.Lookup(op)
		t.Run(string(op), func(t *testing.T) { checkSampleOn(t, bySubgroups(), op, d.Samples()...) })
	}
}
