package coreml

import (
	"context"
	"maps"
	"slices"

	"github.com/rlx-go/rlx/native"
)

// run is a run under way, in a goroutine of its own that waits for the one before.
type run struct {
	done chan struct{}
	out  map[string]native.Tensor
	err  error
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
		return nil, fault("wait", "", ctx.Err())
	}
}

// lock takes the program for a call, after the runs that were asked for before, unless
// it is closed or ctx is done.
func (p *program) lock(ctx context.Context, call string) error {
	p.mu.Lock()
	for p.last != nil {
		r := p.last
		p.mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return fault(call, "", ctx.Err())
		}
		p.mu.Lock()
		if p.last == r {
			p.last = nil
		}
	}
	return p.open(call)
}

// open keeps the lock unless the program is closed.
func (p *program) open(call string) error {
	if p.closed {
		p.mu.Unlock()
		return fault(call, "", native.ErrClosed)
	}
	return nil
}

func (p *program) Run(ctx context.Context, name string, in map[string]native.Tensor) (native.Run, error) {
	p.mu.Lock()
	if err := p.open(name); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	e, err := p.entry(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptAll(Name, name, e.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	r, before := &run{done: make(chan struct{})}, p.last
	p.last = r
	go func() {
		defer close(r.done)
		if before != nil {
			<-before.done
		}
		r.out, r.err = p.runOnce(ctx, e, in)
	}()
	return r, nil
}

// runOnce runs an entry with new memory for its outputs.
func (p *program) runOnce(ctx context.Context, e *entry, in map[string]native.Tensor) (map[string]native.Tensor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fault(e.name, "", err)
	}
	out := map[string]native.Tensor{}
	for _, s := range e.slots {
		if s.Role == native.Output {
			out[s.Name] = native.Zeros(s.DType, s.Dims...)
		}
	}
	if err := p.run(e, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

// bound is an entry with its memory fixed.
type bound struct {
	p       *program
	e       *entry
	in, out map[string]native.Tensor
	err     error
}

func (p *program) Bind(name string, in, out map[string]native.Tensor) (native.Bound, error) {
	if err := p.lock(context.Background(), name); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	e, err := p.entry(name)
	if err != nil {
		return nil, err
	}
	slots := slices.Clone(e.slots)
	for i := range slots {
		slots[i].Checked = false // the indices are looked at when a run starts
	}
	if err := native.AcceptAll(Name, name, slots, native.Input, in, true); err != nil {
		return nil, err
	}
	if err := native.AcceptAll(Name, name, slots, native.Output, out, false); err != nil {
		return nil, err
	}
	return &bound{p: p, e: e, in: maps.Clone(in), out: maps.Clone(out)}, nil
}

// Start does the run before it returns.
func (b *bound) Start(ctx context.Context) error {
	if err := b.p.lock(ctx, b.e.name); err != nil {
		return err
	}
	defer b.p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fault(b.e.name, "", err)
	}
	if err := native.AcceptAll(Name, b.e.name, b.e.slots, native.Input, b.in, true); err != nil {
		return err
	}
	b.err = b.p.run(b.e, b.in, b.out)
	return nil
}

// Wait tells of an error once.
func (b *bound) Wait(context.Context) error {
	err := b.err
	b.err = nil
	return err
}
