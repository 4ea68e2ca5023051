package synchronous

import (
	"context"
	"unsafe"

	"github.com/rlx-go/rlx/internal/executor/pending"
	"github.com/rlx-go/rlx/native"
)

// Run starts an entry, see [native.Program].
func (p *Program) Run(ctx context.Context, name string, in map[string]native.Tensor) (native.Run, error) {
	if err := p.usable(name); err != nil {
		return nil, err
	}
	number, err := p.entry(name)
	if err != nil {
		return nil, err
	}
	e := &p.signature.Entries[number]
	if err := native.AcceptAll(p.machine.Backend(), name, e.Slots, native.Input, in, true); err != nil {
		return nil, err
	}
	request := p.order.Join(e.OnlyReads)
	fault := func(err error) error { return p.fault("wait", "", err) }
	return pending.Go(fault, func() (map[string]native.Tensor, error) {
		if err := p.acquired(name, request.Wait(ctx), request.Release); err != nil {
			return nil, err
		}
		defer request.Release()
		return p.runOnce(ctx, number, in)
	}), nil
}

// runOnce runs an entry with new memory for its outputs. The machine is locked.
func (p *Program) runOnce(ctx context.Context, number int, in map[string]native.Tensor) (map[string]native.Tensor, error) {
	e := &p.signature.Entries[number]
	out := map[string]native.Tensor{}
	for _, s := range e.Slots {
		if s.Role == native.Output {
			out[s.Name] = native.Zeros(s.DType, s.Dims...)
		}
	}
	if err := p.runEntry(ctx, number, e.values(in, out)); err != nil {
		return nil, err
	}
	return out, nil
}

// runEntry runs an entry, after other runs of the same entry. The machine is locked.
func (p *Program) runEntry(ctx context.Context, number int, values []native.Tensor) error {
	name := p.signature.Entries[number].Name
	if err := p.entries[number].Lock(ctx); err != nil {
		return p.fault(name, "", err)
	}
	defer p.entries[number].Unlock()
	return p.fault(name, "", p.machine.Run(number, values))
}

// bound is an entry with fixed memory.
type bound struct {
	p        *Program
	number   int
	values   []native.Tensor // by slot
	feedback []feedback
	err      error
}

// feedback is an output that is bound to the memory of an input: the run writes a
// temporary tensor, which is copied afterwards.
type feedback struct{ temporary, to native.Tensor }

// Bind fixes the memory of an entry, see [native.Program].
func (p *Program) Bind(ctx context.Context, name string, in, out map[string]native.Tensor) (native.Bound, error) {
	if err := p.fault(name, "", ctx.Err()); err != nil {
		return nil, err
	}
	if err := p.usable(name); err != nil {
		return nil, err
	}
	number, err := p.entry(name)
	if err != nil {
		return nil, err
	}
	e := &p.signature.Entries[number]
	if err := native.AcceptBound(p.machine.Backend(), name, e.Slots, in, out); err != nil {
		return nil, err
	}
	b := &bound{p: p, number: number, values: e.values(in, out)}
	inputs := map[*byte]bool{}
	for _, t := range in {
		inputs[unsafe.SliceData(t.Data)] = true
	}
	for i, s := range e.Slots {
		if t := b.values[i]; s.Role == native.Output && len(t.Data) > 0 && inputs[&t.Data[0]] {
			b.values[i] = native.Zeros(s.DType, s.Dims...)
			b.feedback = append(b.feedback, feedback{b.values[i], t})
		}
	}
	return b, nil
}

// Start performs the whole run.
func (b *bound) Start(ctx context.Context) error {
	p, e := b.p, &b.p.signature.Entries[b.number]
	if e.OnlyReads {
		if err := p.acquired(e.Name, p.order.RLock(ctx), p.order.RUnlock); err != nil {
			return err
		}
		defer p.order.RUnlock()
	} else {
		if err := p.lock(ctx, e.Name); err != nil {
			return err
		}
		defer p.order.Unlock()
	}
	for i := range e.Slots {
		if s := &e.Slots[i]; s.Checked && s.Role == native.Input {
			if err := s.Accept(b.values[i]); err != nil {
				return p.fault(e.Name, s.Name, err)
			}
		}
	}
	if b.err = p.runEntry(ctx, b.number, b.values); b.err == nil {
		for _, f := range b.feedback {
			copy(f.to.Data, f.temporary.Data)
		}
	}
	return nil
}

// Wait returns the error of the last run once.
func (b *bound) Wait(context.Context) error {
	err := b.err
	b.err = nil
	return err
}
