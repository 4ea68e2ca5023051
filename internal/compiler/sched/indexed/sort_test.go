package indexed_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestBoundedKeysTakeFewerPasses sorts a long row of integers that use four bits, by one pass of
// three launches.
func TestBoundedKeysTakeFewerPasses(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.U32, ir.N(5000))
		b.Output("y", ops.ArgSort(b, ops.Min(b, x, ops.ConstLike(b, x, 15)), ops.SortAttrs{}))
	})
	target := schedtest.Hopper()
	if kernels := schedtest.Kernels(t, g, target); len(kernels) != 3 {
		t.Errorf("%d launches, not 3", len(kernels))
	}
	schedtest.RunOn(t, g, target, 0)
}

// TestNetworksSortRowsOfTheirCapacity sorts rows that fit the workgroup memory of every GPU in one
// launch on CUDA, one row with more threads, and longer rows by digits.
func TestNetworksSortRowsOfTheirCapacity(t *testing.T) {
	target := schedtest.Hopper()
	target.Invocations, target.Workgroup[0] = 1024, 1024
	for _, c := range []struct {
		rows, length, threads int
		network               bool
	}{{1, 3000, 512, true}, {2048, 4096, 256, true}, {1, 4097, 256, false}} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			b.Output("y", ops.ArgSort(b, b.Input("x", ir.F32, ir.Dims(c.rows, c.length)...), ops.SortAttrs{Axis: 1}))
		})
		kernels := schedtest.Kernels(t, g, target)
		if network := len(kernels) == 1; network != c.network || kernels[0].Threads() != c.threads {
			t.Errorf("%d rows of %d: %d kernels, the first of %d threads", c.rows, c.length, len(kernels), kernels[0].Threads())
		}
		if c.rows == 1 {
			schedtest.RunOn(t, g, target, 0)
		}
	}
}
