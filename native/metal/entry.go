//go:build cgo && (darwin || linux)

package metal

import (
	"slices"
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/ir/loop"
)

// entry is one way to run a program.
type entry struct {
	p       *program
	spec    *plan.Entry
	inputs  []*plan.Slot  // by their places among the inputs and scalars
	outputs []*plan.Slot  // by their places among the outputs
	own     []int         // the plan's buffers that each run has of its own
	results int           // bytes of a stage for outputs
	checks  bool          // kernels may leave a code in the status word
	loops   bool          // there are loops of unknown length
	time    time.Duration // that it takes, by estimate
	touches []*plan.Slot  // parameters and states that it reads or writes
	writes  []*plan.Slot  // those that it writes
}

// longEntry is how many dispatches make an entry long: its list of commands is held once,
// not for each run under way.
const longEntry = 1 << 14

func newEntry(p *program, spec *plan.Entry) *entry {
	e := &entry{p: p, spec: spec, checks: async.Checks(p.plan, spec)}
	for _, i := range slices.Concat(spec.Inputs, spec.Scalars) {
		e.inputs = append(e.inputs, &p.plan.Slots[i])
	}
	for _, i := range spec.Outputs {
		s := &p.plan.Slots[i]
		e.outputs = append(e.outputs, s)
		e.results += roundUp(s.Bytes)
	}
	for _, s := range e.inputs[:len(spec.Inputs)] {
		e.use(s.Buffer)
	}
	for _, s := range e.outputs {
		e.use(s.Buffer)
	}
	e.useAll(spec.Steps)
	e.time = p.time(spec.Steps)
	return e
}

// long reports whether the entry takes more than a command buffer may.
func (e *entry) long() bool { return e.time > e.p.limit }

// roundUp returns the room that a part of a buffer takes.
func roundUp(bytes int) int { return (bytes + plan.RowBytes - 1) / plan.RowBytes * plan.RowBytes }

// persist notes the parameters and states in a window that is read or written.
func (e *entry) persist(b plan.Binding, written bool) {
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

// use notes a buffer that each run has of its own.
func (e *entry) use(buffer int) {
	if ofRun(e.p.plan.Buffers[buffer]) && !slices.Contains(e.own, buffer) {
		e.own = append(e.own, buffer)
	}
}

func (e *entry) useAll(steps []plan.Step) {
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Dispatch:
			for i, b := range s.Bindings {
				e.use(b.Buffer)
				e.persist(b, e.p.plan.Kernels[s.Kernel].Storage[i] != loop.Read)
			}
		case *plan.Copy:
			e.use(s.Src)
			e.persist(plan.Binding{Buffer: s.Src, Offset: s.SrcOffset, Bytes: s.Bytes}, false)
			e.persist(plan.Binding{Buffer: s.Dst, Offset: s.DstOffset, Bytes: s.Bytes}, true)
		case *plan.Repeat:
			e.useAll(s.Steps)
			e.useAll(s.Odd)
		case *plan.While:
			e.loops = true
			e.useAll(s.Steps)
		}
	}
}
