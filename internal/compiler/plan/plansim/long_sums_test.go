package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestLongSums compares sums of 10⁵ equal terms with those in f64. Those by one thread, which take
// longest, are of 4·10⁴: they err by 10⁻⁴ where terms are added one by one, and by 10⁻⁵ where sums of
// blocks are.
func TestLongSums(t *testing.T) {
	many := map[string]plan.Target{"webgpu": plan.WebGPU(), "subgroups": plan.WebGPU().WithSubgroups(32), "cuda": inBytes()}
	checkLongSums(t, irtest.LongSums(1e5), many)
	checkLongSums(t, irtest.LongSums(4e4), map[string]plan.Target{"one thread": undivided})
}

func checkLongSums(t *testing.T, cases []irtest.SumCase, targets map[string]plan.Target) {
	for _, c := range cases {
		s, err := c.Make(true)
		if err != nil {
			t.Fatal(err)
		}
		seen := plans{}
		for name, target := range targets {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				session := open(t, s.Graph, target)
				if !seen.add(t, session) {
					return
				}
				out, err := session.Run("run", s.Inputs)
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
