package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/compiler/plan/plansim"
	"github.com/rlx-go/rlx/ir"
)

// moduleOf returns the module whose entry run is a graph.
func moduleOf(t *testing.T, g *ir.Graph) *ir.Module {
	t.Helper()
	m, err := ir.NewModule("m", ir.Entry{Name: "run", Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// compiled returns the plan of a graph for WebGPU.
func compiled(t *testing.T, g *ir.Graph) *plan.Plan {
	t.Helper()
	return compiledFor(t, plan.WebGPU(), g)
}

// compiledFor returns the plan of a graph for a target whose kernels are WGSL.
func compiledFor(t *testing.T, target plan.Target, g *ir.Graph) *plan.Plan {
	t.Helper()
	p, err := plan.Compile(moduleOf(t, g), target, wgsl.Printer{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// opened returns the plan of a graph in the simulator.
func opened(t *testing.T, target plan.Target, g *ir.Graph) *plansim.Program {
	t.Helper()
	s, err := plansim.Open(moduleOf(t, g), target)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
