package schedtest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/loop"
)

// Run compiles a graph, runs it once in the simulator on random inputs, and compares every
// output with the reference implementation. It returns the names of the kernels and routines in
// launch order.
func Run(t *testing.T, g *ir.Graph) []string {
	t.Helper()
	return RunOn(t, g, plan.WebGPU(), 0)
}

// RunOn is [Run] for a target. If whole is not 0, inputs are integers of smaller absolute value.
func RunOn(t *testing.T, g *ir.Graph, target plan.Target, whole int) []string {
	t.Helper()
	tolerance := func(d ir.DType) float64 {
		if whole == 0 && d.IsFloat() && d.Size() == 2 {
			return irtest.LooseToleranceFor(d).Rel // weights and results are rounded
		}
		return 1e-4
	}
	return RunWithin(t, g, target, whole, tolerance)
}

// RunWithin is [RunOn] with a tolerance for each type.
func RunWithin(t *testing.T, g *ir.Graph, target plan.Target, whole int, tolerance func(d ir.DType) float64) []string {
	t.Helper()
	return NewCase(t, g, whole).run(t, target, tolerance)
}

// Case is a graph with inputs and what the reference implementation computes from them.
type Case struct {
	Graph  *ir.Graph
	inputs map[string]*ir.Array
	want   []*ir.Array
}

// NewCase computes the results of a graph for random inputs, which are integers of smaller absolute
// value than whole if that is not 0.
func NewCase(t *testing.T, g *ir.Graph, whole int) *Case {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	inputs := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		for i := range a.F {
			if a.F[i] = rng.NormFloat64(); whole > 0 {
				a.F[i] = float64(rng.IntN(2*whole-1) - whole + 1)
			}
		}
		for i := range a.I {
			a.I[i] = rng.Int64N(3)
		}
		a.Round()
		inputs[p.Name] = a
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	return &Case{g, inputs, want}
}

// RunOn is the function of that name for the case, whose results it computes once for all targets.
// The results must be exact: the case is of integers.
func (c *Case) RunOn(t *testing.T, target plan.Target) []string {
	t.Helper()
	return c.run(t, target, func(ir.DType) float64 { return 1e-4 })
}

func (c *Case) run(t *testing.T, target plan.Target, tolerance func(d ir.DType) float64) []string {
	t.Helper()
	g, inputs, want := c.Graph, c.inputs, c.want
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	s, err := plansim.Open(m, target)
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
	for i, o := range g.Outputs() {
		limit := tolerance(got[i].DType)
		for j := range want[i].Len() {
			x, y := got[i].Float(j), want[i].Float(j)
			if x == y || x != x && y != y {
				continue
			}
			if !(math.Abs(x-y) <= limit*math.Max(1, math.Abs(y))) { // NaN differs from a number
				t.Fatalf("%s: element %d is %v, not %v", o.Name, j, x, y)
			}
		}
	}
	var names []string
	var count func(steps []plan.Step)
	count = func(steps []plan.Step) {
		for _, step := range steps {
			switch step := step.(type) {
			case *plan.Dispatch:
				names = append(names, s.Plan().Kernels[step.Kernel].Name)
			case *plan.Call:
				names = append(names, "call "+s.Plan().Routines[step.Routine].Name())
			case *plan.Repeat:
				count(step.Steps)
			}
		}
	}
	count(s.Plan().Entries[0].Steps)
	return names
}

// Build returns the graph that f builds.
func Build(t *testing.T, f func(b *ir.Builder)) *ir.Graph {
	t.Helper()
	g, err := ir.Build("g", f)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Kernels returns the kernels of a graph on a target.
func Kernels(t *testing.T, g *ir.Graph, target plan.Target) (kernels []*loop.Kernel) {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	_, printed, err := plan.CompileKernels(m, target, plansim.Text)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range printed {
		kernels = append(kernels, k.Kernel)
	}
	return kernels
}

// Wholes limits inputs to small integers, which are exact in all types.
const Wholes = 2
