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

	stream       *driver.Stream
	copies       *driver.Stream // copies inputs while the stream computes
	modules      []*driver.Module
	functions    []driver.Function
	graphKernels graphKernels
	calls        calls
	arena        driver.Ptr
	buffers      []driver.Ptr // the plan's, in the arena, or those of with
	entries      []*entry
	debug        bool
	budget       native.Budget
	guards       *guards         // for tests, else nil
	phases       []native.Timing // of compilation
	ranks        *ranks          // nil without collectives
	serial       bool            // graphs are lists, for tests
	with         *program        // whose parameters and states, and streams, the program uses; nil for its own
	drop         func() error    // ends the hold of with
}

// build allocates and loads everything that the plan needs.
func (p *program) build(ctx context.Context) error {
	p.debug = os.Getenv("RLX_CUDA_DEBUG") != "" || p.guards != nil
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"kernels", func() error { return p.load(ctx) }},
		{"streams", p.makeStreams},
		{"helpers", p.graphKernels.load},
		{"memory", p.allocate},
		{"products", p.calls.warm},
		{"ranks", func() error { return p.connect(ctx) }},
		{"constants", p.writeConstants},
		{"graphs", p.capture},
	} {
		if err := p.timed(part.name, part.do); err != nil {
			return err
		}
	}
	return p.join()
}

// join ends the use of the streams of the build, which no other program's work was to enter, for those
// of the program with which this one shares parameters and states: their runs are one after the other.
func (p *program) join() error {
	if p.with == nil {
		return nil
	}
	err := errors.Join(p.copies.Destroy(), p.stream.Destroy())
	p.stream, p.copies = p.with.stream, p.with.copies
	return err
}

// timed runs a phase of compilation and records its time.
func (p *program) timed(name string, do func() error) error {
	begun := time.Now()
	err := do()
	p.phases = append(p.phases, native.Timing{Name: name, Launches: 1, Time: time.Since(begun)})
	return err
}

func (p *program) makeStreams() (err error) {
	if p.stream, err = p.device.NewStream(); err == nil {
		p.copies, err = p.device.NewStream()
	}
	return err
}

// capture captures the graphs of the entries and synchronises the stream.
func (p *program) capture() error {
	for _, e := range p.entries {
		if err := e.build(); err != nil {
			return err
		}
	}
	return p.stream.Synchronize()
}

// allocate places the plan's buffers and the entries' scalars and landing buffers in a
// zeroed arena.
func (p *program) allocate() error {
	total := 0
	reserve := func(bytes int) driver.Ptr {
		at := total
		total += roundUp(bytes)
		return driver.Ptr(at)
	}
	shared := stateBuffers(p.with)
	for _, b := range p.plan.Buffers[len(shared):] {
		p.buffers = append(p.buffers, reserve(b.Bytes))
	}
	for i := range p.plan.Entries {
		e := newEntry(p, &p.plan.Entries[i])
		e.scalars, e.landing = reserve(e.spec.UniformBytes), reserve(e.overlappedBytes())
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
	p.buffers = append(shared, p.buffers...)
	for _, e := range p.entries {
		e.scalars += p.arena
		e.landing += p.arena
	}
	return p.stream.Clear(p.arena, total)
}

// stateBuffers returns the buffers of the parameters and states of a program, none of a nil one. A plan
// that shares them has them first.
func stateBuffers(p *program) (out []driver.Ptr) {
	if p == nil {
		return nil
	}
	for _, b := range p.plan.StateBuffers() {
		out = append(out, p.buffers[b])
	}
	return out
}

// writeConstants writes the constants, after warm has overwritten their buffers.
func (p *program) writeConstants() error {
	for _, c := range p.plan.Constants {
		if err := p.stream.Write(p.at(c.Buffer, c.Offset), c.Data); err != nil {
			return err
		}
	}
	return nil
}

// roundUp rounds a size up to the alignment of parts of the arena and of stages.
func roundUp(bytes int) int { return (bytes + plan.RowBytes - 1) / plan.RowBytes * plan.RowBytes }

func (p *program) at(buffer, offset int) driver.Ptr { return p.buffers[buffer] + driver.Ptr(offset) }

// abandon releases what a failed build has made.
func (p *program) abandon(err error) error {
	err = async.Fault(p, "compile", err) // records a lost device
	return errors.Join(err, p.Release())
}

// Release frees the program's resources on the device. A lost device has freed them already, and after
// a rank is lost the end of the process does.
func (p *program) Release() error {
	if p.device.lost.Load() || p.ranks.ended() != nil {
		return nil // graphs with collectives of an aborted communicator cannot be destroyed
	}
	var failed error
	if p.stream != nil {
		failed = p.stream.Synchronize()
	}
	for _, e := range p.entries {
		failed = errors.Join(failed, e.release())
	}
	p.ranks.release()
	failed = errors.Join(failed, p.calls.solver.release())
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
	streams := p.graphKernels.captures
	if p.with == nil || p.stream != p.with.stream {
		streams = append(streams, p.copies, p.stream)
	}
	for _, s := range streams {
		if s != nil {
			failed = errors.Join(failed, s.Destroy())
		}
	}
	return failed
}

// Backend returns the name of the backend.
func (p *program) Backend() string { return p.name }

// Ordered returns true: Write and Read use the stream of the runs.
func (p *program) Ordered() bool { return true }

// Write writes a parameter or a state.
func (p *program) Write(s *plan.Slot, data []byte) error {
	return p.stream.Write(p.at(s.Buffer, s.Offset), data)
}

// Read reads a parameter or a state, after the runs begun before.
func (p *program) Read(s *plan.Slot, data []byte) error {
	return p.stream.Read(data, p.at(s.Buffer, s.Offset))
}

// InFlight returns the maximal number of runs in flight.
func (p *program) InFlight(int) int { return inFlight }

// HostDriven returns false: Begin enqueues the whole run.
func (p *program) HostDriven(int) bool { return false }

// NewStage makes a stage for an entry.
func (p *program) NewStage(entry int) (async.Stage, error) { return p.entries[entry].newStage() }
