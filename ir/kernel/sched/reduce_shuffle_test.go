package sched_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/kernel/sched"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/ir/plan/plansim"
)

// Rows whose threads meet by shuffles: within a part of a warp, a warp, several, with
// reductions of one value and of two, and several stages.
func TestRowsMeetByShuffles(t *testing.T) {
	for name, f := range map[string]func(b *ir.Builder, x ir.Value){
		"softmax": func(b *ir.Builder, x ir.Value) { b.Output("y", ops.Softmax(b, x, 1)) },
		"greatest": func(b *ir.Builder, x ir.Value) {
			b.Output("y", ops.ArgMax(b, x, 1))
			b.Output("z", ops.ReduceSum(b, x, 1))
		},
	} {
		g := build(t, func(b *ir.Builder) { f(b, b.Input("x", ir.F32, ir.Dims(9, 300)...)) })
		for _, s := range []sched.Schedule{
			{Family: sched.Rows, Lanes: 8, Rows: 16, Split: 1},
			{Family: sched.Rows, Lanes: 32, Rows: 2, Split: 1},
			{Family: sched.Rows, Lanes: 128, Rows: 1, Split: 1},
			{Family: sched.Rows, Lanes: 64, Rows: 4, Split: 1},
			{Family: sched.Rows, Lanes: 8, Rows: 2, Split: 1}, // not a warp together: a tree
		} {
			t.Run(fmt.Sprintf("%s, %s", name, s), func(t *testing.T) {
				runOn(t, g, forced(t, g, apple(), func(*plan.Choice) (sched.Schedule, bool) { return s, true }), 0)
			})
		}
	}
}

// A row of one warp needs no barrier and no workgroup memory.
func TestARowOfOneWarpHasNoBarrier(t *testing.T) {
	g := build(t, func(b *ir.Builder) {
		b.Output("y", ops.Softmax(b, b.Input("x", ir.F32, ir.Dims(64, 300)...), 1))
	})
	s := sched.Schedule{Family: sched.Rows, Lanes: 32, Rows: 4, Split: 1}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	_, kernels, err := plan.CompileKernels(m, forced(t, g, apple(), func(*plan.Choice) (sched.Schedule, bool) { return s, true }), plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	shuffles := 0
	for _, k := range kernels {
		loop.Walk(k.Body, func(s loop.Stmt) {
			switch s.(type) {
			case *loop.Barrier:
				t.Errorf("%s has a barrier", k.Name)
			case *loop.Shuffle:
				shuffles++
			}
		})
	}
	if shuffles != 2*5 {
		t.Errorf("%d shuffles, not 5 for the maximum and 5 for the sum", shuffles)
	}
}
