package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

const roundSize = 60

// turned moves the elements of a vector on by some places.
func turned(b *ir.Builder, x ir.Value, by int) ir.Value {
	by = 1 + by%(roundSize-1)
	return ops.Concatenate(b, 0, ops.SliceAxis(b, x, 0, ir.N(by), ir.N(roundSize-by)), ops.SliceAxis(b, x, 0, ir.N(0), ir.N(by)))
}

// rounds are steps that a program repeats. Most read their operand at several positions, and none
// has much float arithmetic, so that only the limit on terms ends rematerialisation.
var rounds = map[string]struct {
	dtype ir.DType
	step  func(b *ir.Builder, x ir.Value, i int) ir.Value
}{
	"moves": {ir.F32, turned},
	"one of two moves": {ir.F32, func(b *ir.Builder, x ir.Value, i int) ir.Value {
		place := ops.Iota(b, ir.I32, 0, ir.N(roundSize))
		return ops.Select(b, ops.Gt(b, place, ops.Const(b, ir.I32, float64(i%roundSize))), turned(b, x, i), ops.Reverse(b, x, 0))
	}},
	"cellular automaton": {ir.Bool, func(b *ir.Builder, x ir.Value, i int) ir.Value {
		return ops.Xor(b, turned(b, x, 0), ops.Or(b, x, turned(b, x, roundSize-2)))
	}},
	"pointers that jump": {ir.I32, func(b *ir.Builder, x ir.Value, _ int) ir.Value {
		return ops.Take(b, x, x, 0, ops.OutsideClip)
	}},
	"sums of neighbours": {ir.I32, func(b *ir.Builder, x ir.Value, i int) ir.Value { return ops.Add(b, x, turned(b, x, i)) }},
	"integers": {ir.I32, func(b *ir.Builder, x ir.Value, i int) ir.Value {
		return ops.Abs(b, ops.Sub(b, x, ops.ConstLike(b, x, float64(i))))
	}},
	"checked": {ir.I32, func(b *ir.Builder, x ir.Value, i int) ir.Value {
		return ops.Max(b, ops.CheckIndex(b, ops.Convert(b, ops.Ne(b, x, turned(b, x, i)), ir.I32), ir.N(2), "difference"), x)
	}},
	"sums of all": {ir.F32, func(b *ir.Builder, x ir.Value, _ int) ir.Value {
		return ops.Sub(b, x, ops.BroadcastTo(b, ops.Mul(b, ops.ReduceSum(b, x), ops.Const(b, ir.F32, 1./64)), x.Shape()))
	}},
}

func roundsOf(t *testing.T, name string, n int) *ir.Graph {
	t.Helper()
	g := schedtest.Build(t, func(b *ir.Builder) {
		x := b.Input("x", rounds[name].dtype, ir.N(roundSize))
		for i := range n {
			x = rounds[name].step(b, x, i)
		}
		b.Output("y", x)
	})
	return g
}

// TestSourceSizeIsLinearInRounds: each source is bounded, and their total size grows with
// the number of rounds, not faster.
func TestSourceSizeIsLinearInRounds(t *testing.T) {
	for name := range rounds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			few := roundsOf(t, name, 6)
			checkTwoRuns(t, few, someValues(few), plan.WebGPU())
			var total [2]int
			for i, n := range []int{100, 200} {
				p := compiled(t, roundsOf(t, name, n))
				checkSources(t, p)
				for _, d := range p.Entries[0].Steps {
					total[i] += len(p.Kernels[d.(*plan.Dispatch).Kernel].Source)
				}
			}
			if float64(total[1]) > 2.5*float64(total[0]) {
				t.Errorf("%d bytes of source for 200 rounds, %d for 100", total[1], total[0])
			}
		})
	}
}
