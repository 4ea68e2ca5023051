//go:build cgo && !js

package webgpu

import (
	"encoding/binary"
	"errors"
	"iter"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
)

// entry is an entry of the plan on the device.
type entry struct {
	p       *program
	spec    *plan.Entry
	inputs  []*plan.Slot // inputs and scalars
	outputs []*plan.Slot
	ops     []op
	scalars *wgpu.Buffer // nil without scalars
	checks  bool         // kernels may set the status word
	loops   bool         // has loops of unknown trip count
}

func (p *program) newEntry(spec *plan.Entry) (*entry, error) {
	e := &entry{p: p, spec: spec, checks: async.Checks(p.plan, spec)}
	e.inputs, e.outputs = p.plan.SlotsOf(spec)
	var err error
	if stride := spec.UniformStride(); stride > 0 {
		if e.scalars, err = p.b.ownBuffer(spec.Name+" scalars", stride, wgpu.BufferUsageUniform|wgpu.BufferUsageCopyDst); err != nil {
			return nil, err
		}
	}
	e.ops, err = p.b.ops(spec.Steps, e.scalars)
	e.loops = plan.HasWhile(spec.Steps)
	return e, err
}

// inFlight is the maximal number of runs in flight of an entry.
const inFlight = 3

// stage is the memory of one run in flight.
type stage struct {
	e       *entry
	inputs  [][]byte     // by input, of scalars a part of row
	row     []byte       // the scalars
	results *wgpu.Buffer // the status word and outputs of a run, nil before the first that has some
	size    int          // of results
	used    int          // bytes of results of the run
	places  []int        // of the outputs in results
	memory  []byte       // results after a run, mapped until the next
	rec     recorder
	// resume goes on with the recording of a run that has loops of unknown length, when the device has
	// computed what was recorded, and stop ends it. Both are nil if all is recorded.
	resume func() (error, bool)
	stop   func()
	number int // of the last submission
}

func (e *entry) newStage() *stage {
	s := &stage{e: e, row: make([]byte, e.spec.UniformStride()), places: make([]int, len(e.outputs))}
	for i, slot := range e.inputs {
		if i < len(e.spec.Inputs) {
			s.inputs = append(s.inputs, make([]byte, slot.Bytes))
		} else {
			s.inputs = append(s.inputs, s.row[slot.Offset:][:slot.Bytes])
		}
	}
	return s
}

// Input returns the memory of an input or a scalar, which Begin copies to the device.
func (s *stage) Input(i int) []byte { return s.inputs[i] }

// Output returns the memory of an output after a run.
func (s *stage) Output(i int) []byte { return s.memory[s.places[i]:][:s.e.outputs[i].Bytes] }

// Status returns the status word after a run.
func (s *stage) Status() []byte { return s.memory[:plan.StatusBytes] }

// Begin submits a run that fetches the outputs reads, up to the first condition that the host must see.
func (s *stage) Begin(reads []int) error {
	d := s.e.p.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.reserve(reads); err != nil {
		return err
	}
	if err := s.upload(); err != nil {
		return err
	}
	if !s.e.loops {
		return s.run(reads, nil)
	}
	s.resume, s.stop = iter.Pull(func(yield func(error) bool) {
		if err := s.run(reads, yield); err != nil {
			yield(err)
		}
	})
	return s.goOn()
}

// reserve places the results of a run and makes a buffer for them where there is none as large.
func (s *stage) reserve(reads []int) error {
	if err := s.unmap(); err != nil {
		return err
	}
	s.used = 0
	if s.e.checks {
		s.used = plan.StatusBytes
	}
	for _, i := range reads {
		s.places[i] = s.used
		s.used += s.e.outputs[i].Bytes
	}
	if s.used <= s.size {
		return nil
	}
	s.releaseResults()
	made, err := s.e.p.device.buffer("results", s.used, wgpu.BufferUsageMapRead|wgpu.BufferUsageCopyDst)
	if err != nil {
		return err
	}
	s.results, s.size = made, s.used
	return nil
}

