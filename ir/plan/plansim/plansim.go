// Package plansim runs whole plans in the simulator of the loop IR: all buffers
// with what shares them, all kernels with every access watched. It is the
// device on which plans are checked where there is no GPU.
package plansim

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel"
	"github.com/rlx-go/rlx/ir/kernel/sim"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/ir/scalar"
)

// Session is a plan with its memory.
type Session struct {
	plan    *plan.Plan
	kernels []*kernel.Kernel
	buffers [][]byte
	// Options are handed to the simulator for every kernel.
	Options sim.Options
}

// text stands in for a dialect: the kernel's own text form.
type text struct{}

func (text) Dialect() dtype.Dialect                 { return dtype.WGSL }
func (text) Print(k *kernel.Kernel) (string, error) { return k.String(), nil }

// Open compiles a module for a device with the given target's limits and gives
// it memory. Temporary memory starts as rubbish, since plans must not rely on
// what is in it.
func Open(m *ir.Module, t plan.Target) (*Session, error) {
	p, kernels, err := plan.CompileKernels(m, t, text{})
	if err != nil {
		return nil, err
	}
	s := &Session{plan: p, kernels: kernels}
	for _, b := range p.Buffers {
		data := make([]byte, b.Bytes)
		if b.Kind == plan.TempBuffer {
			for i := range data {
				data[i] = 0xff
			}
		}
		s.buffers = append(s.buffers, data)
	}
	for _, c := range p.Constants {
		copy(s.buffers[c.Buffer][c.Offset:], c.Data)
	}
	return s, nil
}

// Plan returns the plan that the session runs.
func (s *Session) Plan() *plan.Plan { return s.plan }

// Set writes a parameter or a state.
func (s *Session) Set(name string, a *ir.Array) error {
	slot := s.plan.Lookup(name)
	if slot == nil {
		return ir.Errorf(ir.ErrName, "there is no parameter or state %q", name)
	}
	copy(s.buffers[slot.Buffer][slot.Offset:], words(a))
	return nil
}

// Get reads a parameter or a state.
func (s *Session) Get(name string) (*ir.Array, error) {
	slot := s.plan.Lookup(name)
	if slot == nil {
		return nil, ir.Errorf(ir.ErrName, "there is no parameter or state %q", name)
	}
	return s.read(slot)
}

// Run runs an entry and returns its outputs by name. Inputs and scalars that
// are not given keep the value of the run before, zero at first.
func (s *Session) Run(entry string, inputs map[string]*ir.Array) (map[string]*ir.Array, error) {
	e := s.plan.Entry(entry)
	if e == nil {
		return nil, ir.Errorf(ir.ErrName, "there is no entry %q", entry)
	}
	for _, i := range e.Inputs {
		slot := &s.plan.Slots[i]
		if a, ok := inputs[slot.Name]; ok {
			copy(s.buffers[slot.Buffer][slot.Offset:], words(a))
		}
	}
	scalars := map[int]scalar.Value{}
	for _, i := range e.Scalars {
		slot := &s.plan.Slots[i]
		if a, ok := inputs[slot.Name]; ok {
			scalars[slot.Offset/plan.WordBytes] = value(a)
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
		a, err := s.read(&s.plan.Slots[i])
		if err != nil {
			return nil, err
		}
		out[s.plan.Slots[i].Name] = a
	}
	return out, nil
}

func (s *Session) steps(steps []plan.Step, scalars map[int]scalar.Value, counters []int) error {
	for _, step := range steps {
		switch step := step.(type) {
		case *plan.Dispatch:
			if err := s.dispatch(step, scalars, counters); err != nil {
				return err
			}
		case *plan.Repeat:
			for i := range step.Count {
				if err := s.steps(step.Steps, scalars, append(counters[:len(counters):len(counters)], i)); err != nil {
					return err
				}
			}
		case *plan.Copy:
			copy(s.buffers[step.Dst][step.DstOffset:][:step.Bytes], s.buffers[step.Src][step.SrcOffset:])
		}
	}
	return nil
}

func (s *Session) dispatch(d *plan.Dispatch, scalars map[int]scalar.Value, counters []int) error {
	k := s.kernels[d.Kernel]
	l := sim.Launch{Counters: counters[:min(k.Counters, len(counters))]}
	for _, b := range d.Bindings {
		l.Arrays = append(l.Arrays, sim.Binding{Buffer: s.buffers[b.Buffer], Offset: b.Offset, Bytes: b.Bytes})
	}
	for i := range k.Scalars {
		l.Scalars = append(l.Scalars, scalars[i])
	}
	return sim.Run(k, l, s.Options)
}

// status reports and clears the status words.
func (s *Session) status() error {
	st := s.plan.Status
	if st == nil {
		return nil
	}
	word := s.buffers[st.Buffer][st.Offset:][:plan.StatusBytes]
	code := binary.LittleEndian.Uint32(word)
	clear(word)
	if code == 0 {
		return nil
	}
	for _, c := range st.Codes {
		if c.Code == code {
			return ir.Errorf(ir.ErrIndex, "%s: %s", c.Node, c.Message)
		}
	}
	return fmt.Errorf("plansim: status code %d has no meaning", code)
}

func (s *Session) read(slot *plan.Slot) (*ir.Array, error) {
	data := s.buffers[slot.Buffer][slot.Offset:][:slot.Bytes]
	t := ir.Type{DType: slot.DType, Shape: ir.Dims(slot.Dims...)}
	if slot.DType == ir.Bool {
		narrow := make([]byte, len(data)/4)
		for i := range narrow {
			narrow[i] = data[4*i]
		}
		data = narrow
	}
	bytes, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	return ir.ArrayOf(t, data[:bytes])
}

// words returns an array as a device stores it: booleans as 32-bit words.
func words(a *ir.Array) []byte {
	data := a.Bytes()
	if a.DType != ir.Bool {
		return data
	}
	wide := make([]byte, 4*len(data))
	for i, x := range data {
		wide[4*i] = x
	}
	return wide
}

func value(a *ir.Array) scalar.Value {
	if a.F != nil {
		return scalar.Value{F: float64(math.Float32frombits(math.Float32bits(float32(a.F[0]))))}
	}
	return scalar.Value{I: a.I[0]}
}
