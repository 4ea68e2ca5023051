package optim_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
)

// readPaper reads testdata/paper_steps.json.
func readPaper(t *testing.T) (runs map[string]run) {
	t.Helper()
	data, err := os.ReadFile("testdata/paper_steps.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &runs); err != nil {
		t.Fatal(err)
	}
	return runs
}

func TestOptimizersAgreeWithTheFormulasOfTheirPapers(t *testing.T) {
	for name, opt := range map[string]optim.Optimizer{"mars": optim.MARS{}, "soap": optim.SOAP{Every: 3}} {
		t.Run(name, func(t *testing.T) {
			want := readPaper(t)[name]
			checkRun(t, ir.F32, opt, optim.Options{}, want, 3e-5)
			checkRun(t, ir.F64, opt, optim.Options{Schedule: optim.Constant(0.05)}, want, 1e-12)
		})
	}
}

// TestSophiaAgreesWithTheFormulasOfItsPaper estimates the curvature before every
// second step. The Hessian of the loss is diagonal: the estimate is exact.
func TestSophiaAgreesWithTheFormulasOfItsPaper(t *testing.T) {
	want := readPaper(t)["sophia"]
	opt := optim.Sophia{}
	s := trainingOf(t, opt, optim.Options{Schedule: optim.Constant(0.05)})
	curvature, err := opt.Curvature(lossGraph(t, ir.F64), "loss", 7, optim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Losses {
		batch(ir.F64, i, s.values)
		if i%2 == 0 {
			estimate := &stepper{curvature, map[string]*ir.Array{}}
			for _, p := range curvature.Ports() {
				estimate.values[p.Name] = s.values[p.Name]
			}
			estimate.step(t)
			for _, name := range []string{"w", "v"} {
				h := optim.SlotState("h", name)
				s.values[h] = estimate.values[h]
			}
		}
		s.step(t)
	}
	closeTo(t, "w", s.values["w"].F, want.W, 1e-12)
	closeTo(t, "v", s.values["v"].F, want.V, 1e-12)
}
