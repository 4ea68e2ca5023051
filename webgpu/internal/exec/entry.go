//go:build cgo && !js

package exec

import (
	"context"
	"fmt"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// Entry is an entry of a session's plan. Inputs and scalars keep their values between runs.
type Entry struct {
	s       *Session
	spec    *plan.Entry
	ops     []op
	inputs  map[string]*plan.Slot
	outputs map[string]*plan.Slot
	// The rows of scalars: the device's buffer and the host's copy.
	scalars *wgpu.Buffer
	rows    []byte
	stride  int
	written int // bytes of rows up to date on the device
	// The number of rows set for each scalar.
	set map[*plan.Slot]int
}

func (s *Session) newEntry(spec *plan.Entry) (*Entry, error) {
	e := &Entry{s: s, spec: spec, inputs: map[string]*plan.Slot{}, outputs: map[string]*plan.Slot{}, set: map[*plan.Slot]int{}, stride: spec.UniformStride()}
	for _, i := range spec.Inputs {
		e.inputs[s.p.Slots[i].Name] = &s.p.Slots[i]
	}
	for _, i := range spec.Scalars {
		e.inputs[s.p.Slots[i].Name] = &s.p.Slots[i]
	}
	for _, i := range spec.Outputs {
		e.outputs[s.p.Slots[i].Name] = &s.p.Slots[i]
	}
	var err error
	if e.stride > 0 {
		e.rows = make([]byte, maxSteps*e.stride)
		if e.scalars, err = s.b.buffer(spec.Name+" scalars", len(e.rows), wgpu.BufferUsageUniform|wgpu.BufferUsageCopyDst); err != nil {
			return nil, err
		}
	}
	e.ops, err = s.b.ops(spec.Steps, e.scalars, e.stride)
	return e, err
}

// Set sets an input or a scalar for the following runs. A scalar may be a vector with one
// element for each step of a run. Errors are of kind [ir.ErrName], [ir.ErrDType],
// [ir.ErrShape], or [ir.ErrIndex] for an index out of bounds.
func (e *Entry) Set(ctx context.Context, name string, t Tensor) error {
	if err := e.s.lock(ctx, e.spec.Name); err != nil {
		return err
	}
	defer e.s.unlock()
	slot := e.inputs[name]
	if slot == nil {
		return &Error{Kind: ir.ErrName, Op: e.spec.Name, Name: name, Msg: fmt.Sprintf("unknown input %q: have %s", name, e.inputNames())}
	}
	if slot.Role == plan.Scalar {
		return e.setScalar(slot, t)
	}
	if err := check(e.spec.Name, slot, t, slot.Dims); err != nil {
		return err
	}
	if err := e.s.upload(e.spec.Name, slot, t); err != nil {
		return err
	}
	e.s.given[slot] = true
	return nil
}

func (e *Entry) inputNames() string {
	return list(func(yield func(string) bool) {
		for name := range e.inputs {
			if !yield(name) {
				return
			}
		}
	})
}

// setScalar writes a scalar to all rows, or a vector to one row for each element.
func (e *Entry) setScalar(slot *plan.Slot, t Tensor) error {
	dims, rows := slot.Dims, maxSteps
	if len(t.Dims) == 1 {
		dims, rows = t.Dims, t.Dims[0]
		if rows < 1 || rows > maxSteps {
			return &Error{Kind: ir.ErrShape, Op: e.spec.Name, Name: slot.Name, Msg: fmt.Sprintf("%s has values for %d steps; a run has 1 to %d", slot.Name, rows, maxSteps)}
		}
	}
	if err := check(e.spec.Name, slot, t, dims); err != nil {
		return err
	}
	data := t.Data
	if size := slot.DType.Size(); size < plan.WordBytes { // a bool is a word on the device
		data = make([]byte, len(t.Data)*plan.WordBytes)
		for i, b := range t.Data {
			data[i*plan.WordBytes] = b
		}
	}
	for row := range rows {
		at := row*e.stride + slot.Offset
		from := 0
		if len(t.Dims) == 1 {
			from = row * plan.WordBytes
		}
		copy(e.rows[at:at+plan.WordBytes], data[from:])
	}
	e.set[slot] = rows
	e.written = 0
	return nil
}

// Run runs a number of steps in one submission and reads the named outputs, parameters and
// states after it; the reading is nil without names. It waits only if [InFlight]
// submissions are in flight.
func (e *Entry) Run(ctx context.Context, steps int, read ...string) (*Reading, error) {
	s := e.s
	if err := s.lock(ctx, e.spec.Name); err != nil {
		return nil, err
	}
	defer s.unlock()
	if steps < 1 || steps > maxSteps {
		return nil, &Error{Kind: ErrLimit, Op: e.spec.Name, Msg: fmt.Sprintf("steps is %d; it must be from 1 to %d", steps, maxSteps)}
	}
	if err := e.complete(steps); err != nil {
		return nil, err
	}
	sources, err := s.sources(e.spec.Name, e, read)
	if err != nil {
		return nil, err
	}
	if n := steps * e.stride; e.written < n {
		if err := s.fail(fromBinding(ErrGPU, e.spec.Name, s.d.queue.WriteBuffer(e.scalars, 0, e.rows[:n]))); err != nil {
			return nil, err
		}
		e.written = n
	}
	s.steps += steps
	r, err := s.submit(ctx, e.spec.Name, sources, func() error {
		for k := range steps {
			if err := s.rec.record(e.ops, uint32(k*e.stride)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.steps -= steps
		return nil, err
	}
	s.last = e
	return r, nil
}

// complete checks that all inputs are set.
func (e *Entry) complete(steps int) error {
	missing := func(slot *plan.Slot, msg string) error {
		return &Error{Kind: ir.ErrName, Op: e.spec.Name, Name: slot.Name, Msg: fmt.Sprintf("input %q %s", slot.Name, msg)}
	}
	for _, i := range e.spec.Inputs {
		if slot := &e.s.p.Slots[i]; !e.s.given[slot] {
			return missing(slot, "is missing")
		}
	}
	for _, i := range e.spec.Scalars {
		slot := &e.s.p.Slots[i]
		switch n := e.set[slot]; {
		case n == 0:
			return missing(slot, "is missing")
		case n < steps:
			return missing(slot, fmt.Sprintf("is set for %d of %d steps", n, steps))
		}
	}
	return nil
}
