//go:build cgo && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/plan"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/cuda/driver"
)

// inFlight is how many runs of an entry may be under way before the next one
// waits.
const inFlight = 3

// stage is host memory of one run: the status word, scalars, inputs, outputs.
type stage struct {
	memory []byte
	event  *driver.Event
	user   user // of the run under way; nil for a stage that is free
}

// user is who wants a run. Its methods are called with the program locked.
type user interface {
	// put writes the inputs into a stage.
	put(stage []byte)
	// take is told that the run is over, with its stage or an error.
	take(stage []byte, err error)
}

// start asks for a run with the inputs of a user, whose outputs of the given
// places are read. It waits for nothing but a free stage.
func (e *entry) start(ctx context.Context, u user, reads []int) error {
	if err := e.p.usable(e.spec.Name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return e.p.fault(e.spec.Name, err)
	}
	s, err := e.free(ctx)
	if err != nil {
		return err
	}
	u.put(s.memory)
	e.p.runs++
	if err := e.enqueue(s, reads); err != nil {
		e.p.runs--
		e.sent = nil
		return e.p.fault(e.spec.Name, e.giveUp(err))
	}
	s.user = u
	return nil
}

// giveUp waits for what was asked for before a failure, which may still use the
// stage. Where that fails, it is why.
func (e *entry) giveUp(err error) error {
	var failed *driver.Error
	if errors.As(err, &failed) && failed.Lost() {
		return err
	}
	return errors.Join(e.p.copies.Synchronize(), e.p.stream.Synchronize(), err)
}

// free returns a stage that is free, after the run that has it is over. Others
// may start runs meanwhile, and take it.
func (e *entry) free(ctx context.Context) (*stage, error) {
	for {
		s := &e.stages[e.next]
		if s.user == nil {
			e.next = (e.next + 1) % inFlight
			return s, e.prepare(s)
		}
		if err := e.p.await(ctx, e.spec.Name, s.event); err != nil {
			return nil, err
		}
		e.collect()
	}
}

// prepare makes what a stage is made of, once.
func (e *entry) prepare(s *stage) (err error) {
	if s.event != nil {
		return nil
	}
	if s.memory == nil {
		if s.memory, err = e.p.device.AllocHost(e.bytes); err != nil {
			return e.p.fault(e.spec.Name, e.p.tooMuch("the host's memory for inputs and outputs", e.bytes, err))
		}
	}
	s.event, err = e.p.device.NewEvent()
	return e.p.fault(e.spec.Name, err)
}

// send copies the inputs.
func (e *entry) send(s *stage) error {
	n := e.arriving()
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
		e.p.copies.Write(e.arrival, s.memory[first:first+n]),
		e.p.copies.Record(e.arrived),
		e.p.stream.Await(e.arrived),
	)
	if err != nil {
		return err
	}
	for _, x := range e.spans {
		if err := e.p.stream.Copy(e.p.at(x.buffer, x.to), e.arrival+driver.Ptr(x.offset-first), x.bytes); err != nil {
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
		if err := stream.Read(s.memory[:plan.StatusBytes], e.p.at(st.Buffer, st.Offset)); err != nil {
			return err
		}
	}
	for _, i := range reads {
		o := &e.outputs[i]
		if err := stream.Read(s.memory[o.offset:o.offset+o.slot.Bytes], e.p.at(o.slot.Buffer, o.slot.Offset)); err != nil {
			return err
		}
	}
	return stream.Record(s.event)
}

// replay asks for the steps.
func (e *entry) replay() error {
	if e.graph != nil {
		return e.p.stream.Replay(e.graph)
	}
	r := recorder{entry: e, stream: e.p.stream}
	return r.record()
}

// sendScalars copies the scalars unless the device has them.
func (e *entry) sendScalars(s *stage) error {
	now := s.memory[e.row : e.row+e.spec.UniformBytes]
	if bytes.Equal(now, e.sent) {
		return nil
	}
	e.sent = append(e.sent[:0], now...)
	return e.p.stream.Write(e.scalars, now)
}

// collect gives the stages of runs that are over to their users, the oldest
// first.
func (e *entry) collect() {
	for i := range e.stages {
		s := &e.stages[(e.next+i)%inFlight]
		if s.user == nil {
			continue
		}
		ok, err := s.event.Happened()
		if !ok && err == nil {
			return
		}
		if err == nil && e.checks {
			err = e.status(s.memory)
		}
		u := s.user
		s.user = nil
		u.take(s.memory, e.p.fault(e.spec.Name, err))
	}
}

// status returns what the status word of a stage says.
func (e *entry) status(stage []byte) error {
	code := binary.LittleEndian.Uint32(stage)
	if code == 0 {
		return nil
	}
	for _, c := range e.p.plan.Status.Codes {
		if c.Code == code {
			return &native.Error{Backend: e.p.name, Call: e.spec.Name, Kind: ir.ErrIndex, Node: c.Node, Err: ir.Errorf(ir.ErrIndex, "%s", c.Message)}
		}
	}
	return ir.Errorf(ir.ErrIndex, "a check failed with code %d", code)
}
