package scan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/internal/compiler/sched/emit"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// splitScans are scans of split rows, by rows and length: a commutative one, and some that are
// not.
var splitScans = map[string]func(b *ir.Builder, rows, length int){
	"exclusive sum": func(b *ir.Builder, rows, length int) { schedtest.RunningOf(b, true, rows, length) },
	"reverse maxima": func(b *ir.Builder, rows, length int) {
		b.Output("y", ops.CumMax(b, schedtest.Matrix(b, rows, length), ops.CumSumAttrs{Axis: 1, Reverse: true}))
	},
	"recurrence": func(b *ir.Builder, rows, length int) {
		y := b.Input("y", ir.F32, ir.Dims(rows, length)...)
		b.Output("h", ops.LinearRecurrence(b, ops.Sin(b, schedtest.Matrix(b, rows, length)), y, ops.CumSumAttrs{Axis: 1}))
	},
	"what comes first": func(b *ir.Builder, rows, length int) {
		n := b.Input("n", ir.I32, ir.Dims(rows, length)...)
		first := func(b *ir.Builder, x, _ []ir.Value) []ir.Value { return x }
		b.Output("y", ops.AssociativeScan(b, ops.AssociativeAttrs{Axis: 1}, []ir.Value{n}, first)[0])
	},
}

// TestSplitScans has chunks of one tile and of several, whole and not, and rows of more chunks
// than the threads of a workgroup gather, which take one more launch.
func TestSplitScans(t *testing.T) {
	strips := func(lanes, rows, each, split int) emit.Schedule {
		return emit.Schedule{Family: emit.RegisterScan, Lanes: lanes, Rows: rows, Each: each, Split: split}
	}
	stretches := func(lanes, rows, each, split int) emit.Schedule {
		return emit.Schedule{Family: emit.BlockScan, Lanes: lanes, Rows: rows, Each: each, Split: split}
	}
	for _, c := range []struct {
		schedule               emit.Schedule
		rows, length, launches int
	}{
		{strips(64, 1, 16, 8), 1, 8192, 2},
		{strips(64, 1, 16, 4), 1, 8192, 2},
		{strips(32, 2, 8, 3), 3, 3004, 2}, // four tiles, the last chunk three
		{strips(32, 1, 4, 4), 2, 3000, 2}, // six tiles
		{strips(32, 1, 8, 1), 2, 3000, 1},
		{strips(8, 4, 4, 300), 1, 9600, 3},
		{strips(8, 4, 4, 150), 3, 9596, 3},
		{strips(32, 1, 4, 80), 1, 10240, 2}, // gathered by vectors
		{strips(8, 4, 4, 100), 1, 3200, 2},  // several vectors by each thread
		{strips(8, 4, 4, 100), 2, 3200, 2},
		{stretches(8, 4, 2, 100), 2, 1600, 2},
		{stretches(32, 2, 4, 5), 3, 3001, 2},
		{stretches(8, 4, 2, 150), 2, 4799, 3},
	} {
		for name, f := range splitScans {
			for _, target := range []plan.Target{schedtest.Choosy(), schedtest.Hopper(), plan.WebGPU().WithSubgroups(32)} {
				t.Run(fmt.Sprint(name, c.rows, c.length, c.schedule, target.Name, target.Subgroup), func(t *testing.T) {
					g := schedtest.Build(t, func(b *ir.Builder) { f(b, c.rows, c.length) })
					target := schedtest.Forced(t, g, target, func(*plan.Choice) (emit.Schedule, bool) { return c.schedule, true })
					kernels := slices.DeleteFunc(schedtest.Kernels(t, g, target), func(k *loop.Kernel) bool { return !strings.HasPrefix(k.Name, "prefix") })
					if len(kernels) != c.launches {
						t.Errorf("%d launches, not %d", len(kernels), c.launches)
					}
					schedtest.RunOn(t, g, target, 0)
				})
			}
		}
	}
}
