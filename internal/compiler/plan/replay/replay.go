// Package replay is a plain executor of plans: it runs the steps of an entry one by one
// on a [Device], as in
//
//	s, err := replay.New(p, device)
//	out, err := s.Run("step", map[string]*ir.Array{"x": batch})
//
// Its input is a plan, its output the entry's results. The simulator (package plansim)
// is a Device; GPUs, whose commands are recorded in advance, have executors of their own.
package replay

import (
	"encoding/binary"
	"fmt"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/loop"
)

// Device has the memory of a plan, buffers by their number in it, and its
// kernels. Calls take effect in the order in which they are made.
type Device interface {
	// Write copies data to an offset of a buffer.
	Write(buffer, offset int, data []byte) error
	// Read fills data from an offset of a buffer, after all earlier calls have
	// completed.
	Read(data []byte, buffer, offset int) error
	// Copy copies from buffer to buffer.
	Copy(c *plan.Copy) error
	// Dispatch runs a kernel. scalars is the entry's row of scalars, whose prefix
	// the kernel reads; counters are the counters of the enclosing repeats that the
	// kernel reads, outermost first.
	Dispatch(d *plan.Dispatch, scalars []byte, counters []int) error
}

// Program is a plan on a device.
type Program struct {
	plan   *plan.Plan
	device Device
}

