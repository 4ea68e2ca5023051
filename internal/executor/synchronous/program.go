package synchronous

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/executor/fair"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Program makes a [native.Program] of a [Machine].
type Program struct {
	signature Signature
	machine   Machine

	turns   fair.Lock      // of the machine: read by what changes no parameter and no state
	entries []fair.Lock    // each of them is run once at a time
	places  map[string]int // of parameters and states, by name
	closed  atomic.Bool    // changed by who has turns
}

// NewProgram returns the program of a machine that is ready to run.
func NewProgram(s Signature, m Machine) *Program {
	p := &Program{signature: s, machine: m, entries: make([]fair.Lock, len(s.Entries)), places: map[string]int{}}
	for i, s := range s.Persistent {
		p.places[s.Name] = i
	}
	return p
}

// Entries returns the names of the entries.
func (p *Program) Entries() []string {
	var out []string
	for _, e := range p.signature.Entries {
		out = append(out, e.Name)
	}
	return out
}

// Slots returns the inputs and outputs of an entry; nil where there is none of that name.
func (p *Program) Slots(entry string) []native.Slot {
	for _, e := range p.signature.Entries {
		if e.Name == entry {
			return slices.Clone(e.Slots)
		}
	}
	return nil
}

// Persistent returns the parameters and states.
func (p *Program) Persistent() []native.Slot { return slices.Clone(p.signature.Persistent) }

// Memory returns how many bytes the machine has.
func (p *Program) Memory() int64 { return p.signature.Memory }

// fault returns an error of a call, that of the machine as it is. No error costs nothing:
// steps allocate nothing.
func (p *Program) fault(call, name string, err error) error {
	if err == nil {
		return nil
	}
	if told := (*native.Error)(nil); errors.As(err, &told) {
		return err
	}
	return &native.Error{Backend: p.machine.Backend(), Call: call, Kind: native.KindOf(err), Name: name, Err: err}
}

// usable returns an error of a call where the program is closed.
func (p *Program) usable(call string) error {
	if p.closed.Load() {
		return p.fault(call, "", native.ErrClosed)
	}
	return nil
}

// held returns the error of a call that has waited for the machine with a result. Where
// the program was closed meanwhile, it gives the machine back.
func (p *Program) held(call string, err error, release func()) error {
	if err != nil {
		return p.fault(call, "", err)
	}
	if err := p.usable(call); err != nil {
		release()
		return err
	}
	return nil
}

// lock takes the machine for a call that changes something, after all calls before it,
// unless the program is closed or ctx is done.
func (p *Program) lock(ctx context.Context, call string) error {
	return p.held(call, p.turns.Lock(ctx), p.turns.Unlock)
}

// entry returns the number of an entry.
func (p *Program) entry(name string) (int, error) {
	i := slices.IndexFunc(p.signature.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return 0, p.fault(name, "", ir.Errorf(ir.ErrName, "there is no such entry: there are %v", p.Entries()))
	}
	return i, nil
}

// find returns the place of a parameter or a state.
func (p *Program) find(call, name string) (int, error) {
	i, found := p.places[name]
	if !found {
		var names []string
		for _, s := range p.signature.Persistent {
			names = append(names, s.Name)
		}
		return 0, p.fault(call, name, ir.Errorf(ir.ErrName, "there is no parameter or state %q: there are %v", name, names))
	}
	return i, nil
}

// Set writes a parameter or a state, after the runs that were asked for.
func (p *Program) Set(ctx context.Context, name string, t native.Tensor) error {
	return p.SetAll(ctx, map[string]native.Tensor{name: t})
}

// SetAll writes several parameters and states at one time, or none.
func (p *Program) SetAll(ctx context.Context, values map[string]native.Tensor) error {
	if err := p.lock(ctx, "set"); err != nil {
		return err
	}
	defer p.turns.Unlock()
	places := make(map[string]int, len(values))
	for name, t := range values {
		i, err := p.find("set", name)
		if err != nil {
			return err
		}
		if err := p.signature.Persistent[i].Accept(t); err != nil {
			return p.fault("set", name, err)
		}
		places[name] = i
	}
	for name, i := range places {
		p.machine.Write(i, values[name])
	}
	return nil
}

// Get returns a parameter or a state after the runs that were asked for.
func (p *Program) Get(ctx context.Context, name string) (native.Tensor, error) {
	if err := p.held("get", p.turns.RLock(ctx), p.turns.RUnlock); err != nil {
		return native.Tensor{}, err
	}
	defer p.turns.RUnlock()
	i, err := p.find("get", name)
	if err != nil {
		return native.Tensor{}, err
	}
	return p.machine.Read(i), nil
}

// GetAll returns all parameters and states after the runs that were asked for.
func (p *Program) GetAll(ctx context.Context) (map[string]native.Tensor, error) {
	if err := p.held("get", p.turns.RLock(ctx), p.turns.RUnlock); err != nil {
		return nil, err
	}
	defer p.turns.RUnlock()
	out := make(map[string]native.Tensor, len(p.signature.Persistent))
	for i, s := range p.signature.Persistent {
		out[s.Name] = p.machine.Read(i)
	}
	return out, nil
}

// Close gives the machine back after the last run. See [native.Program].
func (p *Program) Close(ctx context.Context) error {
	if !p.turns.TryLock() {
		if err := p.turns.Lock(ctx); err != nil {
			return p.fault("close", "", err)
		}
	}
	defer p.turns.Unlock()
	if p.closed.Swap(true) {
		return nil
	}
	return p.fault("close", "", p.machine.Release())
}
