package async

import (
	"context"

	"github.com/rlx-go/rlx/native"
)

// bound is an entry with its memory fixed.
type bound struct {
	e       *entry
	in      []native.Tensor // by place among the inputs
	out     []native.Tensor // by place among the outputs
	reads   []int           // places of outputs that are fetched
	started int             // runs
	over    int             // runs that are over
	err     error           // the first one since Wait
}

// Bind fixes the memory of an entry, as [native.Program] says.
func (p *Program) Bind(ctx context.Context, name string, in, out map[string]native.Tensor) (native.Bound, error) {
	if err := ctx.Err(); err != nil {
		return nil, p.fault(name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := p.look(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptBound(p.machine.Backend(), name, e.slots, in, out); err != nil {
		return nil, err
	}
	b := &bound{e: e, out: make([]native.Tensor, len(e.spec.Outputs))}
	for _, s := range e.slots[:e.inputs] {
		b.in = append(b.in, in[s.Name])
	}
	for i, s := range e.slots[e.inputs:] {
		if t, ok := out[s.Name]; ok {
			b.out[i], b.reads = t, append(b.reads, i)
		}
	}
	return b, nil
}

func (b *bound) put(s Stage) {
	for i, t := range b.in {
		store(s.Input(i), t)
	}
}

// take fetches the outputs of the last run.
func (b *bound) take(s Stage, err error) {
	b.over++
	switch {
	case err == nil && b.over == b.started:
		for _, i := range b.reads {
			fetch(b.out[i], s.Output(i))
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
	if err := p.lock(ctx, b.e.spec.Name); err != nil {
		return err
	}
	defer p.unlock()
	for i := range b.in {
		if s := &b.e.slots[i]; s.Checked {
			if err := s.Accept(b.in[i]); err != nil {
				return Blame(p.machine, b.e.spec.Name, s.Name, err)
			}
		}
	}
	b.started++ // before a run of it can be over
	if err := b.e.start(ctx, b, b.reads); err != nil {
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