// upload copies the inputs to the device, after the runs before, and clears the status word.
func (s *stage) upload() error {
	p := s.e.p
	for i, slot := range s.e.inputs[:len(s.e.spec.Inputs)] {
		if err := p.write(slot.Buffer, slot.Offset, s.inputs[i]); err != nil {
			return err
		}
	}
	if s.e.checks {
		if err := p.write(p.plan.Status.Buffer, p.plan.Status.Offset, make([]byte, plan.StatusBytes)); err != nil {
			return err
		}
	}
	if len(s.row) == 0 {
		return nil
	}
	return p.device.queue.WriteBuffer(s.e.scalars, 0, s.row)
}

// run records the run and submits it. It calls wait where the device must first compute what was
// submitted; it gives up if that returns false.
func (s *stage) run(reads []int, wait func(error) bool) error {
	d := s.e.p.device
	s.rec = recorder{goesOn: func(o *whileOp) (bool, error) { return s.look(o, wait) }}
	defer s.rec.drop()
	if err := s.rec.begin(d); err != nil {
		return err
	}
	if err := s.rec.record(s.e.ops); err != nil {
		return err
	}
	if err := s.fetch(reads); err != nil {
		return err
	}
	err := s.rec.submit(d)
	s.number = d.submitted
	return err
}

// fetch records the copies of the results.
func (s *stage) fetch(reads []int) error {
	p := s.e.p
	copyOut := func(buffer, offset, at, bytes int) error {
		if bytes == 0 {
			return nil
		}
		return s.rec.copy(p.b.buffers[buffer], uint64(offset), s.results, uint64(at), uint64(bytes))
	}
	if s.e.checks {
		if err := copyOut(p.plan.Status.Buffer, p.plan.Status.Offset, 0, plan.StatusBytes); err != nil {
			return err
		}
	}
	for _, i := range reads {
		slot := s.e.outputs[i]
		if err := copyOut(slot.Buffer, slot.Offset, s.places[i], slot.Bytes); err != nil {
			return err
		}
	}
	return nil
}

// errStopped ends the recording of a run whose stage is released.
var errStopped = errors.New("the run is given up")

// look submits the recorded commands, waits for them, and reports whether a loop goes on. Later
// commands are recorded from scratch.
func (s *stage) look(o *whileOp, wait func(error) bool) (going bool, err error) {
	d, to := s.e.p.device, s.e.p.b.look
	if err := s.rec.copy(o.word, o.at, to, 0, plan.WordBytes); err != nil {
		return false, err
	}
	if err := s.rec.submit(d); err != nil {
		return false, err
	}
	s.number = d.submitted
	if !wait(nil) {
		return false, errStopped
	}
	word, err := d.mapped(to, plan.WordBytes)
	if err != nil {
		return false, err
	}
	going = binary.LittleEndian.Uint32(word) != 0
	return going, errors.Join(to.Unmap(), s.rec.begin(d))
}

// goOn records and submits up to the next condition that the host must see, or the end.
func (s *stage) goOn() error {
	err, more := s.resume()
	if !more || err != nil {
		s.giveUp()
	}
	return err
}

// giveUp ends the recording of a run with loops.
func (s *stage) giveUp() {
	if s.stop != nil {
		s.stop()
	}
	s.resume, s.stop = nil, nil
}

// Done reports whether the last run is done, and goes on with one that has loops.
func (s *stage) Done() (bool, error) {
	d := s.e.p.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.reached(s.number) {
		return false, nil
	}
	if s.resume != nil {
		err := s.goOn()
		return err != nil, err
	}
	if s.used == 0 {
		return true, nil
	}
	var err error
	s.memory, err = d.mapped(s.results, s.used)
	return true, err
}

// unmap gives the results' memory back to the device.
func (s *stage) unmap() error {
	if s.memory == nil {
		return nil
	}
	s.memory = nil
	return s.results.Unmap()
}

func (s *stage) releaseResults() {
	if s.results != nil {
		s.results.Release()
	}
	s.results, s.size = nil, 0
}

// Release frees the stage.
func (s *stage) Release() error {
	d := s.e.p.device
	d.mu.Lock()
	defer d.mu.Unlock()
	s.giveUp()
	err := s.unmap()
	s.releaseResults()
	return err
}
