//go:build cgo && (darwin || linux)

package metal

import (
	"context"
	"slices"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// look returns an entry for a call, with the program locked.
func (p *program) look(name string) (*entry, error) {
	if err := p.usable(name); err != nil {
		return nil, err
	}
	if e := p.entry(name); e != nil {
		return e, nil
	}
	return nil, p.input(name, "", ir.Errorf(ir.ErrName, "there is no such entry: there are %v", p.Entries()))
}

// handle is one run, with outputs of its own.
type handle struct {
	e    *entry
	in   map[string]native.Tensor
	done bool
	out  map[string]native.Tensor
	err  error
}

func (p *program) Run(ctx context.Context, name string, in map[string]native.Tensor) (native.Run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := p.look(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptAll(Name, name, e.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	every := make([]int, len(e.outputs))
	for i := range every {
		every[i] = i
	}
	h := &handle{e: e, in: in}
	if err := e.start(ctx, h, e.variant(every)); err != nil {
		return nil, err
	}
	h.in = nil
	return h, nil
}

func (h *handle) put(s *stage) {
	for i := range h.e.inputs {
		store(h.e.input(s, i), h.in[h.e.slots[i].Name])
	}
}

func (h *handle) take(s *stage, err error) {
	h.done, h.err = true, err
	if err != nil {
		return
	}
	h.out = make(map[string]native.Tensor, len(h.e.outputs))
	for i, slot := range h.e.slots[len(h.e.inputs):] {
		t := native.Zeros(slot.DType, slot.Dims...)
		fetch(t, h.e.output(s, i))
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

// bound is an entry with its memory fixed.
type bound struct {
	e       *entry
	in      []native.Tensor // by place in e.inputs
	out     []native.Tensor // by place in e.outputs
	reads   []int           // places of outputs that are fetched
	variant int             // the number of reads
	started int             // runs
	over    int             // runs that are over
	err     error           // the first one since Wait
}

func (p *program) Bind(name string, in, out map[string]native.Tensor) (native.Bound, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := p.look(name)
	if err != nil {
		return nil, err
	}
	unchecked := slices.Clone(e.slots)
	for i := range unchecked { // indices are looked at when a run starts
		unchecked[i].Checked = false
	}
	if err := native.AcceptAll(Name, name, unchecked, native.Input, in, true); err != nil {
		return nil, err
	}
	if err := native.AcceptAll(Name, name, e.slots, native.Output, out, false); err != nil {
		return nil, err
	}
	b := &bound{e: e, out: make([]native.Tensor, len(e.outputs))}
	for _, s := range e.slots[:len(e.inputs)] {
		b.in = append(b.in, in[s.Name])
	}
	for i, s := range e.slots[len(e.inputs):] {
		if t, ok := out[s.Name]; ok {
			b.out[i], b.reads = t, append(b.reads, i)
		}
	}
	b.variant = e.variant(b.reads)
	return b, nil
}

func (b *bound) put(s *stage) {
	for i, t := range b.in {
		store(b.e.input(s, i), t)
	}
}

// take fetches the outputs of the last run.
func (b *bound) take(s *stage, err error) {
	b.over++
	switch {
	case err == nil && b.over == b.started:
		for _, i := range b.reads {
			fetch(b.out[i], b.e.output(s, i))
		}
	case err != nil && b.err == nil:
		b.err = err
		if len(b.reads) == 0 && b.e.p.silent == nil {
			b.e.p.silent = b
		}
	}
}

// Start copies the inputs and returns; it waits only while as many runs of the entry are
// under way as there are stages.
func (b *bound) Start(ctx context.Context) error {
	p := b.e.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range b.in {
		if s := &b.e.slots[i]; s.Checked {
			if err := s.Accept(b.in[i]); err != nil {
				return p.input(b.e.spec.Name, s.Name, err)
			}
		}
	}
	b.started++ // before a run of it can be over
	if err := b.e.start(ctx, b, b.variant); err != nil {
		b.started--
		return err
	}
	return nil
}

// Wait waits for the bound outputs. Without any it waits for nothing: the inputs were
// copied by Start. What went wrong is then told by a later call, of this method or of Get.
func (b *bound) Wait(ctx context.Context) error {
	p := b.e.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b.reads) > 0 {
		if err := p.await(ctx, b.e.spec.Name, func() bool { b.e.collect(); return b.over == b.started }); err != nil {
			return err
		}
	} else if p.usable(b.e.spec.Name) == nil {
		b.e.collect()
	}
	return b.taken()
}

// taken returns the error of the runs that are over, once.
func (b *bound) taken() error {
	err := b.err
	b.err = nil
	if b.e.p.silent == b {
		b.e.p.silent = nil
	}
	return err
}
