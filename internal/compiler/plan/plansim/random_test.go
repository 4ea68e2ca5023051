package plansim_test

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

var (
	randomGraphs = flag.Int("random", 120, "how many random graphs to compile and run")
	firstSeed    = flag.Uint64("seed", 1, "the seed of the first random graph; each other one has the next")
)

// eachRandomGraph runs f on random graphs of 3 to 42 steps.
func eachRandomGraph(t *testing.T, f func(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array)) {
	for i := range *randomGraphs {
		seed := *firstSeed + uint64(i)
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			g, inputs := irtest.RandomGraph(rand.New(rand.NewPCG(seed, 0)), 3+i%40)
			f(t, g, inputs)
		})
	}
}

// TestRandomGraphsEqualTheirMeaning runs each graph as a plan with fusion and as
// one without.
func TestRandomGraphsEqualTheirMeaning(t *testing.T) {
	unfused := plan.WebGPU()
	unfused.Unfused, unfused.Branch = true, 1
	eachRandomGraph(t, func(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array) {
		t.Run("fused", func(t *testing.T) { checkTwoRuns(t, g, inputs, plan.WebGPU()) })
		t.Run("unfused", func(t *testing.T) { checkTwoRuns(t, g, inputs, unfused) })
	})
}

// TestGradientsOfRandomGraphsEqualTheirMeaning runs the transposes of graphs:
// scatters for reads, pads for slices, loops that run backwards. Once only: a
// second run may compare a state with the value it came from, which are equal in
// f32 and share a gradient, but not in the reference.
func TestGradientsOfRandomGraphsEqualTheirMeaning(t *testing.T) {
	eachRandomGraph(t, func(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array) {
		g, err := autodiff.VJP(g)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 0))
		for _, p := range g.Ports() {
			if inputs[p.Name] == nil {
				dims, _ := p.Value.Shape().Ints()
				a := ir.NewArray(p.Value.DType(), dims...)
				for i := range a.F {
					a.F[i] = rng.Float64() - 0.5
				}
				a.Round()
				inputs[p.Name] = a
			}
		}
		checkRuns(t, 1, g, inputs, plan.WebGPU())
	})
}

// checkTwoRuns runs an entry twice in a row, since states that were overwritten
// too early show in the second run at the latest. That run is judged by the
// states which the first left: rounded, they may settle a maximum otherwise.
func checkTwoRuns(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array, target plan.Target) {
	checkRuns(t, 2, g, inputs, target)
}

func checkRuns(t *testing.T, runs int, g *ir.Graph, inputs map[string]*ir.Array, target plan.Target) {
	s := open(t, g, target)
	values := map[string]*ir.Array{}
	for name, a := range inputs {
		values[name] = a
		if p, _ := g.Port(name); p.Kind != ir.InputPort {
			// Passes may have dropped a port that nothing depends on.
			if s.Plan().Lookup(name) == nil {
				continue
			}
			if err := s.Set(name, a); err != nil {
				t.Fatal(err)
			}
		}
	}
	for run := range runs {
		want, err := ir.Eval(g, values, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Run("run", inputs)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			a := got[o.Name]
			if o.State {
				if a, err = s.Get(o.Name); err != nil {
					t.Fatal(err)
				}
				values[o.Name] = a
			}
			if diff := compare(a, want[i], 2e-4); diff != "" {
				t.Errorf("run %d: %s: %s", run, o.Name, diff)
			}
		}
	}
}

func open(t *testing.T, g *ir.Graph, target plan.Target) *plansim.Session {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	s, err := plansim.Open(m, target)
	if err != nil {
		t.Fatal(err)
	}
	s.Options.ZeroDivisors = true
	return s
}
