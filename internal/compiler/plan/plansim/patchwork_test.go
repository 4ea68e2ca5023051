package plansim_test

import (
	"testing"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
	"github.com/rlx-go/rlx/native"
)

// onWebGPU reports whether a WebGPU with the least features computes a sample.
var onWebGPU = irtest.Memoize(func(op ir.Op, s ir.Sample) bool {
	g, _, err := irtest.SampleGraph(op, s)
	if err != nil {
		return false
	}
	for _, n := range g.Nodes() {
		if async.Support(n, plan.WebGPU(), "WGSL").Level == native.Unsupported {
			return false
		}
	}
	return true
})

// TestRandomPatchworksEqualReference compiles random patchworks, which in total contain every op
// that WebGPU supports, and compares kernels with the reference implementation.
func TestRandomPatchworksEqualReference(t *testing.T) {
	numbers := irtest.Corpus
	for n := range irtest.Patchworks(onWebGPU) {
		numbers = append(numbers[:len(numbers):len(numbers)], n)
	}
	for _, n := range numbers {
		checkPatchwork(t, n)
	}
}

func checkPatchwork(t *testing.T, n uint64) {
	p := irtest.RandomPatchwork(n, onWebGPU)
	s := open(t, p.Graph, plan.WebGPU())
	for name, a := range p.Inputs {
		if port, _ := p.Graph.Port(name); port.Kind != ir.InputPort && s.Plan().Lookup(name) != nil {
			if err := s.Set(name, a); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := ir.Eval(p.Graph, p.Inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Run("run", p.Inputs)
	if err != nil {
		t.Errorf("patchwork %d: %v", n, err)
		return
	}
	for i, o := range p.Graph.Outputs() {
		if o.State {
			continue
		}
		if diff := compare(got[o.Name], want[i], p.DeviceTolerance(ir.F32).Rel); diff != "" {
			t.Errorf("patchwork %d: %s: %s", n, o.Name, diff)
		}
	}
}
