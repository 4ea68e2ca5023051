//go:build cgo && !js

package exec

import (
	"context"
	"encoding/binary"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// How many rounds of a loop of unknown length are submitted before the host looks
// whether it goes on: more and more, as a loop that took long may take longer. A round
// too many costs its dispatches, which find no workgroups; a look costs a way to the
// device and back, which on a GPU is some hundred empty dispatches.
const (
	firstRounds = 8
	maxRounds   = 64
)

// whileOp is a loop of unknown trip count: it continues while the word is not 0.
type whileOp struct {
	ops  []op
	word *wgpu.Buffer
	at   uint64
}

func (b *builder) while(s *plan.While, scalars *wgpu.Buffer, stride int) (*whileOp, error) {
	var err error
	if b.look == nil {
		if b.look, err = b.buffer("look", plan.WordBytes, wgpu.BufferUsageMapRead|wgpu.BufferUsageCopyDst); err != nil {
			return nil, err
		}
	}
	w := &whileOp{word: b.buffers[s.Condition.Buffer], at: uint64(s.Condition.Offset)}
	w.ops, err = b.ops(s.Steps, scalars, stride)
	return w, err
}

// while records rounds until the device says that the loop is done.
func (r *recorder) while(o *whileOp, row uint32) error {
	r.depth++
	defer func() { r.depth-- }()
	r.counters[r.depth-1] = 0
	for rounds := firstRounds; ; rounds = min(2*rounds, maxRounds) {
		for range rounds {
			if err := r.record(o.ops, row); err != nil {
				return err
			}
		}
		if going, err := r.goesOn(o); err != nil || !going {
			return err
		}
	}
}

// look submits the recorded commands, waits for them, and reports whether a loop goes on. Later
// commands are recorded from scratch.
func (s *Session) look(ctx context.Context, op string, o *whileOp) (going bool, err error) {
	if err := s.rec.endPass(); err != nil {
		return false, err
	}
	if err := s.rec.encoder.CopyBufferToBuffer(o.word, o.at, s.b.look, 0, plan.WordBytes); err != nil {
		return false, err
	}
	if err := s.send(op); err != nil {
		return false, err
	}
	if err := s.drain(ctx); err != nil {
		return false, err
	}
	if err := s.mapped(s.b.look, plan.WordBytes, func(word []byte) error {
		going = binary.LittleEndian.Uint32(word) != 0
		return nil
	}); err != nil {
		return false, err
	}
	s.rec.encoder, err = s.d.dev.CreateCommandEncoder(nil)
	return going, err
}
