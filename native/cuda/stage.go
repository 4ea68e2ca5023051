//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/cuda/driver"
	"github.com/rlx-go/rlx/native/collective/nccl"
)

// inFlight is the maximal number of runs in flight of an entry.
const inFlight = 3

// stage is the page-locked host memory of one run: status word, scalars, inputs, outputs.
type stage struct {
	e      *entry
	memory []byte
	event  *driver.Event
	work   []*nccl.Work // the collectives of the run
	begun  atomic.Bool  // the event is that of the run in flight
}

// newStage allocates a stage.
func (e *entry) newStage() (*stage, error) {
	s := &stage{e: e}
	var err error
	if s.memory, err = e.p.device.AllocHost(e.bytes); err != nil {
		return nil, e.p.outOfMemory("the host's memory for inputs and outputs", e.bytes, err)
	}
	if s.event, err = e.p.device.NewEvent(); err != nil {
		return nil, errors.Join(err, e.p.device.ReleaseHost(s.memory))
	}
	return s, nil
}

// of returns the memory of a field.
func (s *stage) of(f *field) []byte { return s.memory[f.offset : f.offset+f.slot.Bytes] }

// Input returns the memory of an input or a scalar.
func (s *stage) Input(i int) []byte { return s.of(&s.e.inputs[i]) }

// Output returns the memory of an output.
func (s *stage) Output(i int) []byte { return s.of(&s.e.outputs[i]) }

// Status returns the status word.
func (s *stage) Status() []byte { return s.memory[:plan.StatusBytes] }

// Done reports whether the last run is done.
func (s *stage) Done() (bool, error) {
	if err := s.e.p.ranks.failed(); err != nil {
		return true, s.end(err)
	}
	done, err := s.event.Done()
	if done || err != nil {
		err = s.end(err)
	}
	return done, err
}

// Release frees the stage. A lost device has freed it already.
func (s *stage) Release() error {
	if s.e.p.device.lost.Load() {
		return nil
	}
	return errors.Join(s.e.p.device.ReleaseHost(s.memory), s.event.Destroy())
}

// Begin enqueues a run that fetches the outputs reads.
func (s *stage) Begin(reads []int) error {
	s.begun.Store(false)
	err := s.begin()
	if err == nil {
		err = s.e.enqueue(s, reads)
	}
	s.begun.Store(err == nil)
	if err != nil {
		s.e.sent = nil
		if len(s.work) > 0 {
			s.e.p.ranks.mesh.World().Abort(fmt.Errorf("%w: %w", errBefore, err))
		}
		err = s.e.drain(s.end(err))
	}
	return err
}

// drain waits, after a failed enqueue, for the work that may still use the stage, unless the
// device is lost. It returns err and the errors of the wait.
func (e *entry) drain(err error) error {
	var failed *driver.Error
	if errors.As(err, &failed) && failed.Lost() {
		return err
	}
	return errors.Join(e.p.copies.Synchronize(), e.p.stream.Synchronize(), err)
}

// send copies the inputs to the device, on the copy stream if they are large.
func (e *entry) send(s *stage) error {
	n := e.overlappedBytes()
	if n == 0 {
		for _, x := range e.spans {
			if err := e.p.stream.Write(e.p.at(x.buffer, x.to), s.memory[x.offset:x.offset+x.bytes]); err != nil {
				return err
			}
		}
		return nil
	}
	first := e.spans[0].offset
	err := errors.Join(
		e.p.copies.Await(e.consumed),
		e.p.copies.Write(e.landing, s.memory[first:first+n]),
		e.p.copies.Record(e.arrived),
		e.p.stream.Await(e.arrived),
	)
	if err != nil {
		return err
	}
	for _, x := range e.spans {
		if err := e.p.stream.Copy(e.p.at(x.buffer, x.to), e.landing+driver.Ptr(x.offset-first), x.bytes); err != nil {
			return err
		}
	}
	return e.p.stream.Record(e.consumed)
}

func (e *entry) enqueue(s *stage, reads []int) error {
	stream := e.p.stream
	if err := e.send(s); err != nil {
		return err
	}
	if err := e.sendScalars(s); err != nil {
		return err
	}
	if err := e.replay(); err != nil {
		return err
	}
	if st := e.p.plan.Status; e.checks {
		if err := stream.Read(s.Status(), e.p.at(st.Buffer, st.Offset)); err != nil {
			return err
		}
	}
	for _, i := range reads {
		o := &e.outputs[i]
		if err := stream.Read(s.of(o), e.p.at(o.slot.Buffer, o.slot.Offset)); err != nil {
			return err
		}
	}
	return stream.Record(s.event)
}

// replay enqueues the steps.
func (e *entry) replay() error {
	if e.graph != nil {
		return e.p.stream.Replay(e.graph)
	}
	r := recorder{entry: e, stream: e.p.stream}
	return r.record()
}

// sendScalars copies the scalars if they changed.
func (e *entry) sendScalars(s *stage) error {
	now := s.memory[e.row : e.row+e.spec.UniformBytes]
	if bytes.Equal(now, e.sent) {
		return nil
	}
	e.sent = append(e.sent[:0], now...)
	return e.p.stream.Write(e.scalars, now)
}
