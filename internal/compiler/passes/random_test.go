package passes_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/passes"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

func count(g *ir.Graph) int {
	n := len(g.Nodes())
	for _, m := range g.Nodes() {
		for _, s := range m.Subgraphs() {
			n += count(s)
		}
	}
	return n
}

// Not a bit may change, in the sign of zero neither.
func TestOptimisedGraphsComputeTheSame(t *testing.T) {
	before, after := 0, 0
	for seed := range uint64(300) {
		g, inputs := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 1)), 5+int(seed%40))
		if err := ir.Verify(g); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		h, err := passes.Run(g, passes.Options{Verify: ir.Verify})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, g)
		}
		before, after = before+count(g), after+count(h)
		want, err := ir.Eval(g, inputs, ir.EvalOptions{})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, g)
		}
		got, err := ir.Eval(h, inputs, ir.EvalOptions{})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, h)
		}
		for i, o := range g.Outputs() {
			if k := difference(got[i], want[i]); k >= 0 {
				t.Errorf("seed %d: %s[%d] is %v, unoptimised %v\n%s\n%s", seed, o.Name, k, got[i].Float(k), want[i].Float(k), g, h)
			}
		}
		if t.Failed() {
			return
		}
	}
	if after > before*3/4 {
		t.Errorf("of %d nodes %d are left", before, after)
	}
}

// difference returns the first element that differs, −1 for none.
func difference(got, want *ir.Array) int {
	for i := range want.Len() {
		g, w := got.Float(i), want.Float(i)
		if math.Float64bits(g) != math.Float64bits(w) && !(math.IsNaN(g) && math.IsNaN(w)) {
			return i
		}
	}
	return -1
}

// The text form of graphs as they come must be read back to the same graph.
func TestRandomGraphsRoundTripThroughText(t *testing.T) {
	for seed := range uint64(100) {
		g, _ := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 2)), 20)
		again, err := ir.Parse(g.String())
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, g)
		}
		if again.String() != g.String() || again.Hash() != g.Hash() {
			t.Fatalf("seed %d: read back as\n%s", seed, again)
		}
	}
}
