package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/irtest"
)

// TestLongSums compares sums of 10⁵ equal terms with those in f64.
func TestLongSums(t *testing.T) {
	for name, target := range map[string]plan.Target{
		"webgpu": plan.WebGPU(), "subgroups": plan.WebGPU().WithSubgroups(32), "cuda": inBytes(), "one thread": undivided,
	} {
		for _, c := range irtest.LongSums(1e5) {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				s, err := c.Make(true)
				if err != nil {
					t.Fatal(err)
				}
				out, err := open(t, s.Graph, target).Run("run", s.Inputs)
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
