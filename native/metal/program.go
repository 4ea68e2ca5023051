//go:build cgo && (darwin || linux)

package metal

import (
	"context"
	"os"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/internal/metal/driver"
	"github.com/rlx-go/rlx/native"
)

// program is a plan on the GPU with its memory.
type program struct {
	*async.Program
	device *device
	plan   *plan.Plan

	pipelines []driver.Pipeline // of the plan's kernels
	heap      *driver.Heap
	buffers   []driver.Buffer // the plan's, but for those that each run has of its own
	entries   []*entry
	debug     bool
	budget    native.Budget

	works   []work             // of the plan's kernels
	cuts    []bool             // which of them run by pieces of their grids
	limit   time.Duration      // of a command buffer, by estimate
	begun   int                // runs
	running []*stage           // in the order in which their runs were begun
	doubt   map[*plan.Slot]int // parameters and states that may be written in part, by the run that failed
}

// build makes all that the plan needs.
func (p *program) build(ctx context.Context) error {
	p.debug = os.Getenv("RLX_METAL_DEBUG") != ""
	if err := p.load(ctx); err != nil {
		return err
	}
	for i := range p.plan.Entries {
		p.entries = append(p.entries, newEntry(p, &p.plan.Entries[i]))
	}
	return p.allocate()
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

// Release gives back all that the program has on the device.
func (p *program) Release() error {
	for _, x := range p.pipelines {
		x.Release()
	}
	if p.heap != nil {
		p.heap.Release()
	}
	p.pipelines, p.heap = nil, nil
	return nil
}

// memory is where a parameter or a state lies, which host and GPU share.
func (p *program) memory(s *plan.Slot) []byte { return p.buffers[s.Buffer].Bytes[s.Offset:][:s.Bytes] }

// Backend returns the name of the backend.
func (p *program) Backend() string { return Name }

// Ordered: what the host writes is there at once, before the runs under way are over.
func (p *program) Ordered() bool { return false }

// Write writes a parameter or a state.
func (p *program) Write(s *plan.Slot, data []byte) error {
	delete(p.doubt, s)
	async.Copy(p.memory(s), data)
	return nil
}

// Read reads a parameter or a state.
func (p *program) Read(s *plan.Slot, data []byte) error {
	if err := p.doubtOf(s, "get"); err != nil {
		return err
	}
	async.Copy(data, p.memory(s))
	return nil
}

// InFlight returns how many runs of an entry may be under way. The list of commands of a
// very long entry is held once, not for each.
func (p *program) InFlight(entry int) int {
	if p.entries[entry].spec.Dispatches() > longEntry {
		return 1
	}
	return inFlight
}

// HostDriven reports whether an entry has a loop of unknown length, of which the host begins
// round after round, or is long, of which it begins some command buffers at a time.
func (p *program) HostDriven(entry int) bool { return p.entries[entry].loops || p.entries[entry].long() }

// NewStage makes the stage of one more run of an entry.
func (p *program) NewStage(entry int) (async.Stage, error) { return p.entries[entry].newStage() }