// New returns a program of a valid plan whose buffers and kernels the device
// has, and writes the constants.
func New(p *plan.Plan, d Device) (*Program, error) {
	s := &Program{plan: p, device: d}
	for _, c := range p.Constants {
		if err := d.Write(c.Buffer, c.Offset, c.Data); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Plan returns the plan that the program runs.
func (s *Program) Plan() *plan.Plan { return s.plan }

// Set writes a parameter or a state.
func (s *Program) Set(name string, a *ir.Array) error {
	slot, err := s.lookup(name)
	if err != nil {
		return err
	}
	return s.write(slot, a)
}

// Get reads a parameter or a state.
func (s *Program) Get(name string) (*ir.Array, error) {
	slot, err := s.lookup(name)
	if err != nil {
		return nil, err
	}
	return s.read(slot)
}

func (s *Program) lookup(name string) (*plan.Slot, error) {
	if slot := s.plan.Lookup(name); slot != nil {
		return slot, nil
	}
	return nil, ir.Errorf(ir.ErrName, "unknown parameter or state %q", name)
}

// Run runs an entry and returns its outputs by name. Inputs that are not given
// keep their last value, zero at first; scalars that are not given are zero. If the
// device finds an index out of range, Run returns an error of kind [ir.ErrIndex] and
// the states are unchanged.
func (s *Program) Run(entry string, inputs map[string]*ir.Array) (map[string]*ir.Array, error) {
	e, err := s.entry(entry)
	if err != nil {
		return nil, err
	}
	for _, i := range e.Inputs {
		if a, ok := inputs[s.plan.Slots[i].Name]; ok {
			if err := s.write(&s.plan.Slots[i], a); err != nil {
				return nil, err
			}
		}
	}
	scalars := make([]byte, e.UniformBytes)
	for _, i := range e.Scalars {
		if a, ok := inputs[s.plan.Slots[i].Name]; ok {
			copy(scalars[s.plan.Slots[i].Offset:], loop.DeviceBytes(a.DType, a.Bytes()))
		}
	}
	if err := s.steps(e.Steps, scalars, nil); err != nil {
		return nil, err
	}
	if err := s.status(); err != nil {
		return nil, err
	}
	out := map[string]*ir.Array{}
	for _, i := range e.Outputs {
		slot := &s.plan.Slots[i]
		if out[slot.Name], err = s.read(slot); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Start runs the steps of an entry with the last inputs and scalars of zero, without
// waiting for completion.
func (s *Program) Start(entry string) error {
	e, err := s.entry(entry)
	if err != nil {
		return err
	}
	return s.steps(e.Steps, make([]byte, e.UniformBytes), nil)
}

func (s *Program) entry(name string) (*plan.Entry, error) {
	if e := s.plan.Entry(name); e != nil {
		return e, nil
	}
	return nil, ir.Errorf(ir.ErrName, "unknown entry %q", name)
}

func (s *Program) steps(steps []plan.Step, scalars []byte, counters []int) error {
	for _, step := range steps {
		if err := s.step(step, scalars, counters); err != nil {
			return err
		}
	}
	return nil
}

func (s *Program) step(step plan.Step, scalars []byte, counters []int) error {
	switch step := step.(type) {
	case *plan.Dispatch:
		if runs, err := s.runs(step.Grid); err != nil || !runs {
			return err
		}
		n := min(s.plan.Kernels[step.Kernel].Counters, len(counters))
		return s.device.Dispatch(step, scalars, counters[:n])
	case *plan.Call:
		return s.call(step)
	case *plan.Copy:
		return s.device.Copy(step)
	case *plan.Repeat:
		for i := range step.Count {
			if err := s.steps(step.Iteration(i), scalars, append(counters[:len(counters):len(counters)], i)); err != nil {
				return err
			}
		}
		return nil
	case *plan.While:
		return s.while(step, scalars, counters)
	}
	return ir.Errorf(ir.ErrUnsupported, "unknown step type %T", step)
}

// while runs iterations until the word at w.Going is 0.
func (s *Program) while(w *plan.While, scalars []byte, counters []int) error {
	for going := true; going; {
		err := s.steps(w.Steps, scalars, append(counters[:len(counters):len(counters)], 0))
		if err == nil {
			going, err = s.runs(&w.Condition)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// call runs the reference implementation of a routine on the host.
func (s *Program) call(c *plan.Call) error {
	r := s.plan.Routines[c.Routine]
	memory := make([][]byte, len(c.Bindings))
	for i, b := range c.Bindings {
		memory[i] = make([]byte, b.Bytes)
		if err := s.device.Read(memory[i], b.Buffer, b.Offset); err != nil {
			return err
		}
	}
	r.Reference(memory)
	for i, a := range r.Arrays() {
		if !a.Written {
			continue
		}
		if err := s.device.Write(c.Bindings[i].Buffer, c.Bindings[i].Offset, memory[i]); err != nil {
			return err
		}
	}
	return nil
}

// runs reports whether a grid in memory is not zero. It is true for a nil grid, that of
// a direct dispatch.
func (s *Program) runs(grid *plan.GridAddress) (bool, error) {
	if grid == nil {
		return true, nil
	}
	word := make([]byte, plan.WordBytes)
	err := s.device.Read(word, grid.Buffer, grid.Offset)
	return binary.LittleEndian.Uint32(word) != 0, err
}

// status reports and clears the status words.
func (s *Program) status() error {
	st := s.plan.Status
	if st == nil {
		return nil
	}
	words := make([]byte, plan.StatusBytes)
	if err := s.device.Read(words, st.Buffer, st.Offset); err != nil {
		return err
	}
	code := binary.LittleEndian.Uint32(words)
	if code == 0 {
		return nil
	}
	clear(words)
	if err := s.device.Write(st.Buffer, st.Offset, words); err != nil {
		return err
	}
	for _, c := range st.Codes {
		if c.Code == code {
			return ir.Errorf(ir.ErrIndex, "%s: %s", c.Node, c.Message)
		}
	}
	return fmt.Errorf("replay: unknown status code %d", code)
}

func (s *Program) write(slot *plan.Slot, a *ir.Array) error {
	if want := slotType(slot); !a.Type().Equal(want) {
		return ir.Shapef("%q is %s; it must be %s", slot.Name, a.Type(), want)
	}
	return s.device.Write(slot.Buffer, slot.Offset, loop.DeviceBytes(a.DType, a.Bytes()))
}

func (s *Program) read(slot *plan.Slot) (*ir.Array, error) {
	data := make([]byte, slot.Bytes)
	if err := s.device.Read(data, slot.Buffer, slot.Offset); err != nil {
		return nil, err
	}
	t := slotType(slot)
	data = loop.HostBytes(t.DType, data)
	bytes, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	return ir.ArrayOf(t, data[:bytes])
}

func slotType(s *plan.Slot) ir.Type { return ir.Type{DType: s.DType, Shape: ir.Dims(s.Dims...)} }
