//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/executor/async"
)

// maxGraph bounds the launches of a graph. A longer entry is launched kernel by kernel, since
// its graph would take more memory than its tensors.
const maxGraph = 1 << 15

// entry is an entry of the plan on the device.
type entry struct {
	p       *program
	spec    *plan.Entry
	inputs  []field // inputs and scalars
	outputs []field
	spans   []span // of inputs, contiguous in a stage
	row     int    // offset of the scalars in a stage
	scalars driver.Ptr
	sent    []byte // the scalars on the device
	checks  bool   // kernels may set the status word
	graph   *driver.Graph
	bytes   int // size of a stage
	// Large inputs are copied to landing while the previous run computes, and from there
	// to their buffers when their run begins.
	landing           driver.Ptr
	arrived, consumed *driver.Event
	exchanges         []exchange // the collectives of a run
	runs              int64      // with collectives, for their record
}

// field is a slot with its offset in a stage.
type field struct {
	slot   *plan.Slot
	offset int
}

// span is a part of a stage that is copied to a buffer at once.
type span struct {
	buffer, to    int
	offset, bytes int
}

func newEntry(p *program, spec *plan.Entry) *entry {
	e := &entry{p: p, spec: spec, checks: async.Checks(p.plan, spec), bytes: plan.RowBytes, exchanges: exchangesOf(p.plan, spec)}
	e.layInputs()
	e.row = e.reserve(spec.UniformBytes)
	for _, i := range spec.Scalars {
		s := &p.plan.Slots[i]
		e.inputs = append(e.inputs, field{s, e.row + s.Offset})
	}
	for _, i := range spec.Outputs {
		s := &p.plan.Slots[i]
		e.outputs = append(e.outputs, field{s, e.reserve(s.Bytes)})
	}
	return e
}

// reserve reserves bytes of a stage.
func (e *entry) reserve(bytes int) (offset int) {
	offset = e.bytes
	e.bytes += roundUp(bytes)
	return offset
}

// layInputs lays out inputs in a stage as on the device, so that one copy serves the inputs of
// a buffer. On the device only inputs of this entry lie between them.
func (e *entry) layInputs() {
	e.inputs = make([]field, len(e.spec.Inputs))
	byBuffer := map[int][]int{}
	for i, s := range e.spec.Inputs {
		slot := &e.p.plan.Slots[s]
		e.inputs[i].slot = slot
		byBuffer[slot.Buffer] = append(byBuffer[slot.Buffer], i)
	}
	for buffer := range e.p.plan.Buffers {
		members := byBuffer[buffer]
		if len(members) == 0 {
			continue
		}
		from, to := e.inputs[members[0]].slot.Offset, 0
		for _, i := range members {
			s := e.inputs[i].slot
			from, to = min(from, s.Offset), max(to, s.Offset+s.Bytes)
		}
		at := e.reserve(to - from)
		for _, i := range members {
			e.inputs[i].offset = at + e.inputs[i].slot.Offset - from
		}
		e.spans = append(e.spans, span{buffer, from, at, to - from})
	}
}

// minOverlap is the least number of input bytes worth the copy stream.
const minOverlap = 64 << 10

// overlappedBytes returns the number of input bytes copied on the copy stream: all or 0.
func (e *entry) overlappedBytes() int {
	if len(e.spans) == 0 {
		return 0
	}
	last := e.spans[len(e.spans)-1]
	if n := last.offset + last.bytes - e.spans[0].offset; n >= minOverlap {
		return n
	}
	return 0
}

// build makes the events and the graph of the entry.
func (e *entry) build() (err error) {
	if e.overlappedBytes() > 0 {
		if e.arrived, err = e.p.device.NewEvent(); err != nil {
			return err
		}
		if e.consumed, err = e.p.device.NewEvent(); err != nil {
			return err
		}
	}
	return e.capture()
}

// capture captures the steps as a graph. Entries in debug mode, very long entries,
// branching entries without support for conditional nodes, and those with calls that cannot be captured have none.
func (e *entry) capture() error {
	n := e.spec.Dispatches()
	if e.p.debug || n == 0 || n > maxGraph || branches(e.spec.Steps) && e.p.graphKernels.condition == nil || !capturesAll(e.p.plan, e.spec) {
		return nil
	}
	record := func() error {
		r := recorder{entry: e, stream: e.p.stream, captures: true}
		return r.record()
	}
	var err error
	e.graph, err = e.p.stream.Capture(e.p.graphKernels.fill, record)
	if errors.Is(err, driver.ErrUnchanged) { // a graph with fill nodes only launches slower
		e.graph, err = e.p.stream.Capture(nil, record)
	}
	return err
}

func (e *entry) release() error {
	var failed error
	if e.graph != nil {
		failed = e.graph.Destroy()
	}
	for _, x := range []*driver.Event{e.arrived, e.consumed} {
		if x != nil {
			failed = errors.Join(failed, x.Destroy())
		}
	}
	return failed
}
