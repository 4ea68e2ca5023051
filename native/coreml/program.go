package coreml

import (
	"context"
	"maps"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// program is a module whose entries are models. The host keeps what persists.
type program struct {
	mu         sync.Mutex
	entries    []*entry
	persistent map[string]*stored
	names      []string // of persistent values, in order of appearance
	last       *run     // the run that was asked for last
	closed     bool
}

// stored is a parameter or a state. The next value of a state is put beside its value,
// and takes its place where the run goes well.
type stored struct {
	slot      native.Slot
	now, next native.Tensor
}

// entry is one way to run a program.
type entry struct {
	name  string
	model *Model
	slots []native.Slot // inputs and outputs
	kept  []string      // parameters and states that the model takes
}

// newProgram returns the program of a module, without its entries, with all that
// persists at zero.
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
				p.persistent[port.Name] = s
				p.names = append(p.names, port.Name)
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

// run does an entry: it puts outputs into the memory of out, and changes the states if
// nothing goes wrong.
func (p *program) run(e *entry, in, out map[string]native.Tensor) error {
	in, out = maps.Clone(in), maps.Clone(out)
	if in == nil {
		in = map[string]native.Tensor{}
	}
	if out == nil {
		out = map[string]native.Tensor{}
	}
	for _, name := range e.kept {
		in[name] = p.persistent[name].now
	}
	for _, f := range e.model.outputs {
		if f.next != "" {
			out[f.Name] = p.persistent[f.next].next
		}
	}
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

func (p *program) Entries() []string {
	var out []string
	for _, e := range p.entries {
		out = append(out, e.name)
	}
	return out
}

func (p *program) Slots(name string) []native.Slot {
	if e, err := p.entry(name); err == nil {
		return append([]native.Slot(nil), e.slots...)
	}
	return nil
}

func (p *program) Persistent() []native.Slot {
	out := make([]native.Slot, len(p.names))
	for i, name := range p.names {
		out[i] = p.persistent[name].slot
	}
	return out
}

// entry returns the entry of a name.
func (p *program) entry(name string) (*entry, error) {
	for _, e := range p.entries {
		if e.name == name {
			return e, nil
		}
	}
	return nil, fault(name, "", ir.Errorf(ir.ErrName, "there is no such entry: there are %v", p.Entries()))
}

func (p *program) find(call, name string) (*stored, error) {
	s := p.persistent[name]
	if s == nil {
		return nil, fault(call, name, ir.Errorf(ir.ErrName, "there is no parameter or state %q: there are %v", name, p.names))
	}
	return s, nil
}

func (p *program) Set(name string, t native.Tensor) error {
	if err := p.lock(context.Background(), "set"); err != nil {
		return err
	}
	defer p.mu.Unlock()
	s, err := p.find("set", name)
	if err != nil {
		return err
	}
	if err := s.slot.Accept(t); err != nil {
		return fault("set", name, err)
	}
	copy(s.now.Data, t.Data)
	return nil
}

func (p *program) Get(ctx context.Context, name string) (native.Tensor, error) {
	if err := p.lock(ctx, "get"); err != nil {
		return native.Tensor{}, err
	}
	defer p.mu.Unlock()
	s, err := p.find("get", name)
	if err != nil {
		return native.Tensor{}, err
	}
	return s.now.Clone(), nil
}

func (p *program) Close() error {
	if p.lock(context.Background(), "close") != nil {
		return nil // closed before
	}
	defer p.mu.Unlock()
	p.closed = true
	return p.release()
}

// release gives the models back.
func (p *program) release() error {
	var first error
	for _, e := range p.entries {
		if err := e.model.Close(); err != nil && first == nil {
			first = fault("close", "", err)
		}
	}
	for _, s := range p.persistent {
		s.now, s.next = native.Tensor{}, native.Tensor{}
	}
	return first
}
