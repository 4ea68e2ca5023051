package software

import (
	"context"
	"fmt"
	"slices"

	"github.com/rlx-go/rlx/internal/coreml/driver"
	"github.com/rlx-go/rlx/internal/coreml/mil"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cpu"
)

// Runtime is a [driver.Runtime] on the CPU.
type Runtime struct {
	// Open is the number of open functions.
	Open int
	// Given counts how often each input and each state of a function was set, by name.
	Given map[string]int
}

func (r *Runtime) give(name string) {
	if r.Given == nil {
		r.Given = map[string]int{}
	}
	r.Given[name]++
}

// System reports a software device.
func (r *Runtime) System() (driver.System, error) {
	return driver.System{Description: "Core ML in Go", Software: true}, nil
}

// Load reads a package and compiles a function of it.
func (r *Runtime) Load(dir, function string, _ driver.Units) (driver.Loaded, error) {
	p, err := mil.Read(dir)
	if err != nil {
		return nil, err
	}
	f := p.Program.Function(function)
	if f == nil {
		return nil, ir.Errorf(ir.ErrName, "unknown function %q", function)
	}
	g, err := Graph(f)
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

// Predict runs the function, refusing what the package does not declare and memory that
// it does not have.
func (m *model) Predict(in, out map[string]native.Tensor) error {
	for _, declared := range m.function.Inputs {
		t, given := in[declared.Name]
		switch {
		case declared.State:
		case !given:
			return fmt.Errorf("input %q is missing", declared.Name)
		case !slices.Equal(t.Dims, declared.Type.Dims):
			return fmt.Errorf("input %q is %s; it must be %s", declared.Name, t, declared.Type)
		default:
			m.runtime.give(declared.Name)
		}
	}
	for _, name := range m.function.Outputs {
		if _, given := out[name]; !given {
			return fmt.Errorf("output %q is missing", name)
		}
	}
	ctx := context.Background()
	bound, err := m.program.Bind(ctx, m.function.Name, in, out)
	if err == nil {
		err = bound.Start(ctx)
	}
	if err == nil {
		err = bound.Wait(ctx)
	}
	return err
}

// SetState sets a state.
func (m *model) SetState(name string, t native.Tensor) error {
	m.runtime.give(name)
	return m.program.Set(context.Background(), name, t)
}

// State reads the values of a state.
func (m *model) State(name string, t native.Tensor) error {
	got, err := m.program.Get(context.Background(), name)
	copy(t.Data, got.Data)
	return err
}

// Plan reports that all operations run on the CPU, with equal shares of the cost.
func (m *model) Plan() ([]driver.Placement, error) {
	var run float64
	for _, op := range m.function.Ops {
		if op.Value == nil {
			run++
		}
	}
	out := make([]driver.Placement, len(m.function.Ops))
	for i, op := range m.function.Ops {
		out[i] = driver.Placement{Kind: op.Kind, Name: op.Name, Cost: -1}
		if op.Value == nil {
			out[i].Preferred, out[i].Supported, out[i].Cost = driver.CPU, []driver.Processor{driver.CPU}, 1/run
		}
	}
	return out, nil
}

// Close frees the memory.
func (m *model) Close() error {
	m.runtime.Open--
	return m.program.Close(context.Background())
}
