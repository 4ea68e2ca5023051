package reduce_test

import (
	"fmt"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestReductionsByShuffles reduces rows by warp shuffles, with several warps per row and
// several rows per warp, and with combinations that do not commute.
func TestReductionsByShuffles(t *testing.T) {
	for _, dims := range [][2]int{{300, 64}, {7, 1000}, {16384, 32}, {3, 40}, {2, 5000}, {130, 33}} {
		for _, target := range []plan.Target{schedtest.Hopper(), plan.WebGPU().WithSubgroups(32), plan.WebGPU().WithSubgroups(8), plan.WebGPU().WithSubgroups(4)} {
			t.Run(fmt.Sprint(dims, target.Name, target.Subgroup), func(t *testing.T) { rowsMeetByShuffles(t, target, dims) })
		}
	}
}

func rowsMeetByShuffles(t *testing.T, target plan.Target, dims [2]int) {
	g := schedtest.Build(t, func(b *ir.Builder) {
		x, n := b.Input("x", ir.F32, ir.Dims(dims[0], dims[1])...), b.Input("n", ir.I32, ir.Dims(dims[0], dims[1])...)
		b.Output("sum", ops.ReduceSum(b, x, 1))
		if dims[0] > 1000 {
			return // many short rows share a warp: one kernel is enough
		}
		b.Output("softmax", ops.Softmax(b, x, 1))
		b.Output("variance", ops.Var(b, x, 0, 1))
		b.Output("first", ops.ArgMax(b, n, 1))
		b.Output("least", ops.ReduceMin(b, n, 1))
		b.Output("all", ops.All(b, ops.Gt(b, x, ops.Const(b, ir.F32, -3)), 1))
	})
	schedtest.RunOn(t, g, target, schedtest.Wholes)
}

// TestShufflesReplaceBarriers counts barriers: none for rows up to a warp, two per reduction
// for longer ones; workgroup memory takes two to four.
func TestShufflesReplaceBarriers(t *testing.T) {
	for _, c := range []struct {
		target             plan.Target
		rows, length, want int
	}{
		{schedtest.Hopper(), 20000, 64, 0},
		{schedtest.Hopper(), 5000, 4096, 4},
		{plan.WebGPU(), 20000, 64, 4},
		{plan.WebGPU(), 5000, 4096, 8},
		{plan.WebGPU().WithSubgroups(32), 20000, 64, 0},
		{plan.WebGPU().WithSubgroups(32), 5000, 4096, 4},
		{plan.WebGPU().WithSubgroups(8), 5000, 4096, 8}, // more subgroups to a row than threads to a subgroup
	} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			b.Output("y", ops.Softmax(b, b.Input("x", ir.F32, ir.Dims(c.rows, c.length)...), 1))
		})
		kernels := schedtest.Kernels(t, g, c.target)
		barriers := 0
		loop.Walk(kernels[0].Body, func(s loop.Stmt) {
			if _, ok := s.(*loop.Barrier); ok {
				barriers++
			}
		})
		if len(kernels) != 1 || barriers != c.want {
			t.Errorf("%d kernels of rows of %d on %s, subgroups of %d: the first has %d barriers, not %d", len(kernels), c.length, c.target.Name, c.target.Subgroup, barriers, c.want)
		}
	}
}

// TestRowsAloneInSoftware counts barriers where they are slow: none, but for a row that is too long for a
// thread. (SwiftShader, two cores: sums of 1,024 rows of 1,024 took 900 ms with them and 37 without.)
func TestRowsAloneInSoftware(t *testing.T) {
	for _, name := range []string{"google swiftshader", "llvmpipe (LLVM 15.0.6, 256 bits)"} {
		target := plan.WebGPU()
		target.Device = hardware.Named(name)
		for _, c := range []struct {
			rows, length int
			alone        bool
		}{{1024, 1024, true}, {2, 1 << 20, false}} {
			g := schedtest.Build(t, func(b *ir.Builder) {
				b.Output("y", ops.ReduceSum(b, b.Input("x", ir.F32, ir.Dims(c.rows, c.length)...), 1))
			})
			barriers := 0
			for _, k := range schedtest.Kernels(t, g, target) {
				loop.Walk(k.Body, func(s loop.Stmt) {
					if _, ok := s.(*loop.Barrier); ok {
						barriers++
					}
				})
			}
			if (barriers == 0) != c.alone {
				t.Errorf("%s, %d rows of %d: %d barriers", name, c.rows, c.length, barriers)
			}
		}
	}
}

// TestLittleWorkIsRolledInSoftware: there the driver compiles unrolled terms for longer than they take. Much work
// is unrolled as elsewhere.
func TestLittleWorkIsRolledInSoftware(t *testing.T) {
	target := plan.WebGPU()
	target.Device = hardware.Named("google swiftshader")
	for _, c := range []struct {
		rows, length int
		loops        int // of the max, the sum and the quotients
	}{{256, 16, 3}, {256, 64, 3}, {1 << 19, 8, 0}} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			b.Output("y", ops.Softmax(b, b.Input("x", ir.F32, ir.Dims(c.rows, c.length)...), 1))
		})
		loops := 0
		for _, k := range schedtest.Kernels(t, g, target) {
			loop.Walk(k.Body, func(s loop.Stmt) {
				f, ok := s.(*loop.For)
				if !ok {
					return
				}
				loops++
				if step, _ := f.Step.IntConst(); step != 1 {
					t.Errorf("softmax of [%d, %d]: a loop in steps of %d", c.rows, c.length, step)
				}
			})
		}
		if loops != c.loops {
			t.Errorf("softmax of [%d, %d] has %d loops, not %d", c.rows, c.length, loops, c.loops)
		}
	}
}
