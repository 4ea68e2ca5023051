package rlx

import (
	"context"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Tensor is a value in host memory.
type Tensor = native.Tensor

// Inputs are tensors by the names of an entry's inputs.
type Inputs = map[string]native.Tensor

// Outputs are tensors by the names of an entry's outputs.
type Outputs = map[string]native.Tensor

// Float32s returns a tensor of f32 in the memory of x; without dims, a vector
// of all elements.
func Float32s(x []float32, dims ...int) Tensor { return native.Float32s(x, dims...) }

// Int32s returns a tensor of i32 in the memory of x; without dims, a vector of
// all elements.
func Int32s(x []int32, dims ...int) Tensor { return native.Int32s(x, dims...) }

// Float32 returns an f32 of rank 0.
func Float32(x float32) Tensor { return native.Float32(x) }

// Uint32 returns a u32 of rank 0.
func Uint32(x uint32) Tensor { return native.Uint32(x) }

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
// Parameters and states are zeros at first. All dimensions must be constant:
// see [ir.Graph.Bind].
func (s *Session) Compile(ctx context.Context, m *ir.Module) (*Program, error) {
	p, err := s.backend.Compile(ctx, m, native.Options{})
	if err != nil {
		return nil, err
	}
	return &Program{p}, nil
}

// Program is a compiled module with its memory.
type Program struct{ native.Program }

// Call runs an entry and waits for its outputs.
func (p *Program) Call(ctx context.Context, entry string, in Inputs) (Outputs, error) {
	r, err := p.Run(ctx, entry, in)
	if err != nil {
		return nil, err
	}
	return r.Wait(ctx)
}

// Save returns the values of all parameters and states.
func (p *Program) Save(ctx context.Context) (map[string]Tensor, error) {
	out := map[string]Tensor{}
	for _, s := range p.Persistent() {
		t, err := p.Get(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		out[s.Name] = t
	}
	return out, nil
}

// Load sets parameters and states to saved values; those that are not among
// them stay as they are. Where one is unknown or does not fit, none is set.
func (p *Program) Load(values map[string]Tensor) error {
	slots := p.Persistent()
	for name, t := range values {
		if err := acceptSaved(slots, name, t); err != nil {
			return err
		}
	}
	for name, t := range values {
		if err := p.Set(name, t); err != nil {
			return err
		}
	}
	return nil
}

func acceptSaved(slots []native.Slot, name string, t Tensor) error {
	for _, s := range slots {
		if s.Name == name {
			return s.Accept(t)
		}
	}
	return ir.Errorf(ir.ErrName, "there is no parameter or state %q", name)
}
