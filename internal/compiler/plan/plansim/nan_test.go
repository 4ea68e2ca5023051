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
// reference implementation does.
func TestKernelsFollowNaNConventions(t *testing.T) {
	for _, c := range nan.Conventions() {
		t.Run(string(c.Op), func(t *testing.T) {
			for _, s := range nan.Samples(c.Op) {
				for name, target := range map[string]plan.Target{"WebGPU": withF16(), "WebAssembly": plan.WebAssembly(false)} {
					t.Run(s.Name+" "+name, func(t *testing.T) {
						if c.ByDevice {
							checkSpoilt(t, target, c.Op, s)
						} else {
							checkSampleOn(t, target, c.Op, s)
						}
					})
				}
			}
		})
	}
}

// checkSpoilt requires some NaN where the reference of the op has one.
func checkSpoilt(t *testing.T, target plan.Target, op ir.Op, s ir.Sample) {
	t.Helper()
	g, inputs, err := sampleGraph(op, s)
	if err != nil {
		t.Fatal(err)
	}
	if !runsOn(g, target) {
		return
	}
	want, err := ir.Eval(g, inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	session, err := plansim.Open(m, target)
	if err != nil {
		t.Fatal(err)
	}
	session.Options.ZeroDivisors = true
	got, err := session.Run("run", inputs)
	if err != nil {
		t.Fatal(err)
	}
	if hasNaN(want...) && !hasNaN(slices.Collect(maps.Values(got))...) {
		t.Errorf("%s: no result is NaN", s.Name)
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
