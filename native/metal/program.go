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
	buffers   []driver.Buffer // the plan's, except those of each run
	entries   []*entry
	debug     bool
	budget    native.Budget

	works   []work             // of the plan's kernels
	cuts    []bool             // which of them may run in pieces of their grids
	limit   time.Duration      // estimated time of a command buffer
	begun   int                // number of runs begun
	running []*stage           // runs in flight, oldest first
	torn    map[*plan.Slot]int // partly written parameters and states, by the number of the failed run
}

// build allocates and loads everything that the plan needs.
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

// perRun reports whether each run has a separate copy of a buffer, since the host writes it while
// earlier runs may still read.
func perRun(b plan.Buffer) bool { return b.Kind == plan.InputBuffer || b.Kind == plan.StatusBuffer }

// allocate places the plan's buffers in one heap, zeroed except for the constants.
func (p *program) allocate() error {
	var sizes, numbers []int
	total := 0
	for i, b := range p.plan.Buffers {
		if !perRun(b) {
			sizes, numbers, total = append(sizes, b.Bytes), append(numbers, i), total+b.Bytes
		}
	}
	p.buffers = make([]driver.Buffer, len(p.plan.Buffers))
	if len(sizes) == 0 {
		return nil
	}
	var err error
	if p.heap, err = p.device.NewHeap(sizes); err != nil {
		return p.outOfMemory("the module", total, err)
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

// Release frees the program's resources on the device.
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

// memory returns the shared memory of a parameter or a state.
func (p *program) memory(s *plan.Slot) []byte { return p.buffers[s.Buffer].Bytes[s.Offset:][:s.Bytes] }

// Backend returns the name of the backend.
func (p *program) Backend() string { return Name }

// Ordered returns false: Write and Read access shared memory at once.
func (p *program) Ordered() bool { return false }

// Write writes a parameter or a state.
func (p *program) Write(s *plan.Slot, data []byte) error {
	delete(p.torn, s)
	async.Copy(p.memory(s), data)
	return nil
}

// Read reads a parameter or a state.
func (p *program) Read(s *plan.Slot, data []byte) error {
	if err := p.tornError(s, "get"); err != nil {
		return err
	}
	async.Copy(data, p.memory(s))
	return nil
}

// InFlight returns the maximal number of runs in flight: 1 for very long entries, to hold
// their command list once.
func (p *program) InFlight(entry int) int {
	if p.entries[entry].spec.Dispatches() > longEntry {
		return 1
	}
	return inFlight
}

// HostDriven reports whether the host commits a run in several batches: a loop of unknown
// trip count or a long entry.
func (p *program) HostDriven(entry int) bool {
	return p.entries[entry].loops || p.entries[entry].long()
}

// NewStage makes a stage for an entry.
func (p *program) NewStage(entry int) (async.Stage, error) { return p.entries[entry].newStage() }
