package indexed_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestBoundedKeysTakeFewerPasses sorts a long row of integers that use four bits, by one pass of
// two launches, as tiles sum its few counts themselves.
func TestBoundedKeysTakeFewerPasses(t *testing.T) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", ir.U32, ir.N(5000))
		b.Output("y", ops.ArgSort(b, ops.Min(b, x, ops.ConstLike(b, x, 15)), ops.SortAttrs{}))
	})
	target := schedtest.Hopper()
	if kernels := schedtest.Kernels(t, g, target); len(kernels) != 2 {
		t.Errorf("%d launches, not 2", len(kernels))
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

// TestNetworksFitWorkgroupMemory sorts rows of the capacity of workgroups, whose memory is declared within
// what the target has.
func TestNetworksFitWorkgroupMemory(t *testing.T) {
	for name, target := range map[string]plan.Target{"WebGPU": plan.WebGPU(), "CUDA": schedtest.Hopper()} {
		for _, d := range []ir.DType{ir.F32, ir.U32} {
			for length := 2; length <= 8192; length *= 2 {
				g := schedtest.Build(t, func(b *ir.Builder) {
					b.Output("y", ops.ArgSort(b, b.Input("x", d, ir.Dims(3, length)...), ops.SortAttrs{Axis: 1}))
				})
				for _, k := range schedtest.Kernels(t, g, target) {
					if room := max(target.SharedBytes, 48<<10); name == "CUDA" && k.SharedBytes() > room || name == "WebGPU" && k.SharedBytes() > target.SharedBytes {
						t.Errorf("%s: a row of %d takes %d bytes", name, length, k.SharedBytes())
					}
				}
			}
		}
	}
}

// TestNetworksKeepTheFirst finds the first elements of rows that fit a workgroup, share one, and take chunks in
// two and three launches, among elements many of which are equal.
func TestNetworksKeepTheFirst(t *testing.T) {
	page, gpu := plan.WebGPU(), schedtest.Hopper()
	for _, c := range []struct {
		target                        plan.Target
		rows, length, first, launches int
	}{
		{page, 1, 2, 1, 1},
		{page, 5, 33, 1, 1},
		{page, 3, 700, 8, 1},
		{page, 2, 2048, 17, 1},
		{page, 1, 1500, 500, 1},
		{gpu, 2, 9000, 100, 2},
		{gpu, 1, 100000, 250, 3},
	} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			x := b.Input("x", ir.F32, ir.Dims(c.rows, c.length)...)
			b.Output("y", ops.ArgSort(b, ops.Floor(b, ops.Mul(b, x, ops.ConstLike(b, x, 40))), ops.SortAttrs{Axis: 1, Descending: true, First: c.first}))
		})
		kernels := schedtest.Kernels(t, g, c.target)
		if maps := 1; len(kernels) != c.launches+maps {
			t.Errorf("the first %d of %d: %d launches, not %d", c.first, c.length, len(kernels)-maps, c.launches)
		}
		schedtest.RunOn(t, g, c.target, 0)
	}
}
