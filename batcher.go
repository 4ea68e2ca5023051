package rlx

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
)

// BatcherOptions are the options of [Program.Batcher].
type BatcherOptions struct {
	// Size is the symbol along which calls are joined; "" means "batch".
	Size string
	// Max is the largest size of a batch; 0 means the largest of [CompileOptions.Sizes], or
	// [DefaultMaxBatch] without one.
	Max int
	// Wait is how long the first call waits for others while no batch runs. Calls that arrive
	// during a run are in the next batch in any case.
	Wait time.Duration
	// Pad lists symbols whose sizes may differ within a batch, such as "seq". Inputs are padded with
	// zeros to the largest size of the batch, and outputs cropped to the size of their call. The
	// graph masks this padding itself, for instance by an input of lengths. Calls that differ in
	// other sizes are not joined.
	Pad []string
}

// DefaultMaxBatch is the default of [BatcherOptions.Max].
const DefaultMaxBatch = 32

// Batcher joins concurrent calls of an entry into batches, as a server does with the requests of
// many users. Its methods may be called from several goroutines. It needs no Close: it holds no
// goroutine while no call is in flight.
type Batcher struct {
	program *Program
	open    *openProgram
	entry   *openEntry
	options BatcherOptions
	inputs  map[string]ir.Shape
	outputs map[string]ir.Shape

	mu      sync.Mutex
	queue   []*waiting
	running bool
}

// waiting is a call of a [Batcher].
type waiting struct {
	in    Inputs
	sizes map[string]int
	row   int               // where its rows begin in the batch
	out   map[string]Tensor // set with err before done is closed
	err   error
	done  chan struct{}
}

// Batcher returns a batcher of calls of an entry. Every input and output of the entry must have the
// symbol as one axis, each row along it must depend on that row alone, and the entry must not update
// states. The error is of kind [ir.ErrName] for an unknown entry, [ir.ErrSymbol] for a symbol that
// the entry lacks and for an input or output without it, [ir.ErrUnsupported] for an entry that
// updates states, and [ir.ErrAttr] for options out of range.
func (p *Program) Batcher(entry string, o BatcherOptions) (*Batcher, error) {
	if err := p.given(context.Background(), "batcher"); err != nil {
		return nil, err
	}
	if !slices.Contains(p.Entries(), entry) {
		return nil, ir.Errorf(ir.ErrName, "unknown entry %q: have %q", entry, p.Entries())
	}
	if o.Size == "" {
		o.Size = "batch"
	}
	open, _ := p.Program.(*openProgram)
	if open == nil || open.entries[entry] == nil {
		return nil, ir.Errorf(ir.ErrSymbol, "entry %q has no open sizes; Size is %q", entry, o.Size)
	}
	b := &Batcher{program: p, open: open, entry: open.entries[entry], options: o, inputs: map[string]ir.Shape{}, outputs: map[string]ir.Shape{}}
	if err := b.setMax(); err != nil {
		return nil, err
	}
	if err := b.addPorts(); err != nil {
		return nil, err
	}
	return b, nil
}

// setMax checks the options and sets the largest size of a batch.
func (b *Batcher) setMax() error {
	for _, s := range append([]string{b.options.Size}, b.options.Pad...) {
		if !slices.Contains(b.entry.Symbols, s) {
			return ir.Errorf(ir.ErrSymbol, "Size is %q and Pad %q; each must be a symbol of entry %q, one of %q", b.options.Size, b.options.Pad, b.entry.Name, b.entry.Symbols)
		}
	}
	if slices.Contains(b.options.Pad, b.options.Size) {
		return ir.Attrf("Pad has %q; it must not have Size", b.options.Size)
	}
	if b.options.Max < 0 || b.options.Wait < 0 {
		return ir.Attrf("Max is %d and Wait %v; they must be 0 or greater", b.options.Max, b.options.Wait)
	}
	most := b.entry.limit(b.options.Size)
	switch {
	case b.options.Max == 0 && most > 0:
		b.options.Max = most
	case b.options.Max == 0:
		b.options.Max = DefaultMaxBatch
	case most > 0:
		b.options.Max = min(b.options.Max, most)
	}
	return nil
}

// addPorts sets the shapes of inputs and outputs.
func (b *Batcher) addPorts() error {
	size := ir.Sym(b.options.Size)
	add := func(to map[string]ir.Shape, kind, name string, shape ir.Shape) error {
		mixed := func(d ir.Dim) bool { return d != size && slices.Contains(d.Symbols(), b.options.Size) }
		first := slices.Index(shape, size)
		if first < 0 || slices.Contains(shape[first+1:], size) || slices.ContainsFunc(shape, mixed) {
			return ir.Errorf(ir.ErrSymbol, "entry %q: %s %q is %s; symbol %q must be one of its axes", b.entry.Name, kind, name, shape, b.options.Size)
		}
		to[name] = shape
		return nil
	}
	if b.entry.Writes {
		return ir.Errorf(ir.ErrUnsupported, "entry %q updates parameters or states; a batch would update them once for all its calls", b.entry.Name)
	}
	for _, x := range b.entry.Inputs {
		if err := add(b.inputs, "input", x.Name, x.Shape); err != nil {
			return err
		}
	}
	for i := range b.entry.Outputs {
		if err := add(b.outputs, "output", b.entry.Outputs[i].Name, outputShape(&b.entry.Outputs[i])); err != nil {
			return err
		}
	}
	return nil
}

