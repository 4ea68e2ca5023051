package plansim_test

import (
	"flag"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/autodiff"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/internal/compiler/plan/schedtest"
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

// TestRandomGraphsEqualReference runs each graph as a plan with fusion, as
// one without, and as one for Hopper without TF32, in which rows are also stored in the buffers that they are read from.
func TestRandomGraphsEqualReference(t *testing.T) {
	unfused := plan.WebGPU()
	unfused.Unfused, unfused.Branch = true, 1
	eachRandomGraph(t, func(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array) {
		t.Run("fused", func(t *testing.T) { checkTwoRuns(t, g, inputs, plan.WebGPU()) })
		t.Run("unfused", func(t *testing.T) { checkTwoRuns(t, g, inputs, unfused) })
		t.Run("CUDA", func(t *testing.T) { checkTwoRuns(t, g, inputs, schedtest.OwnProducts()) })
	})
}

// TestGradientsOfRandomGraphsEqualReference runs the transposes of graphs:
// scatters for reads, pads for slices, loops that run backwards. Once only: a
// second run may compare a state with the value it came from, which are equal in
// f32 and share a gradient, but not in the reference.
func TestGradientsOfRandomGraphsEqualReference(t *testing.T) {
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
// states of the first: rounded, they may decide a maximum differently.
func checkTwoRuns(t *testing.T, g *ir.Graph, inputs map[string]*ir.Array, target plan.Target) {
	checkRuns(t, 2, g, inputs, target)
}

// checkRuns runs a plan that no test has run with these inputs.
func checkRuns(t *testing.T, runs int, g *ir.Graph, inputs map[string]*ir.Array, target plan.Target) {
	s := open(t, g, target)
	if !ran.add(t, s, inputs) {
		return
	}
	values := maps.Clone(inputs)
	if err := s.SetStates(g, inputs); err != nil {
		t.Fatal(err)
	}
	for run := range runs {
		want, err := ir.Eval(g, values, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.RunGraph("run", g, inputs)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			if o.State {
				values[o.Name] = got[i]
			}
			if diff := compare(got[i], want[i], 2e-4); diff != "" {
				t.Errorf("run %d: %s: %s", run, o.Name, diff)
			}
		}
	}
}

func open(t *testing.T, g *ir.Graph, target plan.Target) *plansim.Program {
	t.Helper()
	s := opened(t, target, g)
	s.Options.ZeroDivisors = true
	return s
}

// TestStatesAreCopiedFromReusedBuffers has a state whose new value is stored in the buffer of an operand and
// copied to the state later, as the old value is an output, too.
func TestStatesAreCopiedFromReusedBuffers(t *testing.T) {
	g, inputs := irtest.RandomGraph(rand.New(rand.NewPCG(6956, 0)), 39)
	checkTwoRuns(t, g, inputs, schedtest.Hopper())
}
