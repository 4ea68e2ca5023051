package plansim_test

import (
	"testing"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/ir/plan"
)

// TestLongSums holds sums of 10⁵ terms to what they come to in f64.
func TestLongSums(t *testing.T) {
	sums, err := irtest.LongSums(1e5)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]plan.Target{"webgpu": plan.WebGPU(), "subgroups": plan.WebGPU().WithSubgroups(32), "cuda": inBytes(), "one thread": undivided} {
		t.Run(name, func(t *testing.T) {
			for _, s := range sums {
				t.Run(s.Name, func(t *testing.T) {
					start := time.Now()
					session := open(t, s.Graph, target)
					out, err := session.Run("run", s.Inputs)
					if err != nil {
						t.Fatal(err)
					}
					t.Log(time.Since(start))
					if err := s.Check(0, out["y"].F); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	_ = ir.F32
}