// Call computes the outputs for inputs, in one batch with other calls. Errors are those of
// [Program.Call], and of kind [ir.ErrShape] for more rows than a batch has; inputs that do not fit
// fail their own call alone. When ctx is done, Call returns its error, and the inputs may be reused.
func (b *Batcher) Call(ctx context.Context, in Inputs) (map[string]Tensor, error) {
	if b == nil || b.open == nil {
		return nil, absent("batcher", "call", "Program.Batcher")
	}
	c, err := b.check(ctx, in)
	if err != nil {
		return nil, b.open.fault(b.entry.Name, err)
	}
	b.mu.Lock()
	b.queue = append(b.queue, c)
	if !b.running {
		b.running = true
		go b.run()
	}
	b.mu.Unlock()
	select {
	case <-c.done:
		return c.out, c.err
	case <-ctx.Done():
		b.remove(c)
		return nil, b.open.fault(b.entry.Name, ctx.Err())
	}
}

// check returns a call whose inputs fit the entry.
func (b *Batcher) check(ctx context.Context, in Inputs) (*waiting, error) {
	if err := contextGiven(ctx, "call"); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := native.AcceptAll(b.open.session.backend.Name(), b.entry.Name, b.entry.slots, native.Input, in, true); err != nil {
		return nil, err
	}
	c, err := b.entry.callOf(in)
	if err != nil {
		return nil, err
	}
	if n := c.sizes[b.options.Size]; n > b.options.Max {
		return nil, ir.Shapef("size %s is %d; it must be at most that of a batch, %d", b.options.Size, n, b.options.Max)
	}
	return &waiting{in: in, sizes: c.sizes, done: make(chan struct{})}, nil
}

// remove removes a call from the queue, or waits until its batch has copied the inputs.
func (b *Batcher) remove(c *waiting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, c); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
}

// run runs batches until the queue is empty.
func (b *Batcher) run() {
	time.Sleep(b.options.Wait)
	for {
		batch, in := b.next()
		if batch == nil {
			return
		}
		out, err := b.program.Call(context.Background(), b.entry.Name, in)
		for _, c := range batch {
			switch {
			case err == nil:
				c.out = parts(out, b.outputs, c.sizes, b.options.Size, c.row)
			case len(batch) == 1:
				c.err = err
			default: // one of the calls is at fault, perhaps this one
				b.runAlone(c, in)
			}
			close(c.done)
		}
	}
}

// runAlone runs the rows of one call of a batch.
func (b *Batcher) runAlone(c *waiting, in Inputs) {
	out, err := b.program.Call(context.Background(), b.entry.Name, parts(in, b.inputs, c.sizes, b.options.Size, c.row))
	if c.err = err; err == nil {
		c.out = out
	}
}

// next takes the first call of the queue and those that fit beside it, and copies their inputs. With
// an empty queue it returns nil, and the batcher is not running.
func (b *Batcher) next() (batch []*waiting, in Inputs) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.running = false
		return nil, nil
	}
	sizes := maps.Clone(b.queue[0].sizes)
	sizes[b.options.Size] = 0
	rest := b.queue[:0]
	for _, c := range b.queue {
		if !b.fits(c, sizes) {
			rest = append(rest, c)
			continue
		}
		c.row = sizes[b.options.Size]
		sizes[b.options.Size] += c.sizes[b.options.Size]
		for _, s := range b.options.Pad {
			sizes[s] = max(sizes[s], c.sizes[s])
		}
		batch = append(batch, c)
	}
	clear(b.queue[len(rest):])
	b.queue = rest
	return batch, b.join(batch, sizes)
}

// fits reports whether a call can be added to a batch of the given sizes.
func (b *Batcher) fits(c *waiting, sizes map[string]int) bool {
	for symbol, n := range c.sizes {
		switch {
		case symbol == b.options.Size:
			if sizes[symbol]+n > b.options.Max {
				return false
			}
		case n != sizes[symbol] && !slices.Contains(b.options.Pad, symbol):
			return false
		}
	}
	return true
}

// join returns the inputs of a batch of the given sizes.
func (b *Batcher) join(batch []*waiting, sizes map[string]int) Inputs {
	in := make(Inputs, len(b.inputs))
	for name, shape := range b.inputs {
		dims := bound(shape, sizes)
		to := native.Zeros(batch[0].in[name].DType, dims...)
		for _, c := range batch {
			x := c.in[name]
			copyBox(to.Data[rowOffset(shape, dims, b.options.Size, c.row, x.DType):], x.Data, x.Dims, dims, x.Dims, x.DType.Size())
		}
		in[name] = to
	}
	return in
}

// parts returns the tensors of one call, of the given sizes, from those of a batch, where its rows
// begin at row.
func parts(from map[string]Tensor, shapes map[string]ir.Shape, sizes map[string]int, symbol string, row int) map[string]Tensor {
	out := make(map[string]Tensor, len(shapes))
	for name, shape := range shapes {
		x := from[name]
		y := native.Zeros(x.DType, bound(shape, sizes)...)
		copyBox(y.Data, x.Data[rowOffset(shape, x.Dims, symbol, row, x.DType):], y.Dims, y.Dims, x.Dims, x.DType.Size())
		out[name] = y
	}
	return out
}

// rowOffset returns where a row along the axis of a symbol begins in the bytes of an array.
func rowOffset(shape ir.Shape, dims []int, symbol string, row int, d ir.DType) int {
	return row * strides(dims, d.Size())[slices.Index(shape, ir.Sym(symbol))]
}

// bound returns the sizes of a shape whose symbols all have one.
func bound(shape ir.Shape, sizes map[string]int) []int {
	dims := make([]int, len(shape))
	for axis, d := range shape {
		dims[axis], _ = d.Bind(sizes)
	}
	return dims
}
