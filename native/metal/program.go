//go:build cgo && (darwin || linux)

package metal

import (
	"context"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/metal/driver"
	"github.com/rlx-go/rlx/native/planned"
)

// program is a plan on the GPU with its memory.
type program struct {
	planned.Signature
	device *device
	plan   *plan.Plan

	mu        sync.Mutex
	pipelines []driver.Pipeline // of the plan's kernels
	heap      *driver.Heap
	buffers   []driver.Buffer // the plan's, but for those that each run has of its own
	entries   []*entry
	debug     bool
	runs      int
	// silent is a bound entry that has failed and has nobody waiting for it.
	silent *bound
	broken bool // a run failed in the middle
	closed bool
}

// build makes all that the plan needs.
func (p *program) build(ctx context.Context) error {
	p.debug = os.Getenv("RLX_METAL_DEBUG") != ""
	if err := p.load(ctx); err != nil {
		return err
	}
	if err := p.allocate(); err != nil {
		return err
	}
	for i := range p.plan.Entries {
		p.entries = append(p.entries, newEntry(p, &p.plan.Entries[i]))
	}
	return nil
}

// ofRun reports whether each run has a buffer of its own: what the host writes before it,
// while the run before may still read.
func ofRun(b plan.Buffer) bool { return b.Kind == plan.InputBuffer || b.Kind == plan.StatusBuffer }

// allocate makes the plan's buffers in one heap, all zeros but for the constants.
func (p *program) allocate() error {
	var sizes, numbers []int
	total := 0
	for i, b := range p.plan.Buffers {
		if !ofRun(b) {
			sizes, numbers, total = append(sizes, b.Bytes), append(numbers, i), total+b.Bytes
		}
	}
	p.buffers = make([]driver.Buffer, len(p.plan.Buffers))
	if len(sizes) == 0 {
		return nil
	}
	var err error
	if p.heap, err = p.device.NewHeap(sizes); err != nil {
		return p.tooMuch("the module", total, err)
	}
	for i, b := range p.heap.Buffers {
		clear(b.Bytes)
		p.buffers[numbers[i]] = b
	}
	for _, c := range p.plan.Constants {
		copy(p.buffers[c.Buffer].Bytes[c.Offset:], c.Data)
	}
	return nil
}

// release gives back all that the program has on the device.
func (p *program) release() {
	for _, e := range p.entries {
		e.release()
	}
	for _, x := range p.pipelines {
		x.Release()
	}
	if p.heap != nil {
		p.heap.Release()
	}
	p.pipelines, p.entries, p.heap = nil, nil, nil
}

func (p *program) entry(name string) *entry {
	i := slices.IndexFunc(p.entries, func(e *entry) bool { return e.spec.Name == name })
	if i < 0 {
		return nil
	}
	return p.entries[i]
}

// find returns a parameter or a state.
func (p *program) find(call, name string) (*plan.Slot, error) {
	if s := p.plan.Lookup(name); s != nil {
		return s, nil
	}
	var names []string
	for _, s := range p.Persistent() {
		names = append(names, s.Name)
	}
	return nil, p.input(call, name, ir.Errorf(ir.ErrName, "there is no parameter or state %q: there are %v", name, names))
}

// memory is where a parameter or a state lies, which host and GPU share.
func (p *program) memory(s *plan.Slot) []byte { return p.buffers[s.Buffer].Bytes[s.Offset:][:s.Bytes] }

// Set waits for all runs: they may read what it writes.
func (p *program) Set(name string, t native.Tensor) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable("set"); err != nil {
		return err
	}
	slot, err := p.find("set", name)
	if err != nil {
		return err
	}
	if err := planned.SlotOf(slot, native.State).Accept(t); err != nil {
		return p.input("set", name, err)
	}
	if err := p.drain(context.Background(), "set"); err != nil {
		return err
	}
	store(p.memory(slot), t)
	return nil
}

// Get waits for all runs. Of a run of a bound entry without outputs that failed, which
// nobody waits for, it returns the error.
func (p *program) Get(ctx context.Context, name string) (native.Tensor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable("get"); err != nil {
		return native.Tensor{}, err
	}
	slot, err := p.find("get", name)
	if err != nil {
		return native.Tensor{}, err
	}
	if err := p.drain(ctx, "get"); err != nil {
		return native.Tensor{}, err
	}
	if b := p.silent; b != nil {
		return native.Tensor{}, b.taken()
	}
	t := native.Zeros(slot.DType, slot.Dims...)
	fetch(t, p.memory(slot))
	return t, nil
}

// store writes a tensor to memory of the device, where a bool is a word.
func store(to []byte, t native.Tensor) {
	if t.DType == dtype.Bool {
		loop.WidenBools(to, t.Data)
		return
	}
	copy(to, t.Data)
}

// fetch is the inverse of store.
func fetch(t native.Tensor, from []byte) {
	if t.DType == dtype.Bool {
		from = loop.HostBytes(dtype.Bool, from)
	}
	copy(t.Data, from)
}

// drain waits for all runs and collects what they have left.
func (p *program) drain(ctx context.Context, call string) error {
	for _, e := range p.entries {
		if err := p.await(ctx, call, func() bool { e.collect(); return !e.busy() }); err != nil {
			return err
		}
	}
	return nil
}

// await waits until something is over, or ctx is done. It lets go of the lock while it
// waits.
func (p *program) await(ctx context.Context, call string, over func() bool) error {
	for begin := time.Now(); ; {
		if over() {
			return nil
		}
		if err := p.usable(call); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return p.fault(call, err)
		}
		p.mu.Unlock()
		pause(time.Since(begin))
		p.mu.Lock()
	}
}

// pause lets others run between two looks at a run: shortly at first, since a step takes
// less time than a sleep.
func pause(waited time.Duration) {
	if waited < time.Millisecond {
		runtime.Gosched()
		return
	}
	time.Sleep(min(waited/16, time.Millisecond))
}

// Close waits for what is under way. What it was to leave can still be waited for.
func (p *program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	var err error
	if p.usable("close") == nil {
		err = p.drain(context.Background(), "close")
	}
	p.closed = true
	p.release()
	return err
}
