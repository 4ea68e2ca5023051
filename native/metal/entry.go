//go:build cgo && (darwin || linux)

package metal

import (
	"slices"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/ir/loop"
)

// entry is an entry of the plan on the device.
type entry struct {
	p       *program
	spec    *plan.Entry
	inputs  []*plan.Slot  // inputs and scalars
	outputs []*plan.Slot  // by their places among the outputs
	own     []int         // the buffers that each run has separately
	results int           // size of the outputs in a stage
	checks  bool          // kernels may set the status word
	loops   bool          // has loops of unknown trip count
	time    time.Duration // estimated
	touches []*plan.Slot  // parameters and states that it accesses
	writes  []*plan.Slot  // the parameters and states that it writes
}

// longEntry is the number of dispatches from which on an entry holds its command list only
// once.
const longEntry = 1 << 14

func newEntry(p *program, spec *plan.Entry) *entry {
	e := &entry{p: p, spec: spec, checks: async.Checks(p.plan, spec)}
	e.inputs, e.outputs = p.plan.SlotsOf(spec)
	for _, s := range e.inputs[:len(spec.Inputs)] {
		e.use(s.Buffer)
	}
	for _, s := range e.outputs {
		e.results += roundUp(s.Bytes)
		e.use(s.Buffer)
	}
	e.useAll(spec.Steps)
	e.time = p.time(spec.Steps)
	return e
}

// long reports whether the entry exceeds the time limit of a command buffer.
func (e *entry) long() bool { return e.time > e.p.limit }

// roundUp rounds a size up to the alignment of parts of a buffer.
func roundUp(bytes int) int { return (bytes + plan.RowBytes - 1) / plan.RowBytes * plan.RowBytes }

// notePersistent records the parameters and states in a window that is read or written.
func (e *entry) notePersistent(b plan.Binding, written bool) {
	if e.p.plan.Buffers[b.Buffer].Kind != plan.StateBuffer {
		return
	}
	for i := range e.p.plan.Slots {
		s := &e.p.plan.Slots[i]
		if !s.Role.Persistent() || s.Buffer != b.Buffer || s.Offset >= b.Offset+b.Bytes || b.Offset >= s.Offset+s.Bytes {
			continue
		}
		if !slices.Contains(e.touches, s) {
			e.touches = append(e.touches, s)
		}
		if written && !slices.Contains(e.writes, s) {
			e.writes = append(e.writes, s)
		}
	}
}

// use records a buffer that each run has separately.
func (e *entry) use(buffer int) {
	if perRun(e.p.plan.Buffers[buffer]) && !slices.Contains(e.own, buffer) {
		e.own = append(e.own, buffer)
	}
}

func (e *entry) useAll(steps []plan.Step) {
	for s := range plan.Each(steps) {
		switch s := s.(type) {
		case *plan.Dispatch:
			for i, b := range s.Bindings {
				e.use(b.Buffer)
				e.notePersistent(b, e.p.plan.Kernels[s.Kernel].Storage[i] != loop.Read)
			}
		case *plan.Copy:
			e.use(s.Src)
			e.notePersistent(plan.Binding{Buffer: s.Src, Offset: s.SrcOffset, Bytes: s.Bytes}, false)
			e.notePersistent(plan.Binding{Buffer: s.Dst, Offset: s.DstOffset, Bytes: s.Bytes}, true)
		case *plan.While:
			e.loops = true
		}
	}
}
