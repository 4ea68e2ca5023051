//go:build cgo && !js

package exec

import (
	"context"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// InFlight is the maximal number of runs in flight.
const InFlight = 3

// submit submits the work that record encodes, if any, and the copies for a reading of the
// sources, if any.
func (s *Session) submit(ctx context.Context, op string, sources []*plan.Slot, record func() error) (r *Reading, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.inFlight >= InFlight {
		if err := s.drain(ctx); err != nil {
			return nil, err
		}
	}
	if len(sources) > 0 {
		if r, err = s.ring.take(ctx, s, sources); err != nil {
			return nil, err
		}
		defer func(p *staging) {
			if err != nil {
				p.used = nil
			}
		}(r.staging)
	}
	encoder, err := s.d.dev.CreateCommandEncoder(nil)
	if err != nil {
		return nil, s.fail(fromBinding(ErrGPU, op, err))
	}
	s.rec = recorder{encoder: encoder, goesOn: func(o *whileOp) (bool, error) { return s.look(ctx, op, o) }}
	if record != nil {
		err = record()
	}
	if end := s.rec.endPass(); err == nil {
		err = end
	}
	if r != nil && err == nil {
		err = r.copyIn(s.rec.encoder)
	}
	if err != nil {
		s.drop()
		return nil, s.fail(fromBinding(ErrGPU, op, err))
	}
	if err := s.send(op); err != nil {
		return nil, err
	}
	if r != nil {
		r.Step, r.submission = s.steps, s.submitted
	}
	return r, nil
}

// send submits the encoded commands.
func (s *Session) send(op string) error {
	defer s.drop()
	commands, err := s.rec.encoder.Finish(nil)
	if err != nil {
		return s.fail(fromBinding(ErrGPU, op, err))
	}
	s.d.queue.Submit(commands)
	commands.Release()
	s.inFlight++
	s.submitted++
	return nil
}

// drop releases the encoder.
func (s *Session) drop() {
	if s.rec.encoder != nil {
		s.rec.encoder.Release()
		s.rec.encoder = nil
	}
}

// drain waits until the device is idle.
func (s *Session) drain(ctx context.Context) error {
	if err := s.d.drain(ctx); err != nil {
		return err
	}
	s.inFlight = 0
	return nil
}
