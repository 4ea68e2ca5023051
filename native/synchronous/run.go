package synchronous

import (
	"context"

	"github.com/rlx-go/rlx/native"
)

// run is a run under way, in a goroutine of its own that waits for the one before.
type run struct {
	p    *Program
	done chan struct{}
	out  map[string]native.Tensor
	err  error
}

// Run starts an entry, as [native.Program] says.
func (p *Program) Run(ctx context.Context, name string, in map[string]native.Tensor) (native.Run, error) {
	p.mu.Lock()
	if err := p.open(name); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	number, err := p.entry(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptAll(p.machine.Backend(), name, p.signature.Entries[number].Slots, native.Input, in, true); err != nil {
		return nil, err
	}
	r, before := &run{p: p, done: make(chan struct{})}, p.last
	p.last = r
	go func() {
		defer close(r.done)
		if before != nil {
			<-before.done
		}
		r.out, r.err = p.runOnce(ctx, number, in)
	}()
	return r, nil
}

// runOnce runs an entry with new memory for its outputs.
func (p *Program) runOnce(ctx context.Context, number int, in map[string]native.Tensor) (map[string]native.Tensor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &p.signature.Entries[number]
	if err := ctx.Err(); err != nil {
		return nil, p.fault(e.Name, "", err)
	}
	out := map[string]native.Tensor{}
	for _, s := range e.Slots {
		if s.Role == native.Output {
			out[s.Name] = native.Zeros(s.DType, s.Dims...)
		}
	}
	if err := p.machine.Run(number, e.values(in, out)); err != nil {
		return nil, p.fault(e.Name, "", err)
	}
	return out, nil
}

func (r *run) Wait(ctx context.Context) (map[string]native.Tensor, error) {
	select {
	case <-r.done:
		return r.out, r.err
	default:
	}
	select {
	case <-r.done:
		return r.out, r.err
	case <-ctx.Done():
		return nil, r.p.fault("wait", "", ctx.Err())
	}
}

// bound is an entry with its memory fixed.
type bound struct {
	p      *Program
	number int
	values []native.Tensor // by slot
	err    error
}

// Bind fixes the memory of an entry, as [native.Program] says.
func (p *Program) Bind(name string, in, out map[string]native.Tensor) (native.Bound, error) {
	if err := p.lock(context.Background(), name); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	number, err := p.entry(name)
	if err != nil {
		return nil, err
	}
	e := &p.signature.Entries[number]
	if err := native.AcceptAll(p.machine.Backend(), name, e.unchecked(), native.Input, in, true); err != nil {
		return nil, err
	}
	if err := native.AcceptAll(p.machine.Backend(), name, e.Slots, native.Output, out, false); err != nil {
		return nil, err
	}
	return &bound{p: p, number: number, values: e.values(in, out)}, nil
}

// Start does the run before it returns.
func (b *bound) Start(ctx context.Context) error {
	e := &b.p.signature.Entries[b.number]
	if err := b.p.lock(ctx, e.Name); err != nil {
		return err
	}
	defer b.p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return b.p.fault(e.Name, "", err)
	}
	for i := range e.Slots {
		if s := &e.Slots[i]; s.Checked && s.Role == native.Input {
			if err := s.Accept(b.values[i]); err != nil {
				return b.p.fault(e.Name, s.Name, err)
			}
		}
	}
	b.err = b.p.fault(e.Name, "", b.p.machine.Run(b.number, b.values))
	return nil
}

// Wait tells of an error once.
func (b *bound) Wait(context.Context) error {
	err := b.err
	b.err = nil
	return err
}
