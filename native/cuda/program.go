//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/native"
)

// program is a plan on a GPU with its memory.
type program struct {
	*async.Program
	name   string // of the backend
	device *device
	plan   *plan.Plan

	stream    *driver.Stream
	copies    *driver.Stream // copies inputs while the stream computes
	modules   []*driver.Module
	functions []driver.Function
	condition *driver.Function // nil where no graph branches
	fill      *driver.Function // nil where graphs keep what fills memory
	captures  []*driver.Stream // of what stands under conditions, by their depth
	calls     []call           // of the plan's routines
	arena     driver.Ptr
	buffers   []driver.Ptr // the plan's, in the arena
	entries   []*entry
	debug     bool
	budget    native.Budget
	guards     *guards          // nil but in tests
	made      []native.Timing // the parts of what made the program
}

// build makes all that the plan needs.
func (p *program) build(ctx context.Context) error {
	p.debug = os.Getenv("RLX_CUDA_DEBUG") != "" || p.guards != nil
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"kernels", func() error { return p.load(ctx) }},
		{"streams", p.makeStreams},
		{"helpers", p.loadHelpers},
		{"memory", p.allocate},
		{"products", p.warm},
		{"constants", p.writeConstants},
		{"graphs", p.capture},
	} {
		if err := p.timed(part.name, part.do); err != nil {
			return err
		}
	}
	return nil
}

// timed does a part of what makes a program and notes how long it took.
func (p *program) timed(name string, do func() error) error {
	begun := time.Now()
	err := do()
	p.made = append(p.made, native.Timing{Name: name, Launches: 1, Time: time.Since(begun)})
	return err
}

func (p *program) makeStreams() (err error) {
	if p.stream, err = p.device.NewStream(); err == nil {
		p.copies, err = p.device.NewStream()
	}
	return err
}

// capture makes the graphs of the entries, and waits for all that was asked for so far.
func (p *program) capture() error {
	for _, e := range p.entries {
		if err := e.build(); err != nil {
			return err
		}
	}
	return p.stream.Synchronize()
}

// allocate lays the plan's buffers and what entries need besides out in one
// block of memory, all zeros.
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
		e.scalars, e.landing = take(e.spec.UniformBytes), take(e.overlappedBytes())
		p.entries = append(p.entries, e)
	}
	total = max(total, plan.RowBytes)
	var err error
	if p.arena, err = p.device.Alloc(total); err != nil {
		return p.outOfMemory("the module", total, err)
	}
	for i := range p.buffers {
		p.buffers[i] += p.arena
	}
	for _, e := range p.entries {
		e.scalars += p.arena
		e.landing += p.arena
	}
	return p.stream.Clear(p.arena, total)
}

// writeConstants writes them to where products were tried out.
func (p *program) writeConstants() error {
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
	err = async.Fault(p, "compile", err) // notes a device that is lost
	return errors.Join(err, p.Release())
}

// Release gives back all that the program has on the device. Nothing of it is
// left of a device that is lost.
func (p *program) Release() error {
	if p.device.lost.Load() {
		return nil
	}
	var failed error
	if p.stream != nil {
		failed = p.stream.Synchronize()
	}
	for _, e := range p.entries {
		failed = errors.Join(failed, e.release())
	}
	for _, m := range p.modules {
		if m != nil {
			failed = errors.Join(failed, m.Unload())
		}
	}
	if p.guards != nil {
		failed = errors.Join(failed, p.guards.release())
	}
	if p.arena != 0 {
		failed = errors.Join(failed, p.device.Release(p.arena))
	}
	for _, s := range append(p.captures, p.copies, p.stream) {
		if s != nil {
			failed = errors.Join(failed, s.Destroy())
		}
	}
	return failed
}

// Backend returns the name of the backend.
func (p *program) Backend() string { return p.name }

// Ordered: memory is written and read by the stream that runs are asked of.
func (p *program) Ordered() bool { return true }

// Write writes a parameter or a state.
func (p *program) Write(s *plan.Slot, data []byte) error {
	return p.stream.Write(p.at(s.Buffer, s.Offset), data)
}

// Read reads a parameter or a state, after the runs that were begun.
func (p *program) Read(s *plan.Slot, data []byte) error {
	return p.stream.Read(data, p.at(s.Buffer, s.Offset))
}

// InFlight returns how many runs of an entry may be under way.
func (p *program) InFlight(int) int { return inFlight }

// HostDriven: the stream has the whole of a run when it has begun.
func (p *program) HostDriven(int) bool { return false }

// NewStage makes the stage of one more run of an entry.
func (p *program) NewStage(entry int) (async.Stage, error) { return p.entries[entry].newStage() }
