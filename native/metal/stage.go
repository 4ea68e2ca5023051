//go:build cgo && (darwin || linux)

package metal

import (
	"time"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/metal/driver"
)

// inFlight is the maximal number of runs in flight of an entry.
const inFlight = 3

// stage is the memory and the command lists of one run in flight.
type stage struct {
	e       *entry
	heap    *driver.Heap
	buffers map[int]driver.Buffer // the plan's buffers that each run has separately
	scalars driver.Buffer
	results driver.Buffer // copies of outputs that the next run overwrites
	made    []variant
	limit   time.Duration // the time limit that made was built for
	// The run in flight:
	run   []committed // command buffers in flight
	parts []part      // all parts of the run
	next  int         // the part to commit next, or whose condition to check
	times int         // how often to commit a part that loops to itself
	// number is the run's number in the program, from 1. torn is set if parameters or
	// states may be partly written when it fails. lostBy is the number of the failed run
	// that this run depends on, or 0.
	number int
	torn   bool
	lostBy int
}

// newStage allocates a stage.
func (e *entry) newStage() (*stage, error) {
	var sizes []int
	total := 0
	for _, n := range e.own {
		sizes = append(sizes, e.p.plan.Buffers[n].Bytes)
	}
	sizes = append(sizes, max(e.spec.UniformBytes, plan.RowBytes), max(e.results, plan.RowBytes))
	for _, n := range sizes {
		total += n
	}
	heap, err := e.p.device.NewHeap(sizes)
	if err != nil {
		return nil, e.p.outOfMemory("memory for inputs and outputs", total, err)
	}
	for _, b := range heap.Buffers {
		clear(b.Bytes)
	}
	s := &stage{e: e, heap: heap, buffers: map[int]driver.Buffer{}}
	for i, n := range e.own {
		s.buffers[n] = heap.Buffers[i]
	}
	s.scalars, s.results = heap.Buffers[len(e.own)], heap.Buffers[len(e.own)+1]
	return s, nil
}

// at returns a location in a buffer of the plan, as seen by the run.
func (s *stage) at(buffer, offset int) driver.Place {
	if b, ok := s.buffers[buffer]; ok {
		return driver.Place{Buffer: b, Offset: offset}
	}
	return driver.Place{Buffer: s.e.p.buffers[buffer], Offset: offset}
}

// Input returns the memory of an input or a scalar, which kernels read.
func (s *stage) Input(i int) []byte {
	slot, from := s.e.inputs[i], s.scalars
	if i < len(s.e.spec.Inputs) {
		from = s.buffers[slot.Buffer]
	}
	return from.Bytes[slot.Offset:][:slot.Bytes]
}

// inStage reports whether an output lies in memory of the run, so that it need not be
// copied.
func (s *stage) inStage(i int) bool {
	_, ok := s.buffers[s.e.outputs[i].Buffer]
	return ok
}

// result returns the location of an output after the run.
func (s *stage) result(i int) driver.Place {
	if slot := s.e.outputs[i]; s.inStage(i) {
		return s.at(slot.Buffer, slot.Offset)
	}
	offset := 0
	for _, o := range s.e.outputs[:i] {
		offset += roundUp(o.Bytes)
	}
	return driver.Place{Buffer: s.results, Offset: offset}
}

// Output returns the memory of an output after a run.
func (s *stage) Output(i int) []byte {
	at := s.result(i)
	return at.Buffer.Bytes[at.Offset:][:s.e.outputs[i].Bytes]
}

// Status returns the status word of a run.
func (s *stage) Status() []byte {
	st := s.e.p.plan.Status
	return s.buffers[st.Buffer].Bytes[st.Offset:][:plan.StatusBytes]
}

// Release frees the stage.
func (s *stage) Release() error {
	for _, r := range s.run {
		r.Forget()
	}
	s.releaseCommands()
	s.heap.Release()
	return nil
}

func (s *stage) releaseCommands() {
	for _, v := range s.made {
		for _, p := range v.parts {
			p.list.Release()
		}
	}
	s.made = nil
}
