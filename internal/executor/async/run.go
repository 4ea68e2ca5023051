package async

import (
	"context"

	"github.com/rlx-go/rlx/native"
)

// handle is one run, with outputs of its own.
type handle struct {
	e    *entry
	in   map[string]native.Tensor
	done bool
	out  map[string]native.Tensor
	err  error
}

// Run starts an entry, as [native.Program] says.
func (p *Program) Run(ctx context.Context, name string, in map[string]native.Tensor) (native.Run, error) {
	if err := p.lock(ctx, name); err != nil {
		return nil, err
	}
	defer p.unlock()
	e, err := p.look(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptAll(p.machine.Backend(), name, e.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	every := make([]int, len(e.spec.Outputs))
	for i := range every {
		every[i] = i
	}
	h := &handle{e: e, in: in}
	if err := e.start(ctx, h, every); err != nil {
		return nil, err
	}
	h.in = nil
	return h, nil
}

func (h *handle) put(s Stage) {
	for i, slot := range h.e.slots[:h.e.inputs] {
		store(s.Input(i), h.in[slot.Name])
	}
}

func (h *handle) take(s Stage, err error) {
	h.done, h.err = true, err
	if err != nil {
		return
	}
	h.out = make(map[string]native.Tensor, len(h.e.spec.Outputs))
	for i, slot := range h.e.slots[h.e.inputs:] {
		t := native.Zeros(slot.DType, slot.Dims...)
		fetch(t, s.Output(i))
		h.out[slot.Name] = t
	}
}

func (h *handle) Wait(ctx context.Context) (map[string]native.Tensor, error) {
	p := h.e.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.await(ctx, h.e.spec.Name, func() bool { h.e.collect(); return h.done }); err != nil {
		return nil, err
	}
	return h.out, h.err
}
