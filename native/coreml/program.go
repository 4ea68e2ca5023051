package coreml

import (
	"errors"

	"github.com/rlx-go/rlx/internal/executor/synchronous"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// program is a module with a model for each entry, the machine of a [synchronous.Program].
// Parameters and states live on the host.
type program struct {
	entries    []*entry
	persistent map[string]*stored
	order      []*stored // parameters and states, in order of appearance
	bytes      int64     // of the host's memory
}

// stored is a parameter or a state. The next value of a state is written to a second
// buffer, which becomes current if the run succeeds.
type stored struct {
	slot      native.Slot
	now, next native.Tensor
}

// entry is an entry of a program.
type entry struct {
	name  string
	model *Model
	slots []native.Slot // inputs and outputs
	kept  []string      // parameters and states that the model takes
}

// newProgram returns the program of a module, without its entries and with zeroed
// parameters and states.
func newProgram(m *ir.Module) *program {
	p := &program{persistent: map[string]*stored{}}
	for _, e := range m.Entries {
		for _, port := range e.Graph.Ports() {
			if port.Kind == ir.InputPort {
				continue
			}
			s := p.persistent[port.Name]
			if s == nil {
				slot := native.SlotOf(port.Name, native.State, port.Value)
				s = &stored{slot: slot, now: native.Zeros(slot.DType, slot.Dims...), next: native.Zeros(slot.DType, slot.Dims...)}
				p.persistent[port.Name], p.order = s, append(p.order, s)
			}
			if port.Kind == ir.ParamPort {
				s.slot.Role = native.Param
			}
		}
	}
	return p
}

// add adds an entry.
func (p *program) add(of ir.Entry, m *Model) {
	e := &entry{name: of.Name, model: m}
	for _, f := range m.inputs {
		if f.Role == native.Input {
			e.slots = append(e.slots, f.Slot)
		} else {
			e.kept = append(e.kept, f.Name)
		}
	}
	for _, f := range m.outputs {
		if f.next == "" {
			e.slots = append(e.slots, f.Slot)
		}
	}
	p.entries = append(p.entries, e)
}

// signature returns the signature of the program.
func (p *program) signature() synchronous.Signature {
	out := synchronous.Signature{Memory: p.bytes}
	for _, e := range p.entries {
		out.Entries = append(out.Entries, synchronous.Entry{Name: e.name, Slots: e.slots})
	}
	for _, s := range p.order {
		out.Persistent = append(out.Persistent, s.slot)
	}
	return out
}

func (p *program) Backend() string { return Name }

// Run updates the states if it succeeds.
func (p *program) Run(entry int, values []native.Tensor) error {
	e := p.entries[entry]
	in, out := p.memory(e, values)
	if err := e.model.PredictTo(in, out); err != nil {
		return err
	}
	for _, f := range e.model.outputs {
		if f.next != "" {
			s := p.persistent[f.next]
			s.now, s.next = s.next, s.now
		}
	}
	return nil
}

// memory returns the tensors that a model reads and writes: those of a run, parameters and
// states.
func (p *program) memory(e *entry, values []native.Tensor) (in, out map[string]native.Tensor) {
	in, out = map[string]native.Tensor{}, map[string]native.Tensor{}
	for i, s := range e.slots {
		switch t := values[i]; {
		case s.Role == native.Input:
			in[s.Name] = t
		case len(t.Data) > 0:
			out[s.Name] = t
		}
	}
	for _, name := range e.kept {
		in[name] = p.persistent[name].now
	}
	for _, f := range e.model.outputs {
		if f.next != "" {
			out[f.Name] = p.persistent[f.next].next
		}
	}
	return in, out
}

func (p *program) Write(i int, t native.Tensor) { copy(p.order[i].now.Data, t.Data) }

func (p *program) Read(i int) native.Tensor { return p.order[i].now.Clone() }

// Release releases the models.
func (p *program) Release() error {
	var failed error
	for _, e := range p.entries {
		failed = errors.Join(failed, e.model.Close())
	}
	for _, s := range p.order {
		s.now, s.next = native.Tensor{}, native.Tensor{}
	}
	return failed
}
