//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/native"
)

// store writes a tensor to its place in a stage.
func (f *field) store(stage []byte, t native.Tensor) {
	to := stage[f.offset : f.offset+f.slot.Bytes]
	if f.slot.DType == dtype.Bool {
		loop.WidenBools(to, t.Data)
		return
	}
	copyMany(to, t.Data)
}

// fetch reads a tensor from its place in a stage.
func (f *field) fetch(t native.Tensor, stage []byte) {
	from := stage[f.offset : f.offset+f.slot.Bytes]
	if f.slot.DType == dtype.Bool {
		copy(t.Data, loop.HostBytes(dtype.Bool, from))
		return
	}
	copyMany(t.Data, from)
}

// piece is how much memory a goroutine copies: less is not worth a goroutine.
const piece = 1 << 20

// copyMany copies large memory on several cores: one is slower than the bus to
// the GPU.
func copyMany(to, from []byte) {
	if len(from) < 2*piece {
		copy(to, from)
		return
	}
	parts := min(runtime.GOMAXPROCS(0), len(from)/piece, 8)
	var all sync.WaitGroup
	for i := range parts {
		lo, hi := len(from)*i/parts, len(from)*(i+1)/parts
		all.Go(func() { copy(to[lo:hi], from[lo:hi]) })
	}
	all.Wait()
}

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

// handle is a run under way.
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
	if err := native.AcceptAll(p.name, name, e.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	h := &handle{e: e, in: in}
	if err := e.start(ctx, h, all(len(e.outputs))); err != nil {
		return nil, err
	}
	h.in = nil
	return h, nil
}

// all returns the numbers below n.
func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (h *handle) put(stage []byte) {
	for i := range h.e.inputs {
		h.e.inputs[i].store(stage, h.in[h.e.slots[i].Name])
	}
}

func (h *handle) take(stage []byte, err error) {
	h.done, h.err = true, err
	if err != nil {
		return
	}
	h.out = make(map[string]native.Tensor, len(h.e.outputs))
	for i := range h.e.outputs {
		s := h.e.slots[len(h.e.inputs)+i]
		t := native.Zeros(s.DType, s.Dims...)
		h.e.outputs[i].fetch(t, stage)
		h.out[s.Name] = t
	}
}

func (h *handle) Wait(ctx context.Context) (map[string]native.Tensor, error) {
	h.e.p.mu.Lock()
	defer h.e.p.mu.Unlock()
	err := h.e.wait(ctx, h, func() bool { return h.done })
	if err != nil {
		return nil, err
	}
	return h.out, h.err
}

// wait waits until the last run of a user is over.
func (e *entry) wait(ctx context.Context, u user, over func() bool) error {
	for !over() {
		i := slices.IndexFunc(e.stages[:], func(s stage) bool { return s.user == u })
		if i < 0 {
			return e.p.usable(e.spec.Name) // the run was given up
		}
		if err := e.p.await(ctx, e.spec.Name, e.stages[i].event); err != nil {
			return err
		}
		e.collect()
	}
	return nil
}

// bound is an entry with its memory fixed.
type bound struct {
	e       *entry
	in      []native.Tensor // by place in e.inputs
	out     []native.Tensor // by place in e.outputs
	reads   []int           // places of outputs that are fetched
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
	if err := native.AcceptAll(p.name, name, unchecked, native.Input, in, true); err != nil {
		return nil, err
	}
	if err := native.AcceptAll(p.name, name, e.slots, native.Output, out, false); err != nil {
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
	return b, nil
}

func (b *bound) put(stage []byte) {
	for i := range b.in {
		b.e.inputs[i].store(stage, b.in[i])
	}
}

// take fetches the outputs of the last run.
func (b *bound) take(stage []byte, err error) {
	b.over++
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		if len(b.reads) == 0 && b.e.p.silent == nil {
			b.e.p.silent = b
		}
		return
	}
	if b.over == b.started {
		for _, i := range b.reads {
			b.e.outputs[i].fetch(b.out[i], stage)
		}
	}
}

// Start copies the inputs and returns; it waits only while as many runs of the
// entry are under way as there are stages.
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
	if err := b.e.start(ctx, b, b.reads); err != nil {
		return err
	}
	b.started++
	return nil
}

// Wait waits for the bound outputs. Without any it waits for nothing: the inputs
// were copied by Start. What went wrong is then told by a later call, of this
// method or of Get.
func (b *bound) Wait(ctx context.Context) error {
	p := b.e.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(b.reads) > 0 {
		if err := b.e.wait(ctx, b, func() bool { return b.over == b.started }); err != nil {
			return err
		}
	} else if !p.closed && !p.device.lost.Load() {
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
