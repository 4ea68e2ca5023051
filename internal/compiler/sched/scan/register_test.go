package scan_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestScansInWarps scans rows shorter than a warp, of one and of several, alone and several per
// workgroup, with a combination that does not commute.
func TestScansInWarps(t *testing.T) {
	for name, f := range map[string]func(b *ir.Builder){
		"sum":       func(b *ir.Builder) { schedtest.RunningOf(b, false, 5, 3000) },
		"exclusive": func(b *ir.Builder) { schedtest.RunningOf(b, true, 3, 1204) },
		"recurrence": func(b *ir.Builder) {
			x, y := b.Input("x", ir.F32, ir.Dims(3, 2060)...), b.Input("y", ir.F32, ir.Dims(3, 2060)...)
			b.Output("h", ops.LinearRecurrence(b, ops.Sin(b, x), y, ops.CumSumAttrs{Axis: 1, Reverse: true}))
		},
	} {
		for _, s := range []emit.Schedule{
			{Lanes: 256, Rows: 1, Each: 16, Split: 1}, {Lanes: 64, Rows: 2, Each: 8, Split: 2}, {Lanes: 32, Rows: 2, Each: 4, Split: 1}, {Lanes: 8, Rows: 8, Each: 16, Split: 3},
		} {
			s.Family = emit.RegisterScan
			t.Run(fmt.Sprint(name, ", ", s), func(t *testing.T) {
				g := schedtest.Build(t, f)
				target := schedtest.Forced(t, g, schedtest.Hopper(), func(*plan.Choice) (emit.Schedule, bool) { return s, true })
				exchanges := 0
				for _, k := range schedtest.Kernels(t, g, target) {
					loop.Walk(k.Body, func(s loop.Stmt) {
						if _, ok := s.(*loop.Shuffle); ok {
							exchanges++
						}
					})
				}
				if exchanges == 0 {
					t.Error("no exchange within warps")
				}
				schedtest.RunOn(t, g, target, 0)
			})
		}
	}
}
