package rlx

import (
	"context"
	"sync/atomic"

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
// Parameters and states are zeros at first. All dimensions must be constant: what
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
	m, err = o.Precision.apply(m)
	if err != nil {
		return nil, err
	}
	p, err := s.backend.Compile(ctx, m, native.Options{TF32: o.Precision == TF32, Tune: o.Tune, Memory: o.Memory})
	if err != nil {
		return nil, err
	}
	return &Program{Program: p}, nil
}

// Program is a compiled module with its memory.
type Program struct {
	native.Program
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

// Load sets parameters and states to saved values; those that are not among
// them stay as they are. Where one is unknown or does not fit, none is set.
func (p *Program) Load(ctx context.Context, values map[string]Tensor) error {
	slots := p.Persistent()
	for name, t := range values {
		if err := acceptSaved(slots, name, t); err != nil {
			return err
		}
	}
	return p.SetAll(ctx, values)
}

func acceptSaved(slots []native.Slot, name string, t Tensor) error {
	for _, s := range slots {
		if s.Name == name {
			return s.Accept(t)
		}
	}
	return ir.Errorf(ir.ErrName, "there is no parameter or state %q", name)
}
