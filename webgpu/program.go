//go:build cgo && !js

package webgpu

import (
	"context"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/internal/executor/fair"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/webgpu/internal/exec"
)

// program runs a session of package exec.
type program struct {
	async.Signature
	turns   fair.Lock // held from the first input of a run until its submission
	s       *exec.Session
	plan    *plan.Plan
	entries map[string]*entry
	closed  atomic.Bool
}

// entry is an entry of the session with its slots.
type entry struct {
	run   *exec.Entry
	slots []native.Slot
	// reads lists the names of the outputs.
	reads []string
}

func newProgram(s *exec.Session, shared plan.Layout) *program {
	p := &program{Signature: async.SignatureOf(s.Plan(), shared), s: s, plan: s.Plan(), entries: map[string]*entry{}}
	for i := range p.plan.Entries {
		spec := &p.plan.Entries[i]
		run, err := s.Entry(spec.Name)
		if err != nil {
			continue // an entry of the plan is one of the session
		}
		e := &entry{run: run, slots: p.Slots(spec.Name)}
		for _, slot := range spec.Outputs {
			e.reads = append(e.reads, p.plan.Slots[slot].Name)
		}
		p.entries[spec.Name] = e
	}
	return p
}

func (p *program) Set(ctx context.Context, name string, t native.Tensor) error {
	return fault("set", p.s.Write(ctx, name, exec.Tensor(t)))
}

func (p *program) Get(ctx context.Context, name string) (native.Tensor, error) {
	if p.plan.Lookup(name) == nil { // the session would also read outputs
		return native.Tensor{}, fault("get", ir.Errorf(ir.ErrName, "unknown parameter or state %q", name))
	}
	t, err := p.s.Read(ctx, name)
	return native.Tensor(t), fault("get", err)
}

func (p *program) SetAll(ctx context.Context, values map[string]native.Tensor) error {
	given := make(map[string]exec.Tensor, len(values))
	for name, t := range values {
		given[name] = exec.Tensor(t)
	}
	return fault("set", p.s.Load(ctx, given))
}

func (p *program) GetAll(ctx context.Context) (map[string]native.Tensor, error) {
	values, err := p.s.Save(ctx)
	if err != nil {
		return nil, fault("get", err)
	}
	out := make(map[string]native.Tensor, len(values))
	for name, t := range values {
		out[name] = native.Tensor(t)
	}
	return out, nil
}

// Sync implements [native.Syncer].
func (p *program) Sync(ctx context.Context) error { return fault("sync", p.s.Sync(ctx)) }

func (p *program) Close(ctx context.Context) error {
	if !p.turns.TryLock() {
		if err := p.turns.Lock(ctx); err != nil {
			return fault("close", err)
		}
	}
	defer p.turns.Unlock()
	err := p.s.Close(ctx)
	p.closed.Store(p.closed.Load() || err == nil)
	return fault("close", err)
}

func (p *program) find(name string) (*entry, error) {
	if e := p.entries[name]; e != nil {
		return e, nil
	}
	return nil, fault(name, ir.Errorf(ir.ErrName, "unknown entry %q: have %v", name, p.Entries()))
}

func (p *program) Run(ctx context.Context, name string, in map[string]native.Tensor) (native.Run, error) {
	e, err := p.find(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptAll(Name, name, e.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	if err := p.turns.Lock(ctx); err != nil {
		return nil, fault(name, err)
	}
	defer p.turns.Unlock()
	for input, t := range in {
		if err := e.run.Set(ctx, input, exec.Tensor(t)); err != nil {
			return nil, fault(name, err)
		}
	}
	reads := e.reads
	if len(reads) == 0 { // a failed check is only seen by a reading
		reads = p.smallest()
	}
	reading, err := e.run.Run(ctx, 1, reads...)
	if err != nil {
		return nil, fault(name, err)
	}
	return &handle{name, e, reading}, nil
}

// smallest returns the name of the smallest parameter or state, if any.
func (p *program) smallest() []string {
	var best *plan.Slot
	for i := range p.plan.Slots {
		if s := &p.plan.Slots[i]; s.Role.Persistent() && (best == nil || s.Bytes < best.Bytes) {
			best = s
		}
	}
	if best == nil {
		return nil
	}
	return []string{best.Name}
}

// handle is a run in flight.
type handle struct {
	name    string
	e       *entry
	reading *exec.Reading // nil if there is nothing to read
}

func (h *handle) Wait(ctx context.Context) (map[string]native.Tensor, error) {
	out := map[string]native.Tensor{}
	if h.reading == nil {
		return out, nil
	}
	values, err := h.reading.Wait(ctx)
	if err != nil {
		return nil, fault(h.name, err)
	}
	for _, name := range h.e.reads {
		out[name] = native.Tensor(values[name])
	}
	return out, nil
}

// bound is an entry with fixed memory.
type bound struct {
	p       *program
	name    string
	e       *entry
	in, out map[string]native.Tensor
	reads   []string
	reading *exec.Reading
}

func (p *program) Bind(ctx context.Context, name string, in, out map[string]native.Tensor) (native.Bound, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault(name, err)
	}
	if p.closed.Load() {
		return nil, &native.Error{Backend: Name, Call: name, Kind: native.ErrClosed}
	}
	e, err := p.find(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptBound(Name, name, e.slots, in, out); err != nil {
		return nil, err
	}
	b := &bound{p: p, name: name, e: e, in: in, out: out}
	for read := range out {
		b.reads = append(b.reads, read)
	}
	return b, nil
}

// Start submits the run. Without bound outputs it only waits if too many runs are in
// flight.
func (b *bound) Start(ctx context.Context) error {
	if err := b.p.turns.Lock(ctx); err != nil {
		return fault(b.name, err)
	}
	defer b.p.turns.Unlock()
	for input, t := range b.in {
		if err := b.e.run.Set(ctx, input, exec.Tensor(t)); err != nil {
			return fault(b.name, err)
		}
	}
	var err error
	b.reading, err = b.e.run.Run(ctx, 1, b.reads...)
	return fault(b.name, err)
}

func (b *bound) Wait(ctx context.Context) error {
	if b.reading == nil {
		return nil
	}
	values, err := b.reading.Wait(ctx)
	b.reading = nil
	if err != nil {
		return fault(b.name, err)
	}
	for name, t := range values {
		copy(b.out[name].Data, t.Data)
	}
	return nil
}
