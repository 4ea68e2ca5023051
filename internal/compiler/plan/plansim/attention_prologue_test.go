package plansim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/ir/ops"
	"github.com/rlx-go/rlx/ir/scalar"
)

// TestCachedAttentionComputesItsOperands rotates queries and keys and updates caches in the launches of cached attention, where a
// launch takes longer: the first and the last position of a block, the last of the caches, and one that is past them. Two new
// positions are stored before the attention. Where threads load several elements of a key, the new ones are behind a branch.
func TestCachedAttentionComputesItsOperands(t *testing.T) {
	for name, c := range map[string]struct {
		a                               ops.CachedAttentionAttrs
		queries, depth, arrays, kernels int
		branched                        int
	}{
		"whole": {ops.CachedAttentionAttrs{}, 1, 8, 12, 3, 0}, "window": {ops.CachedAttentionAttrs{Window: 7, Softcap: 3}, 1, 8, 12, 3, 0},
		"few arrays": {ops.CachedAttentionAttrs{}, 1, 8, 8, 5, 0}, "two positions": {ops.CachedAttentionAttrs{}, 2, 8, 12, 4, 0},
		"several elements": {ops.CachedAttentionAttrs{}, 1, 32, 12, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			g, target := cachedStep(t, c.queries, c.depth, c.a), byWarps()
			target.StorageBuffers = c.arrays
			kernels := schedtest.Kernels(t, g, target)
			if len(kernels) != c.kernels {
				t.Errorf("%d kernels, want %d", len(kernels), c.kernels)
			}
			if n := branchedLoads(kernels); n != c.branched {
				t.Errorf("%d values are loaded again behind branches, want %d", n, c.branched)
			}
			checkPositions(t, g, target, []int64{0, 1, 31, 32, 33, 63, 64, cachedRoom - int64(c.queries), cachedRoom})
		})
	}
}

const cachedRoom = 100

// branchedLoads returns how many variables branches set to loaded values.
func branchedLoads(kernels []*loop.Kernel) (n int) {
	for _, k := range kernels {
		loop.Walk(k.Body, func(s loop.Stmt) {
			branch, ok := s.(*loop.If)
			if !ok {
				return
			}
			for _, s := range branch.Then {
				if a, ok := s.(*loop.Assign); ok && scalar.Any(a.Value, func(x scalar.Expr) bool { return x.Op == scalar.OpLoad && k.Arrays[x.Ref].Space == loop.Storage }) {
					n++
				}
			}
		})
	}
	return n
}

// cachedStep is the attention of new positions with rotated queries and keys, which updates caches in states.
func cachedStep(t *testing.T, queries, depth int, a ops.CachedAttentionAttrs) *ir.Graph {
	const heads, groups = 6, 2
	return schedtest.Build(t, func(b *ir.Builder) {
		past := b.Input("past", ir.I32, ir.N(1))
		at := ops.Add(b, ops.Iota(b, ir.I32, 1, ir.Dims(1, queries)...), ops.Reshape(b, past, ir.Dims(1, 1)...))
		cos, sin := ops.RopeTable(b, ops.Reshape(b, at, ir.Dims(1, 1, queries)...), depth, 1e4)
		of := func(name string, heads int) ir.Value {
			return ops.Transpose(b, ops.Reshape(b, b.Input(name, ir.F32, ir.Dims(queries, heads*depth)...), ir.Dims(1, queries, heads, depth)...), 0, 2, 1, 3)
		}
		rotated := func(x ir.Value) ir.Value { return ops.Rope(b, x, cos, sin, ops.RopeAttrs{}) }
		appended := func(name string, x ir.Value) ir.Value {
			indices := ops.Stack(b, 2, ops.ZerosLike(b, at), at)
			all := ops.Scatter(b, b.State(name, ir.F32, ir.Dims(1, groups, cachedRoom, depth)...), indices, ops.Transpose(b, x, 0, 2, 1, 3),
				ops.ScatterAttrs{IndexedAxes: ops.IndexedAxes{Axes: []int{0, 2}, Outside: ops.OutsideDrop, Unique: true}})
			b.SetState(name, all)
			return all
		}
		k, v := appended("keys", rotated(of("k", groups))), appended("values", of("v", groups))
		b.Output("y", ops.CachedAttention(b, rotated(of("q", heads)), ops.KVCache{K: k, V: v, Past: past}, a))
	})
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
					t.Fatalf("position %d: element %d of %s is %v, not %v", at, k, o.Name, x, y)
				}
			}
		}
		for _, name := range []string{"q", "k", "v"} {
			slices.Reverse(inputs[name].F)
		}
	}
}
