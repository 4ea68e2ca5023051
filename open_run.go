package rlx

import (
	"context"
	"slices"

	"github.com/rlx-go/rlx/internal/executor/pending"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Run starts an entry with inputs that choose the open sizes.
func (p *openProgram) Run(ctx context.Context, entry string, in map[string]Tensor) (native.Run, error) {
	e := p.entries[entry]
	if e == nil {
		return p.runClosed(ctx, entry, in)
	}
	if err := native.AcceptAll(p.session.backend.Name(), entry, e.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	c, err := e.callOf(in)
	if err != nil {
		return nil, p.fault(entry, err)
	}
	b, err := p.acquire(ctx, e, c)
	if err != nil {
		return nil, p.fault(entry, err)
	}
	given, padded, err := b.inputs(c, in)
	var r native.Run
	if err == nil {
		r, err = p.start(ctx, b.program, e.Writes, entry, given)
	}
	if err != nil {
		p.release(b)
		return nil, p.fault(entry, err)
	}
	fault := func(err error) error { return p.fault("wait", err) }
	return pending.Go(fault, func() (map[string]Tensor, error) {
		defer p.release(b)
		out, err := r.Wait(context.Background())
		if err == nil && !b.exact {
			out = c.crop(out)
			b.buffers.Put(padded)
		}
		return out, err
	}), nil
}

// runClosed starts an entry without open sizes.
func (p *openProgram) runClosed(ctx context.Context, entry string, in map[string]Tensor) (native.Run, error) {
	if writes, known := p.closed[entry]; known {
		return p.start(ctx, p.base, writes, entry, in)
	}
	return nil, p.fault(entry, ir.Errorf(ir.ErrName, "unknown entry %q: have %q", entry, p.Entries()))
}

// start starts an entry of a compiled program.
func (p *openProgram) start(ctx context.Context, program native.Program, writes bool, entry string, in map[string]Tensor) (native.Run, error) {
	if p.move == nil {
		return program.Run(ctx, entry, in)
	}
	if err := native.AcceptAll(p.session.backend.Name(), entry, program.Slots(entry), native.Input, in, true); err != nil {
		return nil, err
	}
	return p.move.run(ctx, program, entry, writes, in), nil
}

// inputs returns the inputs of the compiled program, padded with zeros and with true sizes, and the
// memory of the padded ones, which is reused after the run.
func (b *bucket) inputs(c *call, in map[string]Tensor) (given, padded map[string]Tensor, err error) {
	if b.exact {
		return in, nil, nil
	}
	given = make(map[string]Tensor, len(b.ports))
	if padded, _ = b.buffers.Get().(map[string]Tensor); padded == nil {
		padded = map[string]Tensor{}
	}
	for _, port := range b.ports {
		x, is := in[port.Name]
		switch {
		case !is:
			if given[port.Name], err = c.input(port.Name); err != nil {
				return nil, nil, err
			}
			continue
		case slices.Equal(x.Dims, port.Dims):
			given[port.Name] = x
			continue
		}
		to, made := padded[port.Name]
		if !made {
			to = native.Zeros(x.DType, port.Dims...)
			padded[port.Name] = to
		}
		copyInto(to, x)
		given[port.Name] = to
	}
	return given, padded, nil
}

// Bind fixes the memory of inputs and outputs. Their shapes choose the open sizes at each start.
func (p *openProgram) Bind(ctx context.Context, entry string, in, out map[string]Tensor) (native.Bound, error) {
	e := p.entries[entry]
	if e == nil && p.move == nil {
		return p.base.Bind(ctx, entry, in, out)
	}
	if err := ctx.Err(); err != nil {
		return nil, p.fault(entry, err)
	}
	slots := p.Slots(entry)
	if err := native.AcceptAll(p.session.backend.Name(), entry, slots, native.Output, out, false); err != nil {
		return nil, err
	}
	if slots == nil {
		return nil, p.fault(entry, ir.Errorf(ir.ErrName, "unknown entry %q: have %q", entry, p.Entries()))
	}
	return &openBound{p: p, entry: entry, in: in, out: out}, nil
}

// openBound is an entry with fixed memory and open sizes. It reads the tensors of in at each start.
type openBound struct {
	p       *openProgram
	entry   string
	in, out map[string]Tensor
	run     native.Run
	err     error
}

// Start begins a run, after the previous one.
func (b *openBound) Start(ctx context.Context) error {
	if err := b.settle(ctx); err != nil {
		b.err = err
	}
	r, err := b.p.Run(ctx, b.entry, b.in)
	b.run = r
	return err
}

// Wait waits until the outputs hold the results.
func (b *openBound) Wait(ctx context.Context) error {
	err := b.settle(ctx)
	if b.err != nil {
		err, b.err = b.err, nil
	}
	return err
}

// settle waits for the run in flight and copies its results.
func (b *openBound) settle(ctx context.Context) error {
	if b.run == nil {
		return nil
	}
	results, err := b.run.Wait(ctx)
	if ctx.Err() != nil && err != nil {
		return err
	}
	b.run = nil
	if err != nil {
		return err
	}
	for name, to := range b.out {
		x := results[name]
		if !slices.Equal(x.Dims, to.Dims) {
			return b.p.fault(b.entry, ir.Shapef("output %q is %s; the memory for it is %s", name, x, to))
		}
		copy(to.Data, x.Data)
	}
	return nil
}
