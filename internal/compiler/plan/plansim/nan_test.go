package plansim_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops/nan"
)

// TestKernelsFollowNaNConventions runs samples of every op with a NaN: kernels return NaN where the
// reference implementation does. Samples that differ in values alone share a plan.
func TestKernelsFollowNaNConventions(t *testing.T) {
	targets := map[string]plan.Target{"WebGPU": withF16(), "WebAssembly": plan.WebAssembly(false)}
	for _, c := range nan.Conventions() {
		t.Run(string(c.Op), func(t *testing.T) {
			check := checkRun
			if c.ByDevice {
				check = checkSpoilt
			}
			programs := map[string]*plansim.Program{}
			samples := nan.Samples(c.Op)
			if testing.Short() {
				samples = samples[:min(1, len(samples))]
			}
			for _, s := range samples {
				g, inputs, err := sampleGraph(c.Op, s)
				if err != nil {
					t.Fatal(err)
				}
				for name, target := range targets {
					t.Run(s.Name+" "+name, func(t *testing.T) {
						if !runsOn(g, target) {
							return
						}
						key := name + g.String()
						if programs[key] == nil {
							programs[key] = open(t, g, target)
						}
						check(t, programs[key], g, inputs)
					})
				}
			}
		})
	}
}

// checkSpoilt requires some NaN where the reference of the op has one.
func checkSpoilt(t *testing.T, program *plansim.Program, g *ir.Graph, inputs map[string]*ir.Array) {
	t.Helper()
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := program.Run("run", inputs)
	if err != nil {
		t.Fatal(err)
	}
	if hasNaN(want...) && !hasNaN(slices.Collect(maps.Values(got))...) {
		t.Error("no result is NaN")
	}
}

func hasNaN(of ...*ir.Array) bool {
	for _, a := range of {
		for i := range a.Len() {
			if math.IsNaN(a.Float(i)) {
				return true
			}
		}
	}
	return false
}
