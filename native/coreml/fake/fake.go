// Package fake stands in for Core ML in tests: it reads model packages back and
// computes what they say on the CPU, by package read. It is as strict about what it
// is given as the package is; it says nothing of what Apple's compiler accepts.
package fake

import (
	"context"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/coreml"
	"github.com/rlx-go/rlx/native/coreml/mil"
	"github.com/rlx-go/rlx/native/coreml/read"
	"github.com/rlx-go/rlx/native/cpu"
)

// Runtime is a [coreml.Runtime] on the CPU.
type Runtime struct {
	// Open is how many functions are loaded and not closed.
	Open int
}

// Load reads a package and compiles a function of it.
func (r *Runtime) Load(dir, function string, _ coreml.Units) (coreml.Loaded, error) {
	p, err := mil.Read(dir)
	if err != nil {
		return nil, err
	}
	f := p.Program.Function(function)
	if f == nil {
		return nil, fmt.Errorf("no function %q", function)
	}
	g, err := read.Graph(f)
	if err != nil {
		return nil, err
	}
	m, err := ir.NewModule("model", ir.Entry{Name: function, Graph: g})
	if err != nil {
		return nil, err
	}
	program, err := cpu.Backend().Compile(context.Background(), m, native.Options{})
	if err != nil {
		return nil, err
	}
	r.Open++
	return &model{runtime: r, function: f, program: program}, nil
}

// model is a loaded function.
type model struct {
	runtime  *Runtime
	function *mil.Function
	program  native.Program
}

// Predict runs the function, refusing what the package does not declare.
func (m *model) Predict(in map[string]native.Tensor) (map[string]native.Tensor, error) {
	for _, declared := range m.function.Inputs {
		t, given := in[declared.Name]
		switch {
		case declared.State:
		case !given:
			return nil, fmt.Errorf("no value for input %q", declared.Name)
		case !slices.Equal(t.Dims, declared.Type.Dims):
			return nil, fmt.Errorf("input %q is %s, declared as %s", declared.Name, t, declared.Type)
		}
	}
	ctx := context.Background()
	run, err := m.program.Run(ctx, m.function.Name, in)
	if err != nil {
		return nil, err
	}
	return run.Wait(ctx)
}

// Close gives back the memory.
func (m *model) Close() error {
	m.runtime.Open--
	return m.program.Close()
}
