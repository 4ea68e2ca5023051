package cpu

import (
	"context"

	"github.com/rlx-go/rlx/native"
)

// handle is a run under way.
type handle struct {
	done chan struct{}
	out  map[string]native.Tensor
	err  error
}

func (h *handle) Wait(ctx context.Context) (map[string]native.Tensor, error) {
	select {
	case <-h.done:
		return h.out, h.err
	default:
	}
	select {
	case <-h.done:
		return h.out, h.err
	case <-ctx.Done():
		return nil, fault("wait", "", ctx.Err())
	}
}

func (p *program) Run(ctx context.Context, name string, in map[string]native.Tensor) (native.Run, error) {
	p.mu.Lock()
	if err := p.open(name); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	e, err := p.entryOf(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptAll(Name, name, e.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	h := &handle{done: make(chan struct{})}
	before := p.last
	p.last = h
	go func() {
		defer close(h.done)
		if before != nil {
			<-before.done
		}
		h.out, h.err = p.runOnce(ctx, e, in)
	}()
	return h, nil
}

// runOnce runs an entry and copies its outputs.
func (p *program) runOnce(ctx context.Context, e *entry, in map[string]native.Tensor) (map[string]native.Tensor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fault(e.name, "", err)
	}
	for i := range e.inputs {
		e.inputs[i].take(e, in[e.slots[e.inputs[i].slot].Name])
	}
	for _, o := range e.outputs {
		o.buf.data = o.home
	}
	if err := e.run(); err != nil {
		return nil, err
	}
	out := make(map[string]native.Tensor, len(e.outputs))
	for _, o := range e.outputs {
		out[e.slots[o.slot].Name] = tensorOf(e.slots[o.slot], o.buf)
	}
	return out, nil
}

// bound is an entry with its memory fixed.
type bound struct {
	p   *program
	e   *entry
	in  []native.Tensor // by place in e.inputs
	out []native.Tensor // by place in e.outputs; without data where not fetched
	err error
}

func (p *program) Bind(name string, in, out map[string]native.Tensor) (native.Bound, error) {
	if err := p.lock(context.Background(), name); err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	e, err := p.entryOf(name)
	if err != nil {
		return nil, err
	}
	b := &bound{p: p, e: e}
	if err := native.AcceptAll(Name, name, e.unchecked(), native.Input, in, true); err != nil {
		return nil, err
	}
	if err := native.AcceptAll(Name, name, e.slots, native.Output, out, false); err != nil {
		return nil, err
	}
	for _, i := range e.inputs {
		b.in = append(b.in, in[e.slots[i.slot].Name])
	}
	for _, o := range e.outputs {
		b.out = append(b.out, out[e.slots[o.slot].Name])
	}
	return b, nil
}

// unchecked are the slots of an entry without the ranges of indices, which are
// looked at when a bound run starts.
func (e *entry) unchecked() []native.Slot {
	out := append([]native.Slot(nil), e.slots...)
	for i := range out {
		out[i].Checked = false
	}
	return out
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
	e := b.e
	for i := range e.inputs {
		slot := &e.slots[e.inputs[i].slot]
		if slot.Checked {
			if err := slot.Accept(b.in[i]); err != nil {
				return fault(e.name, slot.Name, err)
			}
		}
		e.inputs[i].take(e, b.in[i])
	}
	for i, o := range e.outputs {
		o.buf.data = o.home
		if t := b.out[i]; o.own && len(t.Data) > 0 && t.Aligned() {
			o.buf.data = t.Data
		}
	}
	b.err = e.run()
	if b.err == nil {
		b.fetch()
	}
	return nil
}

// fetch copies the outputs that could not be put in place.
func (b *bound) fetch() {
	for i, o := range b.e.outputs {
		if t := b.out[i]; len(t.Data) > 0 && &t.Data[0] != &o.buf.data[0] {
			copy(t.Data, o.buf.data)
		}
	}
}

// Wait tells of an error once.
func (b *bound) Wait(context.Context) error {
	err := b.err
	b.err = nil
	return err
}
