package plansim_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// TestShortLaunchesAreJoined runs products of a row with three matrices, of different numbers of rows, and updates of two
// caches at a position: each takes one dispatch. Products of the first result, one after the other, stay apart.
func TestShortLaunchesAreJoined(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const width, room = 256, 5
	inputs := map[string]*ir.Array{"x": normal(rng, 1, width), "past": ir.NewArray(ir.I32, 1)}
	inputs["past"].I[0] = 3
	rows := map[string]int{"q": width, "k": 6, "v": 3, "next": width, "last": 4}
	for name, n := range rows {
		inputs[name] = packedRandom(rng, "q8_0", n, width)
	}
	for _, name := range []string{"keys", "values"} {
		inputs[name] = normal(rng, room, rows[name[:1]])
	}
	g := schedtest.Build(t, func(b *ir.Builder) {
		x, past := b.Input("x", ir.F32, ir.Dims(1, width)...), b.Input("past", ir.I32, ir.N(1))
		times := func(name string, x ir.Value) ir.Value {
			return ops.QuantizedMatMul(b, x, b.Param(name, ir.U8, ir.Dims(inputs[name].Dims...)...), "q8_0")
		}
		q, k, v := times("q", x), times("k", x), times("v", x)
		for i, y := range []ir.Value{k, v} {
			name := []string{"keys", "values"}[i]
			cache := b.State(name, ir.F32, ir.Dims(room, rows[name[:1]])...)
			at := ops.IndexedAxes{Axes: []int{0}, Outside: ops.OutsideDrop, Unique: true}
			b.SetState(name, ops.Scatter(b, cache, ops.Reshape(b, past, ir.Dims(1, 1)...), ops.Sin(b, y), ops.ScatterAttrs{IndexedAxes: at}))
		}
		b.Output("y", times("last", times("next", q)))
	})
	m := moduleOf(t, g)
	for name, c := range map[string]struct {
		target     plan.Target
		dispatches int
	}{"apart": {plan.WebGPU(), 7}, "joined": {byWarps(), 4}} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Compile(m, c.target, wgsl.Printer{})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(p.Entries[0].Steps); n != c.dispatches {
				t.Errorf("%d dispatches, not %d", n, c.dispatches)
			}
			s, err := plansim.Open(m, c.target)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SetStates(g, inputs); err != nil {
				t.Fatal(err)
			}
			got, err := s.RunGraph("run", g, inputs)
			if err != nil {
				t.Fatal(err)
			}
			want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
			if err != nil {
				t.Fatal(err)
			}
			for i, out := range g.Outputs() {
				for j := range want[i].Len() {
					if x, y := got[i].Float(j), want[i].Float(j); math.IsNaN(y) || math.Abs(x-y) > 1e-4*math.Max(10, math.Abs(y)) {
						t.Fatalf("%s: element %d is %v, not %v", out.Name, j, x, y)
					}
				}
			}
		})
	}
}
