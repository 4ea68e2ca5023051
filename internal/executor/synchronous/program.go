package synchronous

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/executor/fair"
	"github.com/rlx-go/rlx/internal/executor/named"
	"github.com/rlx-go/rlx/native"
)

// Program is a [native.Program] on a [Machine].
type Program struct {
	signature Signature
	machine   Machine

	order   *fair.Lock  // of the machine and those that share memory with it; a read lock for calls that change no parameter and no state
	entries []fair.Lock // serialise the runs of each entry
	kept    named.Persistent
	closed  atomic.Bool // set with order locked
}

// NewProgram returns a program that runs on a machine.
func NewProgram(s Signature, m Machine) *Program { return newProgram(s, m, &fair.Lock{}) }

// Sharing returns a program on a machine that shares parameters or states with that of p.
func (p *Program) Sharing(s Signature, m Machine) *Program { return newProgram(s, m, p.order) }

func newProgram(s Signature, m Machine, order *fair.Lock) *Program {
	return &Program{signature: s, machine: m, order: order, entries: make([]fair.Lock, len(s.Entries)), kept: named.NewPersistent(s.Persistent)}
}

// Entries returns the names of the entries.
func (p *Program) Entries() []string {
	var out []string
	for _, e := range p.signature.Entries {
		out = append(out, e.Name)
	}
	return out
}

// Slots returns the inputs and outputs of an entry, nil if there is no such entry.
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

// Memory returns the machine's memory in bytes.
func (p *Program) Memory() int64 { return p.signature.Memory }

// fault wraps an error in a [*native.Error] of the call. It returns nil and errors that
// hold a [*native.Error] unchanged, without allocation.
func (p *Program) fault(call, name string, err error) error {
	if err == nil {
		return nil
	}
	if typed := (*native.Error)(nil); errors.As(err, &typed) {
		return err
	}
	return &native.Error{Backend: p.machine.Backend(), Call: call, Kind: native.KindOf(err), Name: name, Err: err}
}

// usable returns an error if the program is closed.
func (p *Program) usable(call string) error {
	if p.closed.Load() {
		return p.fault(call, "", native.ErrClosed)
	}
	return nil
}

// acquired checks the result of waiting for a lock. If the program was closed meanwhile,
// it calls release and returns an error.
func (p *Program) acquired(call string, err error, release func()) error {
	if err != nil {
		return p.fault(call, "", err)
	}
	if err := p.usable(call); err != nil {
		release()
		return err
	}
	return nil
}

// lock locks the machine for a call that writes, in the order of calls. It fails if the
// program is closed or ctx is done.
func (p *Program) lock(ctx context.Context, call string) error {
	return p.acquired(call, p.order.Lock(ctx), p.order.Unlock)
}

// entry returns the number of an entry.
func (p *Program) entry(name string) (int, error) {
	i := slices.IndexFunc(p.signature.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return 0, p.fault(name, "", named.UnknownEntry(name, p.Entries()))
	}
	return i, nil
}

// Do calls f with the number of an entry, with the machine locked. It wraps f's error as that
// of a run; the error is of kind [ir.ErrName] for an unknown entry.
func (p *Program) Do(ctx context.Context, entry string, f func(number int) error) error {
	number, err := p.entry(entry)
	if err != nil {
		return err
	}
	if err := p.lock(ctx, entry); err != nil {
		return err
	}
	defer p.order.Unlock()
	return p.fault(entry, "", f(number))
}

// Set writes a parameter or a state, after the runs started before.
func (p *Program) Set(ctx context.Context, name string, t native.Tensor) error {
	return p.SetAll(ctx, map[string]native.Tensor{name: t})
}

// SetAll writes several parameters and states, or none.
func (p *Program) SetAll(ctx context.Context, values map[string]native.Tensor) error {
	if err := p.lock(ctx, "set"); err != nil {
		return err
	}
	defer p.order.Unlock()
	numbers, err := p.kept.Accept(p.machine.Backend(), values)
	if err != nil {
		return err
	}
	for name, i := range numbers {
		p.machine.Write(i, values[name])
	}
	return nil
}

// Get returns a parameter or a state, after the runs started before.
func (p *Program) Get(ctx context.Context, name string) (native.Tensor, error) {
	if err := p.acquired("get", p.order.RLock(ctx), p.order.RUnlock); err != nil {
		return native.Tensor{}, err
	}
	defer p.order.RUnlock()
	i, err := p.kept.Find(name)
	if err != nil {
		return native.Tensor{}, p.fault("get", name, err)
	}
	return p.machine.Read(i), nil
}

// GetAll returns all parameters and states, after the runs started before.
func (p *Program) GetAll(ctx context.Context) (map[string]native.Tensor, error) {
	if err := p.acquired("get", p.order.RLock(ctx), p.order.RUnlock); err != nil {
		return nil, err
	}
	defer p.order.RUnlock()
	out := make(map[string]native.Tensor, len(p.signature.Persistent))
	for i, s := range p.signature.Persistent {
		out[s.Name] = p.machine.Read(i)
	}
	return out, nil
}

// Sync waits for the runs started before. See [native.Syncer].
func (p *Program) Sync(ctx context.Context) error {
	if err := p.lock(ctx, "sync"); err != nil {
		return err
	}
	p.order.Unlock()
	return nil
}

// Close releases the machine after the last run. See [native.Program].
func (p *Program) Close(ctx context.Context) error {
	if !p.order.TryLock() {
		if err := p.order.Lock(ctx); err != nil {
			return p.fault("close", "", err)
		}
	}
	defer p.order.Unlock()
	if p.closed.Swap(true) {
		return nil
	}
	return p.fault("close", "", p.machine.Release())
}
