//go:build cgo && (darwin || linux)

package metal

import (
	"slices"

	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native"
)

// entry is one way to run a program.
type entry struct {
	p       *program
	spec    *plan.Entry
	slots   []native.Slot // inputs and scalars, then outputs
	inputs  []*plan.Slot  // by place in slots
	outputs []*plan.Slot  // by place in slots after the inputs
	own     []int         // the plan's buffers that each run has of its own
	results int           // bytes of a stage for outputs
	reads   [][]int       // places of outputs that users fetch; each user has one of these
	checks  bool          // kernels may leave a code in the status word
	stages  []stage
	next    int
}

// inFlight is how many runs of an entry may be under way before the next one waits.
const inFlight = 3

// longEntry is how many dispatches make an entry long: its list of commands is held once,
// not for each run under way.
const longEntry = 1 << 14

func newEntry(p *program, spec *plan.Entry) *entry {
	e := &entry{p: p, spec: spec, slots: p.Slots(spec.Name), stages: make([]stage, inFlight)}
	if spec.Dispatches() > longEntry {
		e.stages = e.stages[:1]
	}
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
	st := p.plan.Status
	e.checks = st != nil && slices.Contains(e.own, st.Buffer)
	return e
}

// roundUp returns the room that a part of a buffer takes.
func roundUp(bytes int) int { return (bytes + plan.RowBytes - 1) / plan.RowBytes * plan.RowBytes }

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
			for _, b := range s.Bindings {
				e.use(b.Buffer)
			}
		case *plan.Copy:
			e.use(s.Src)
		case *plan.Repeat:
			e.useAll(s.Steps)
			e.useAll(s.Odd)
		}
	}
}

// variant returns the number of a choice of outputs to fetch.
func (e *entry) variant(reads []int) int {
	for i, r := range e.reads {
		if slices.Equal(r, reads) {
			return i
		}
	}
	e.reads = append(e.reads, reads)
	return len(e.reads) - 1
}

// busy reports whether a run is under way.
func (e *entry) busy() bool {
	return slices.ContainsFunc(e.stages, func(s stage) bool { return s.user != nil })
}

func (e *entry) release() {
	for i := range e.stages {
		e.stages[i].release()
	}
}
