package rlx

import (
	"context"
	"sync/atomic"

	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Inputs are tensors by the names of an entry's inputs.
type Inputs = map[string]native.Tensor

// Outputs are tensors by the names of an entry's outputs.
type Outputs = map[string]native.Tensor

// Session is a device in use.
type Session struct {
	backend native.Backend
	info    native.Info
}

// Open returns a session on a device; "" stands for the fastest there is. The
// errors are those of [Available].
func Open(device string) (*Session, error) {
	if device == "" {
		device = Fastest().Name
	}
	b, err := native.Lookup(device)
	if err != nil {
		return nil, err
	}
	if err := b.Probe(); err != nil {
		return nil, err
	}
	return &Session{b, b.Info()}, nil
}

// Device describes the session's device.
func (s *Session) Device() Device { return Device{Name: s.backend.Name(), Info: s.info} }

// Compile makes the entries of a module ready to run, with memory of their own.
// States are zeros at first; parameters have no value, and an entry that reads one before
// it is given is refused: see [Program.Run]. All dimensions must be constant: what
// [ir.Graph.Bind] makes of a graph for each size, as for each size of a batch, is an
// entry of its own, and shares the parameters.
func (s *Session) Compile(ctx context.Context, m *ir.Module) (*Program, error) {
	return s.CompileWith(ctx, m, CompileOptions{})
}

// CompileOptions say how [Session.CompileWith] compiles.
type CompileOptions struct {
	// Precision is that of products.
	Precision Precision
	// Tune has the ways in which kernels can be scheduled measured on the device, where
	// that is a CUDA GPU, and takes the fastest. What was found is kept in the user's
	// cache folder, so that only the first compilation takes longer, by seconds.
	Tune bool
	// Memory is how many bytes the program may hold on the device; 0 stands for the
	// environment variable RLX_MEMORY ("8GiB"), or, without it, for what the device has:
	// see [native.Options]. For a module that needs more the error is a
	// [*native.MemoryError], and nothing was allocated.
	Memory int64
}

// CompileWith is [Session.Compile] with options. The error is of kind
// [ir.ErrAttr] for an option out of its domain.
func (s *Session) CompileWith(ctx context.Context, m *ir.Module, o CompileOptions) (*Program, error) {
	if m == nil {
		return nil, ir.Errorf(ir.ErrGraph, "no module given")
	}
	m, err := ir.NewModule(m.Name, m.Entries...) // one made by hand is checked here
	if err != nil {
		return nil, err
	}
	if err := optim.Check(m); err != nil {
		return nil, err
	}
	m, err = o.Precision.apply(m)
	if err != nil {
		return nil, err
	}
	p, err := s.backend.Compile(ctx, m, native.Options{TF32: o.Precision == TF32, Tune: o.Tune, Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	return &Program{Program: p, unset: unsetParams(m)}, nil
}

// Program is a compiled module with its memory.
type Program struct {
	native.Program
	unset   *unset
	trainer atomic.Pointer[Trainer] // the one that counts its steps
}

// Call runs an entry and waits for its outputs.
func (p *Program) Call(ctx context.Context, entry string, in Inputs) (Outputs, error) {
	r, err := p.Run(ctx, entry, in)
	if err != nil {
		return nil, err
	}
	return r.Wait(ctx)
}

// Save returns the values of all parameters and states at one time, between two runs.
func (p *Program) Save(ctx context.Context) (map[string]Tensor, error) { return p.GetAll(ctx) }

// LoadOptions say what [Program.LoadWith] lets pass.
type LoadOptions struct {
	// AllowMissing leaves parameters as they are that the values lack.
	AllowMissing bool
	// AllowExtra passes over values that are no parameter or state of the program.
	AllowExtra bool
}

// Load sets parameters and states to saved values. The values hold every parameter, and
// nothing that the program has not; states that they lack stay as they are. Otherwise the
// error is a [*CheckpointError], and nothing is set.
func (p *Program) Load(ctx context.Context, values map[string]Tensor) error {
	return p.LoadWith(ctx, values, LoadOptions{})
}

// LoadWith is [Program.Load] with options.
func (p *Program) LoadWith(ctx context.Context, values map[string]Tensor, o LoadOptions) error {
	e, fitting := &CheckpointError{}, map[string]Tensor{}
	for _, s := range p.Persistent() {
		x, given := values[s.Name]
		if !given {
			if s.Role == native.Param && !o.AllowMissing {
				e.Missing = append(e.Missing, s.Name)
			}
			continue
		}
		fitting[s.Name] = x
		if err := s.Accept(x); err != nil && e.Err == nil {
			e.Err = err
		}
	}
	for name := range values {
		if _, known := fitting[name]; !known && !o.AllowExtra {
			e.Unknown = append(e.Unknown, name)
		}
	}
	if err := e.found(); err != nil {
		return err
	}
	return p.SetAll(ctx, fitting)
}
