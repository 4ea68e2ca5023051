//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
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
	"github.com/rlx-go/rlx/native/cuda/driver"
	"github.com/rlx-go/rlx/native/planned"
)

// program is a plan on a GPU with its memory.
type program struct {
	planned.Signature
	name   string // of the backend
	device *device
	plan   *plan.Plan

	mu        sync.Mutex
	stream    *driver.Stream
	copies    *driver.Stream // copies inputs while the stream computes
	modules   []*driver.Module
	functions []driver.Function
	condition *driver.Function  // nil where no graph branches
	fill      *driver.Function  // nil where graphs keep what fills memory
	captures  []*driver.Stream  // of what stands under conditions, by their depth
	products  []*driver.Product // of the plan's routines
	arena     driver.Ptr
	buffers   []driver.Ptr // the plan's, in the arena
	entries   []*entry
	idle      *driver.Event
	debug     bool
	runs      int
	// silent is a bound entry that has failed and has nobody waiting for it.
	silent *bound
	closed bool
}

// build makes all that the plan needs.
func (p *program) build(ctx context.Context) error {
	p.debug = os.Getenv("RLX_CUDA_DEBUG") != ""
	code, err := images(ctx, p.device.Device, p.plan.Kernels)
	if err != nil {
		return err
	}
	if p.stream, err = p.device.NewStream(); err != nil {
		return err
	}
	if p.copies, err = p.device.NewStream(); err != nil {
		return err
	}
	if p.idle, err = p.device.NewEvent(); err != nil {
		return err
	}
	if err := p.load(code); err != nil {
		return err
	}
	if err := p.loadHelpers(); err != nil {
		return err
	}
	if err := p.allocate(); err != nil {
		return err
	}
	for _, e := range p.entries {
		if err := e.build(); err != nil {
			return err
		}
	}
	return p.stream.Synchronize()
}

// allocate lays the plan's buffers and what entries need besides out in one
// block of memory, all zeros but for the constants.
func (p *program) allocate() error {
	total := 0
	take := func(bytes int) driver.Ptr {
		at := total
		total += roundUp(bytes)
		return driver.Ptr(at)
	}
	for _, b := range p.plan.Buffers {
		p.buffers = append(p.buffers, take(b.Bytes))
	}
	for i := range p.plan.Entries {
		e := newEntry(p, &p.plan.Entries[i])
		e.scalars, e.arrival = take(e.spec.UniformBytes), take(e.arriving())
		p.entries = append(p.entries, e)
	}
	total = max(total, plan.RowBytes)
	var err error
	if p.arena, err = p.device.Alloc(total); err != nil {
		return p.tooMuch("the module", total, err)
	}
	for i := range p.buffers {
		p.buffers[i] += p.arena
	}
	for _, e := range p.entries {
		e.scalars += p.arena
		e.arrival += p.arena
	}
	if err := p.stream.Clear(p.arena, total); err != nil {
		return err
	}
	if err := p.warm(); err != nil {
		return err
	}
	for _, c := range p.plan.Constants {
		if err := p.stream.Write(p.at(c.Buffer, c.Offset), c.Data); err != nil {
			return err
		}
	}
	return nil
}

// roundUp returns the room that a part of a block of memory takes.
func roundUp(bytes int) int { return (bytes + plan.RowBytes - 1) / plan.RowBytes * plan.RowBytes }

func (p *program) at(buffer, offset int) driver.Ptr { return p.buffers[buffer] + driver.Ptr(offset) }

// abandon gives back what a build that failed has made.
func (p *program) abandon(err error) error {
	err = p.fault("compile", err) // notes a device that is lost
	return errors.Join(err, p.release())
}

// release gives back all that the program has on the device. Nothing of it is
// left of a device that is lost.
func (p *program) release() error {
	if p.device.lost.Load() {
		return nil
	}
	var failed error
	for _, e := range p.entries {
		failed = errors.Join(failed, e.release())
	}
	for _, m := range p.modules {
		failed = errors.Join(failed, m.Unload())
	}
	if p.arena != 0 {
		failed = errors.Join(failed, p.device.Release(p.arena))
	}
	if p.idle != nil {
		failed = errors.Join(failed, p.idle.Destroy())
	}
	for _, s := range append(p.captures, p.copies, p.stream) {
		if s != nil {
			failed = errors.Join(failed, s.Destroy())
		}
	}
	return failed
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
	return p.fault("set", p.stream.Write(p.at(slot.Buffer, slot.Offset), loop.DeviceBytes(t.DType, t.Data)))
}

// Get waits for all runs. Of a run of a bound entry without outputs that failed,
// which nobody waits for, it returns the error.
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
	data := t.Data
	if slot.DType == dtype.Bool {
		data = make([]byte, slot.Bytes)
	}
	if err := p.stream.Read(data, p.at(slot.Buffer, slot.Offset)); err != nil {
		return native.Tensor{}, p.fault("get", err)
	}
	if slot.DType == dtype.Bool {
		copy(t.Data, loop.HostBytes(slot.DType, data))
	}
	return t, nil
}

// drain waits for all work and collects what it has left.
func (p *program) drain(ctx context.Context, call string) error {
	if err := p.stream.Record(p.idle); err != nil {
		return p.fault(call, err)
	}
	if err := p.await(ctx, call, p.idle); err != nil {
		return err
	}
	for _, e := range p.entries {
		e.collect()
	}
	return nil
}

// await waits for an event, or until ctx is done. It lets go of the lock while
// it waits.
func (p *program) await(ctx context.Context, call string, e *driver.Event) error {
	for begin := time.Now(); ; {
		if err := p.usable(call); err != nil {
			return err
		}
		if ok, err := e.Happened(); ok || err != nil {
			return p.fault(call, err)
		}
		if err := ctx.Err(); err != nil {
			return p.fault(call, err)
		}
		p.mu.Unlock()
		pause(time.Since(begin))
		p.mu.Lock()
	}
}

// pause lets others run between two looks at an event: shortly at first, since a
// step takes less time than a sleep.
func pause(waited time.Duration) {
	if waited < time.Millisecond {
		runtime.Gosched()
		return
	}
	time.Sleep(min(waited/16, time.Millisecond))
}

// Close waits for what is under way. What it was to leave can still be waited
// for.
func (p *program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if p.device.lost.Load() {
		return nil
	}
	failed := p.fault("close", p.stream.Synchronize())
	for _, e := range p.entries {
		e.collect()
	}
	return p.fault("close", errors.Join(failed, p.release()))
}
