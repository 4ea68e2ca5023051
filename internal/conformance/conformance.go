// Package conformance is a test suite for WebGPU devices: modules, input values and
// expected results. The expected values come from the reference implementations of ops in
// float64 ([ir.Eval]), never from a device.
//
// [Suite] returns the suite; [Write] compiles it, by the whole pipeline, and writes files that run without Go
// (js/test/conformance.mjs). Start reading at conformance.go, then ops.go, which has the most modules, and write.go.
package conformance

import (
	"fmt"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/irtest"
)

// Module is a module to compile, with its cases.
type Module struct {
	*ir.Module
	// F16 is set if it computes in f16, which needs a feature of the device.
	F16 bool
	// ScoreBytes is the target's, see [plan.Target].
	ScoreBytes int
	Cases      []Case
}

// Target returns the compilation target of the module.
func (m Module) Target() plan.Target {
	t := plan.WebGPU()
	t.F16, t.ScoreBytes = m.F16, m.ScoreBytes
	return t
}

// targetName is the name of the target among [sourceTargets], or one that none of them has.
func (m Module) targetName() string {
	switch {
	case m.ScoreBytes > 0:
		return "webgpu with bounded scores"
	case m.F16:
		return "webgpu f16"
	}
	return "webgpu"
}

// Case is a sequence of runs of one entry, from fresh state.
type Case struct {
	// Name is the subject of the test: an op, "vjp" and an op, or a model.
	Name  string
	Entry string
	// State holds the parameters and states before the first run.
	State map[string]*ir.Array
	Runs  []Run
}

// Run is one run of the entry of a case.
type Run struct {
	Inputs map[string]*ir.Array
	Want   []Result
}

// Result is the expected value of an output, parameter or state after a run.
type Result struct {
	Output string
	// About names the part of the case that the output belongs to.
	About string
	Array *ir.Array
	irtest.Tolerance
	// NonFinite is set if an operand or a result holds an infinity or NaN, which WGSL lets
	// devices assume away.
	NonFinite bool
}

// Suite returns all modules: samples and a gradient of each op, the models, and random
// patchworks.
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
