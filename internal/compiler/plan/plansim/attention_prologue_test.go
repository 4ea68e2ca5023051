package plansim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestCachedAttentionComputesItsOperands rotates queries and keys and updates caches in the launches of cached attention, two a layer
// where a launch takes longer: the first and the last position of a block, the last of the caches, and one that is past them.
func TestCachedAttentionComputesItsOperands(t *testing.T) {
	const heads, groups, room, depth = 6, 2, 100, 8
	for name, a := range map[string]ops.CachedAttentionAttrs{"whole": {}, "window": {Window: 7, Softcap: 3}} {
		g := schedtest.Build(t, func(b *ir.Builder) {
			past := b.Input("past", ir.I32, ir.N(1))
			cos, sin := ops.RopeTable(b, ops.Reshape(b, past, ir.Dims(1, 1, 1)...), depth, 1e4)
			row := func(name string, heads int) ir.Value {
				return ops.Reshape(b, b.Input(name, ir.F32, ir.Dims(1, heads*depth)...), ir.Dims(1, heads, 1, depth)...)
			}
			appended := func(name string, x ir.Value) ir.Value {
				at := ops.Stack(b, 2, ops.Zeros(b, ir.I32, ir.Dims(1, 1)...), ops.Reshape(b, past, ir.Dims(1, 1)...))
				all := ops.Scatter(b, b.State(name, ir.F32, ir.Dims(1, groups, room, depth)...), at, ops.Transpose(b, x, 0, 2, 1, 3),
					ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 2}, Outside: ops.OutsideDrop, Unique: true}})
				b.SetState(name, all)
				return all
			}
			rotated := func(x ir.Value) ir.Value { return ops.Rope(b, x, cos, sin, ops.RopeAttrs{}) }
			k, v := appended("keys", rotated(row("k", groups))), appended("values", row("v", groups))
			b.Output("y", ops.CachedAttention(b, rotated(row("q", heads)), k, v, past, ir.Value{}, a))
		})
		for _, c := range []struct{ arrays, kernels int }{{12, 3}, {8, 5}} {
			target := byWarps()
			target.StorageBuffers = c.arrays
			if kernels := schedtest.Kernels(t, g, target); len(kernels) != c.kernels {
				t.Errorf("%s, %d arrays: %d kernels, want %d", name, c.arrays, len(kernels), c.kernels)
			}
			checkPositions(t, g, target, []int64{0, 1, 31, 32, 33, 63, 64, room - 1, room})
		}
	}
}

// checkPositions runs a graph at each position in turn and holds its outputs and states to those of the reference.
func checkPositions(t *testing.T, g *ir.Graph, target plan.Target, positions []int64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 7))
	s, inputs := opened(t, target, g), map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		inputs[p.Name] = normal(rng, dims...)
	}
	inputs["past"] = ir.Ints(ir.I32, positions[:1], 1)
	if err := s.SetStates(g, inputs); err != nil {
		t.Fatal(err)
	}
	for _, at := range positions {
		inputs["past"] = ir.Ints(ir.I32, []int64{at}, 1)
		want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.RunGraph("run", g, inputs)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			if o.State {
				inputs[o.Name] = want[i]
			}
			for k := range want[i].Len() {
				if x, y := got[i].Float(k), want[i].Float(k); !(math.Abs(x-y) <= 1e-5*math.Max(1, math.Abs(y))) {
					t.Fatalf("%d arrays, position %d: element %d of %s is %v, not %v", target.StorageBuffers, at, k, o.Name, x, y)
				}
			}
		}
		for _, name := range []string{"q", "k", "v"} {
			slices.Reverse(inputs[name].F)
		}
	}
}
