//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"errors"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/internal/executor/async"
)

// maxGraph is how many launches a graph may have. A longer entry, a loop of many
// steps, is launched kernel by kernel: its graph would take more memory than its
// tensors.
const maxGraph = 1 << 15

// entry is one way to run a program.
type entry struct {
	p       *program
	spec    *plan.Entry
	inputs  []field // by their places among the inputs and scalars
	outputs []field // by their places among the outputs
	spans   []span  // of inputs, one after the other
	row     int     // where in a stage the scalars lie
	scalars driver.Ptr
	sent    []byte // the scalars that the device has
	checks  bool   // kernels may leave a code in the status word
	graph   *driver.Graph
	bytes   int // of a stage
	// Inputs of some size arrive here, while the run before computes, and are
	// copied to their places at the beginning of their run.
	landing           driver.Ptr
	arrived, consumed *driver.Event
}

// field is where in a stage the host's side of a slot lies.
type field struct {
	slot   *plan.Slot
	offset int
}

// span is a part of a stage that is copied to a buffer as it is.
type span struct {
	buffer, to    int
	offset, bytes int
}

func newEntry(p *program, spec *plan.Entry) *entry {
	e := &entry{p: p, spec: spec, checks: async.Checks(p.plan, spec), bytes: plan.RowBytes}
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

// reserve sets room of a stage aside.
func (e *entry) reserve(bytes int) (offset int) {
	offset = e.bytes
	e.bytes += roundUp(bytes)
	return offset
}

// layInputs lays inputs out in a stage as they lie on the device, so that those
// of one buffer are copied at once. Nothing but inputs of this entry lies
// between them there.
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

// minOverlap is how many bytes of inputs are worth a stream of their own.
const minOverlap = 64 << 10

// overlappedBytes returns how many bytes of inputs are copied while the run before
// computes: all of them, or none.
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

// build makes what the entry needs on the device.
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

// capture makes a graph of the steps. Where no graph can branch, for the driver or NVRTC is
// too old, steps that do are asked for in each run.
func (e *entry) capture() error {
	n := e.spec.Dispatches()
	if e.p.debug || n == 0 || n > maxGraph || branches(e.spec.Steps) && e.p.condition == nil {
		return nil
	}
	record := func() error {
		r := recorder{entry: e, stream: e.p.stream, captures: true}
		return r.record()
	}
	var err error
	e.graph, err = e.p.stream.Capture(e.p.fill, record)
	if errors.Is(err, driver.ErrUnchanged) { // its launch takes the host longer, and that is all
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
