//go:build cgo && !js

package exec

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// upload writes a checked tensor to its slot.
func (s *Session) upload(op string, slot *plan.Slot, t Tensor) error {
	if slot.Bytes == 0 {
		return nil
	}
	data := toDevice(slot, t, &s.scratch)
	return s.fail(fromBinding(ErrGPU, op, s.d.queue.WriteBuffer(s.b.buffers[slot.Buffer], uint64(slot.Offset), data)))
}

// Write sets a parameter or a state. Errors are of kind [ir.ErrName],
// [ir.ErrDType] or [ir.ErrShape].
func (s *Session) Write(ctx context.Context, name string, t Tensor) error {
	if err := s.lock(ctx, "write"); err != nil {
		return err
	}
	defer s.unlock()
	slot, err := s.accept("write", name, t)
	if err != nil {
		return err
	}
	return s.upload("write", slot, t)
}

// accept returns the parameter or state of that name, which t can be a value of.
func (s *Session) accept(op, name string, t Tensor) (*plan.Slot, error) {
	slot := s.persistent[name]
	if slot == nil {
		return nil, &Error{Kind: ir.ErrName, Op: op, Name: name, Msg: fmt.Sprintf("unknown parameter or state %q: have %s", name, list(maps.Keys(s.persistent)))}
	}
	return slot, check(op, slot, t, slot.Dims)
}

// Read returns the value of an output of the last run, of a parameter or of a
// state, as of now. It waits for the device.
func (s *Session) Read(ctx context.Context, name string) (Tensor, error) {
	if err := s.lock(ctx, "read"); err != nil {
		return Tensor{}, err
	}
	defer s.unlock()
	values, err := s.read(ctx, name)
	return values[name], err
}

// read is Read of several values for those who hold the device.
func (s *Session) read(ctx context.Context, names ...string) (map[string]Tensor, error) {
	sources, err := s.sources("read", s.last, names)
	if err != nil || len(sources) == 0 {
		return map[string]Tensor{}, err
	}
	r, err := s.submit(ctx, "read", sources, nil)
	if err != nil {
		return nil, err
	}
	return r.collect(ctx)
}

// Save returns all parameters and states. What a lost device costs is counted
// from here.
func (s *Session) Save(ctx context.Context) (map[string]Tensor, error) {
	if err := s.lock(ctx, "read"); err != nil {
		return nil, err
	}
	defer s.unlock()
	values, err := s.read(ctx, slices.Sorted(maps.Keys(s.persistent))...)
	if err == nil {
		s.savedAt = s.steps
	}
	return values, err
}

// Load sets parameters and states to values from Save; others do not change. It writes nothing if
// it refuses one of them.
func (s *Session) Load(ctx context.Context, values map[string]Tensor) error {
	if err := s.lock(ctx, "load"); err != nil {
		return err
	}
	defer s.unlock()
	names := slices.Sorted(maps.Keys(values))
	for _, name := range names {
		if _, err := s.accept("load", name, values[name]); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := s.upload("load", s.persistent[name], values[name]); err != nil {
			return err
		}
	}
	return nil
}

// sources finds the slots of readable values: persistent ones, and outputs of
// an entry.
func (s *Session) sources(op string, e *Entry, names []string) ([]*plan.Slot, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out := make([]*plan.Slot, len(names))
	for i, name := range names {
		out[i] = s.persistent[name]
		if out[i] == nil && e != nil {
			out[i] = e.outputs[name]
		}
		if out[i] == nil {
			return nil, &Error{Kind: ir.ErrName, Op: op, Name: name, Msg: fmt.Sprintf("unknown value %q: it must be a parameter, a state or an output of the entry that ran last", name)}
		}
	}
	return out, nil
}
