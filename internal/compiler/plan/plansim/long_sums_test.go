package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestLongSums compares sums of 4·10⁴ equal terms with those in f64, to 10⁻⁶: where terms, or sums of 64 of them,
// are added one by one, they err by 4·10⁻⁴ and 6·10⁻⁶. Those by one thread, which take longest, are of 2·10⁴, and
// err by half as much. Devices run longer ones in native.
func TestLongSums(t *testing.T) {
	many := map[string]plan.Target{"webgpu": plan.WebGPU(), "subgroups": plan.WebGPU().WithSubgroups(32), "cuda": inBytes()}
	if testing.Short() {
		many = map[string]plan.Target{"cuda": inBytes()}
	}
	checkLongSums(t, irtest.LongSums(4e4), many)
	if testing.Short() {
		return
	}
	checkLongSums(t, irtest.LongSums(2e4), map[string]plan.Target{"one thread": undivided})
}

func checkLongSums(t *testing.T, cases []irtest.SumCase, targets map[string]plan.Target) {
	for _, c := range cases {
		s, err := c.Make(true)
		if err != nil {
			t.Fatal(err)
		}
		for name, target := range targets {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				program := open(t, s.Graph, target)
				if !ran.add(t, program, s.Inputs) {
					return
				}
				out, err := program.Run("run", s.Inputs)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Check(out["y"].F); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
