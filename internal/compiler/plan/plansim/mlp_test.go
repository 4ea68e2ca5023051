package plansim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// adamStep opens the Adam step of a multi-layer perceptron, the entry "step".
func adamStep(t *testing.T, batch int, layers ...int) (*plansim.Program, *ir.Graph) {
	t.Helper()
	loss, err := irtest.MLP(batch, layers...)
	if err != nil {
		t.Fatal(err)
	}
	g, err := optim.Step(loss, "loss", optim.Adam{}, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("mlp", ir.Entry{Name: "step", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	s, err := plansim.Open(m, plan.WebGPU())
	if err != nil {
		t.Fatal(err)
	}
	return s, g
}

// TestAStepIsAtMostTwentyKernels counts the kernels at a size at which sums are split, which takes
// one more kernel each.
func TestAStepIsAtMostTwentyKernels(t *testing.T) {
	s, _ := adamStep(t, 128, 784, 512, 512, 10)
	if n := len(s.Plan().Entries[0].Steps); n > 20 {
		t.Errorf("%d kernels, want at most 20", n)
	}
}

func TestAdamStepOfAnMLP(t *testing.T) {
	s, g := adamStep(t, 8, 20, 16, 16, 5)
	steps := s.Plan().Entries[0].Steps
	for _, st := range steps {
		d := st.(*plan.Dispatch)
		t.Log(s.Plan().Kernels[d.Kernel].Name, d.Groups, len(d.Bindings))
	}
	if len(steps) > 20 {
		t.Errorf("%d kernels, want at most 20", len(steps))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	values := map[string]*ir.Array{}
	for _, p := range g.Ports() {
		dims, _ := p.Value.Shape().Ints()
		a := ir.NewArray(p.Value.DType(), dims...)
		if p.Kind != ir.StatePort || !optim.IsState(p) {
			for i := range a.F {
				a.F[i] = rng.NormFloat64() * 0.3
			}
		}
		for i := range a.I {
			if p.Kind == ir.InputPort {
				a.I[i] = int64(rng.IntN(5))
			}
		}
		a.Round()
		values[p.Name] = a
	}
	if err := s.SetStates(g, values); err != nil {
		t.Fatal(err)
	}
	if lr, ok := values["lr"]; ok {
		lr.F[0] = ir.F32.Round(1e-2)
	}
	for step := range 5 {
		want, err := ir.Eval(g, values, ir.EvalOptions{Reference: true})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.RunGraph("step", g, values)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range g.Outputs() {
			if o.State {
				values[o.Name] = want[i]
			}
			if diff := compare(got[i], want[i], 2e-5); diff != "" {
				t.Errorf("step %d: %s: %s", step, o.Name, diff)
			}
		}
	}
}
