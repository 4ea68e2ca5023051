package conformance

import (
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// patchworkModules returns random patchworks that together cover every op of WebGPU, and
// those that once failed.
func patchworkModules() ([]Module, error) {
	accepted := irtest.Memoize(func(op ir.Op, s ir.Sample) bool {
		ok, f16, _ := computable(op, s)
		return ok && !f16
	})
	numbers := slices.Clone(irtest.Corpus)
	for n := range irtest.Patchworks(accepted) {
		numbers = append(numbers, n)
	}
	var all []Module
	for _, n := range numbers {
		m, err := patchworkModule(n, irtest.RandomPatchwork(n, accepted))
		if err != nil {
			return nil, fmt.Errorf("patchwork %d: %w", n, err)
		}
		all = append(all, *m)
	}
	return all, nil
}

// patchworkModule runs a patchwork once.
func patchworkModule(n uint64, p irtest.Patchwork) (*Module, error) {
	run := Run{Inputs: map[string]*ir.Array{}}
	c := Case{Name: fmt.Sprint("patchwork ", n), Entry: "run", State: map[string]*ir.Array{}}
	for _, port := range p.Graph.Ports() {
		if port.Kind == ir.InputPort {
			run.Inputs[port.Name] = p.Inputs[port.Name]
		} else {
			c.State[port.Name] = p.Inputs[port.Name]
		}
	}
	want, err := ir.Eval(p.Graph, p.Inputs, ir.EvalOptions{Reference: true})
	if err != nil {
		return nil, err
	}
	for i, o := range p.Graph.Outputs() {
		run.Want = append(run.Want, Result{Output: o.Name, About: c.Name, Array: want[i], Tolerance: p.DeviceTolerance(want[i].DType)})
	}
	c.Runs = []Run{run}
	module, err := ir.NewModule(c.Name, ir.Entry{Name: c.Entry, Graph: p.Graph})
	return &Module{Module: module, Cases: []Case{c}}, err
}
