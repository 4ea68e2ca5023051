package rlx

import (
	"context"
	"maps"
	"slices"

	"github.com/rlx-go/rlx/internal/compiler/padding"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// Run starts an entry with inputs that choose the open sizes.
func (p *openProgram) Run(ctx context.Context, entry string, in map[string]Tensor) (native.Run, error) {
	e := p.entries[entry]
	if e == nil {
		return p.base.Run(ctx, entry, in)
	}
	sizes, b, err := p.choose(ctx, e, in)
	if err != nil {
		return nil, p.fault(entry, err)
	}
	given, padded, err := b.inputs(sizes, in)
	if err != nil {
		p.release(b)
		return nil, p.fault(entry, err)
	}
	r, err := b.program.Run(ctx, entry, given)
	if err != nil {
		p.release(b)
		return nil, err
	}
	open := &openRun{Run: r, p: p, b: b, sizes: sizes, padded: padded, done: make(chan struct{})}
	go open.finish()
	return open, nil
}

// choose binds the symbols to the shapes of inputs, and returns the bucket for them.
func (p *openProgram) choose(ctx context.Context, e *openEntry, in map[string]Tensor) (map[string]int, *bucket, error) {
	if err := native.AcceptAll(p.session.backend.Name(), e.name, p.Slots(e.name), native.Input, in, true); err != nil {
		return nil, nil, err
	}
	sizes, err := e.bind(in)
	if err != nil {
		return nil, nil, err
	}
	b, err := p.acquire(ctx, e, sizes)
	return sizes, b, err
}

// inputs returns the inputs of the compiled program, padded with zeros and with true sizes, and the
// memory of those that are padded, which serves again after the run.
func (b *bucket) inputs(sizes map[string]int, in map[string]Tensor) (given, padded map[string]Tensor, err error) {
	if b.exact {
		return in, nil, nil
	}
	given = make(map[string]Tensor, len(in)+len(b.sizes))
	if padded, _ = b.buffers.Get().(map[string]Tensor); padded == nil {
		padded = map[string]Tensor{}
	}
	for _, port := range b.graph.Ports() {
		x, is := in[port.Name]
		if !is {
			continue // a true size, or a parameter or state
		}
		dims, _ := port.Value.Shape().Ints()
		if slices.Equal(x.Dims, dims) {
			given[port.Name] = x
			continue
		}
		if padded[port.Name].Data == nil {
			padded[port.Name] = native.Zeros(x.DType, dims...)
		}
		copyInto(padded[port.Name], x)
		given[port.Name] = padded[port.Name]
	}
	for _, d := range b.sizes {
		n, err := d.Bind(sizes)
		if err != nil {
			return nil, nil, err
		}
		given[padding.SizeInput(d)] = native.Int32(int32(n))
	}
	return given, padded, nil
}

// openRun is a run of a bucket.
type openRun struct {
	native.Run
	p      *openProgram
	b      *bucket
	sizes  map[string]int
	padded map[string]Tensor
	done   chan struct{}
	out    map[string]Tensor
	err    error
}

// finish waits for the run, crops its results and releases the bucket.
func (r *openRun) finish() {
	defer close(r.done)
	defer r.p.release(r.b)
	out, err := r.Run.Wait(context.Background())
	if err == nil && !r.b.exact {
		out, err = r.b.crop(out, r.sizes)
		r.b.buffers.Put(r.padded)
	}
	r.out, r.err = out, err
}

// Wait waits for the run and returns its outputs.
func (r *openRun) Wait(ctx context.Context) (map[string]Tensor, error) {
	select {
	case <-r.done:
		return r.out, r.err
	default:
	}
	select {
	case <-r.done:
		return r.out, r.err
	case <-ctx.Done():
		return nil, r.p.fault("wait", ctx.Err())
	}
}

// crop returns the true elements of outputs.
func (b *bucket) crop(out map[string]Tensor, sizes map[string]int) (map[string]Tensor, error) {
	cropped := make(map[string]Tensor, len(out))
	for i, o := range b.entry.graph.Outputs() {
		x, given := out[o.Name]
		if o.State || !given {
			continue
		}
		var full, box []int
		dims := make([]int, 0, o.Value.Rank())
		for _, e := range b.entry.analysis.Output(i) {
			n := 1
			for _, d := range e {
				has, err := d.Bind(sizes)
				if err != nil {
					return nil, err
				}
				most, err := d.Bind(b.bound)
				if err != nil {
					return nil, err
				}
				box, full, n = append(box, has), append(full, most), n*has
			}
			dims = append(dims, n)
		}
		if slices.Equal(box, full) {
			cropped[o.Name] = x
			continue
		}
		y := native.Zeros(x.DType, box...)
		copyBox(y.Data, x.Data, box, box, full, x.DType.Size())
		y.Dims = dims
		cropped[o.Name] = y
	}
	return cropped, nil
}

// Bind fixes the memory of inputs and outputs. Their shapes choose the open sizes at each start.
func (p *openProgram) Bind(ctx context.Context, entry string, in, out map[string]Tensor) (native.Bound, error) {
	e := p.entries[entry]
	if e == nil {
		return p.base.Bind(ctx, entry, in, out)
	}
	if err := ctx.Err(); err != nil {
		return nil, p.fault(entry, err)
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if _, is := e.graph.Output(name); !is {
			return nil, p.fault(entry, ir.Errorf(ir.ErrName, "unknown output %q", name))
		}
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

// Start begins a run, after the one before.
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
