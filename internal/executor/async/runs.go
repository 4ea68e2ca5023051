package async

import (
	"context"
	"runtime"
	"sync"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native"
)

// handle is a run started by [Program.Run], with new memory for its outputs.
type handle struct {
	e    *entry
	in   map[string]native.Tensor
	done bool
	out  map[string]native.Tensor
	err  error
}

// Run starts an entry, see [native.Program].
func (p *Program) Run(ctx context.Context, name string, in map[string]native.Tensor) (native.Run, error) {
	if err := p.lock(ctx, name); err != nil {
		return nil, err
	}
	defer p.unlock()
	e, err := p.lookup(name)
	if err != nil {
		return nil, err
	}
	if err := native.AcceptAll(p.machine.Backend(), name, e.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	h := &handle{e: e, in: in}
	if err := e.start(ctx, h, permute.Counting(0, len(e.spec.Outputs))); err != nil {
		return nil, err
	}
	h.in = nil
	return h, nil
}

func (h *handle) writeInputs(s Stage) {
	for i, slot := range h.e.slots[:h.e.inputs] {
		store(s.Input(i), h.in[slot.Name])
	}
}

func (h *handle) readOutputs(s Stage, err error) {
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

// bound is an entry with fixed memory.
type bound struct {
	e       *entry
	in      []native.Tensor // by input
	out     []native.Tensor // by output
	reads   []int           // the outputs that are fetched
	started int             // number of runs started
	done    int             // number of runs done
	err     error           // the first one since Wait
}

// Bind fixes the memory of an entry, see [native.Program].
func (p *Program) Bind(ctx context.Context, name string, in, out map[string]native.Tensor) (native.Bound, error) {
	if err := ctx.Err(); err != nil {
		return nil, p.fault(name, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := p.lookup(name)
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

func (b *bound) writeInputs(s Stage) {
	for i, t := range b.in {
		store(s.Input(i), t)
	}
}

// readOutputs reads the outputs of the last run only.
func (b *bound) readOutputs(s Stage, err error) {
	b.done++
	switch {
	case err == nil && b.done == b.started:
		for _, i := range b.reads {
			fetch(b.out[i], s.Output(i))
		}
	case err != nil && b.err == nil:
		b.err = err
		if len(b.reads) == 0 && b.e.p.unreported == nil {
			b.e.p.unreported = b
		}
	}
}

// Start copies the inputs and begins the run. It waits only if all stages are in use.
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
	b.started++ // before a run can finish
	if err := b.e.start(ctx, b, b.reads); err != nil {
		b.started--
		return err
	}
	return nil
}

// Wait waits for the bound outputs. Without any it returns at once, since Start has copied
// the inputs; a later Wait or Get then returns the error of the run.
func (b *bound) Wait(ctx context.Context) error {
	p := b.e.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b.reads) > 0 {
		if err := p.await(ctx, b.e.spec.Name, func() bool { b.e.collect(); return b.done == b.started }); err != nil {
			return err
		}
	} else if p.usable(b.e.spec.Name) == nil {
		b.e.collect()
	}
	return b.takeError()
}

// takeError returns the error of the finished runs and clears it.
func (b *bound) takeError() error {
	err := b.err
	b.err = nil
	if b.e.p.unreported == b {
		b.e.p.unreported = nil
	}
	return err
}

// store copies a tensor to staging memory; a bool becomes a word.
func store(to []byte, t native.Tensor) {
	if t.DType == dtype.Bool {
		loop.WidenBools(to, t.Data)
		return
	}
	Copy(to, t.Data)
}

// fetch is the inverse of store.
func fetch(t native.Tensor, from []byte) {
	if t.DType == dtype.Bool {
		copy(t.Data, loop.HostBytes(dtype.Bool, from))
		return
	}
	Copy(t.Data, from)
}

// minPiece is the least number of bytes worth a goroutine of [Copy].
const minPiece = 1 << 20

// Copy copies like copy, large memory with several cores: one core is slower than the bus
// to a GPU.
func Copy(to, from []byte) {
	n := min(len(to), len(from))
	if n < 2*minPiece {
		copy(to, from)
		return
	}
	parts := min(runtime.GOMAXPROCS(0), n/minPiece, 8)
	var all sync.WaitGroup
	for i := range parts {
		lo, hi := n*i/parts, n*(i+1)/parts
		all.Go(func() { copy(to[lo:hi], from[lo:hi]) })
	}
	all.Wait()
}
