// Package conformance is a suite of tests that any WebGPU device can be put to:
// modules, values to run them with, and what has to come out. The values come
// from the reference meaning of graphs in float64 ([ir.Eval]) and never from a
// device, so whatever runs the suite is judged by the same numbers.
//
// [Suite] makes it, [Write] compiles it and writes it as files that need no Go
// to be run (js/test/conformance.mjs).
package conformance

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// Module is a module to compile and what to do with it.
type Module struct {
	*ir.Module
	// F16 says that it computes in f16, for which a device needs a feature.
	F16 bool
	// ScoreBytes is that of the target: see [plan.Target].
	ScoreBytes int
	Cases      []Case
}

// Target is what the module is compiled for.
func (m Module) Target() plan.Target {
	t := plan.WebGPU()
	t.F16, t.ScoreBytes = m.F16, m.ScoreBytes
	return t
}

// Case runs one entry, on fresh state.
type Case struct {
	// Name is what is tested: an op, "vjp" and an op, or a model.
	Name  string
	Entry string
	// State are the parameters and states before the first run.
	State map[string]*ir.Array
	Runs  []Run
}

// Run is one run of the entry of a case.
type Run struct {
	Inputs map[string]*ir.Array
	Want   []Result
}

// Result is what an output, parameter or state has to be after a run.
type Result struct {
	Output string
	// About says which of the case's parts the output belongs to.
	About string
	Array *ir.Array
	irtest.Tolerance
	// NonFinite says that an operand or a result holds an infinity or NaN,
	// which WGSL lets a device assume does not occur.
	NonFinite bool
}

// Suite returns all modules: for each op its samples, some side by side, and a
// gradient, the models, and random patchworks.
func Suite() ([]Module, error) {
	var all []Module
	for _, op := range ir.Ops() {
		modules, err := opModules(op)
		if err != nil {
			return nil, fmt.Errorf("conformance: %s: %w", op, err)
		}
		all = append(all, modules...)
	}
	for _, model := range models {
		m, err := model.module()
		if err != nil {
			return nil, fmt.Errorf("conformance: %s: %w", model.name, err)
		}
		all = append(all, *m)
	}
	random, err := patchworkModules()
	if err != nil {
		return nil, fmt.Errorf("conformance: %w", err)
	}
	all = append(all, random...)
	m, err := derivativesModule()
	if err != nil {
		return nil, fmt.Errorf("conformance: derivatives: %w", err)
	}
	return append(all, *m), nil
}
