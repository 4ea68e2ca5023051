package synchronous

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Program makes a [native.Program] of a [Machine].
type Program struct {
	signature Signature
	machine   Machine

	mu     sync.Mutex
	last   *run // the one that was asked for last, nil where that is over
	closed bool
}

// NewProgram returns the program of a machine that is ready to run.
func NewProgram(s Signature, m Machine) *Program { return &Program{signature: s, machine: m} }

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

// lock takes the program for a call, after the runs that were asked for before, unless it
// is closed or ctx is done.
func (p *Program) lock(ctx context.Context, call string) error {
	p.mu.Lock()
	for p.last != nil {
		r := p.last
		p.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return p.fault(call, "", ctx.Err())
		}
		p.mu.Lock()
		if p.last == r {
			p.last = nil
		}
	}
	return p.open(call)
}

// open keeps the lock unless the program is closed.
func (p *Program) open(call string) error {
	if p.closed {
		p.mu.Unlock()
		return p.fault(call, "", native.ErrClosed)
	}
	return nil
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
	i := slices.IndexFunc(p.signature.Persistent, func(s native.Slot) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range p.signature.Persistent {
			names = append(names, s.Name)
		}
		return 0, p.fault(call, name, ir.Errorf(ir.ErrName, "there is no parameter or state %q: there are %v", name, names))
	}
	return i, nil
}

// Set writes a parameter or a state, after the runs that were asked for.
func (p *Program) Set(name string, t native.Tensor) error {
	if err := p.lock(context.Background(), "set"); err != nil {
		return err
	}
	defer p.mu.Unlock()
	i, err := p.find("set", name)
	if err != nil {
		return err
	}
	if err := p.signature.Persistent[i].Accept(t); err != nil {
		return p.fault("set", name, err)
	}
	p.machine.Write(i, t)
	return nil
}

// Get returns a parameter or a state after the runs that were asked for.
func (p *Program) Get(ctx context.Context, name string) (native.Tensor, error) {
	if err := p.lock(ctx, "get"); err != nil {
		return native.Tensor{}, err
	}
	defer p.mu.Unlock()
	i, err := p.find("get", name)
	if err != nil {
		return native.Tensor{}, err
	}
	return p.machine.Read(i), nil
}

// Close gives the machine back after the last run.
func (p *Program) Close() error {
	if p.lock(context.Background(), "close") != nil {
		return nil // closed before
	}
	defer p.mu.Unlock()
	p.closed = true
	return p.fault("close", "", p.machine.Release())
}
