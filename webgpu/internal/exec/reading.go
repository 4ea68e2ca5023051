//go:build cgo && !js

package exec

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// readings is the maximal number of readings in flight.
const readings = 4

// Reading is a set of values in flight from the device.
type Reading struct {
	// Step is the number of steps run before the values were read.
	Step int

	s          *Session
	staging    *staging
	sources    []*plan.Slot
	bytes      int
	submission int
	values     map[string]Tensor
	err        error
	done       bool
}

// staging is a staging buffer with its reading.
type staging struct {
	buffer *wgpu.Buffer
	bytes  int
	used   *Reading // nil for a free one
}

// ring is a ring of staging buffers, which grow as needed.
type ring struct {
	stagings [readings]staging
	next     int
	// The last submission whose failed check was reported; later submissions began with a
	// clear status word.
	cleared int
}

func (g *ring) make(b *builder, bytes int) error {
	for i := range g.stagings {
		if err := g.stagings[i].make(b, bytes); err != nil {
			return err
		}
	}
	return nil
}

// make allocates a buffer for the given bytes and the status word.
func (p *staging) make(b *builder, bytes int) error {
	p.bytes = plan.StatusBytes + bytes
	made, err := b.buffer("staging", p.bytes, wgpu.BufferUsageMapRead|wgpu.BufferUsageCopyDst)
	if err != nil {
		return err
	}
	if p.buffer != nil {
		at := slices.Index(b.owned, releaser(p.buffer))
		b.owned = slices.Delete(b.owned, at, at+1)
		p.buffer.Release()
	}
	p.buffer = made
	return nil
}

// take returns a reading in the next staging buffer. If that is in use, it first collects
// its reading, which waits for the device.
func (g *ring) take(ctx context.Context, s *Session, sources []*plan.Slot) (*Reading, error) {
	r := &Reading{s: s, sources: sources}
	for _, slot := range sources {
		r.bytes += slot.Bytes
	}
	p := &g.stagings[g.next]
	if p.used != nil {
		if _, err := p.used.collect(ctx); err != nil && !p.used.done {
			return nil, err
		}
	}
	if p.bytes < plan.StatusBytes+r.bytes {
		if err := p.make(s.b, r.bytes); err != nil {
			return nil, err
		}
	}
	g.next = (g.next + 1) % readings
	p.used = r
	r.staging = p
	return r, nil
}

// copyIn records the copies: the status word, then the sources.
func (r *Reading) copyIn(encoder *wgpu.CommandEncoder) error {
	at := uint64(0)
	buffers := r.s.b.buffers
	if st := r.s.p.Status; st != nil {
		if err := encoder.CopyBufferToBuffer(buffers[st.Buffer], uint64(st.Offset), r.staging.buffer, 0, plan.StatusBytes); err != nil {
			return err
		}
		at = plan.StatusBytes
	}
	for _, slot := range r.sources {
		if slot.Bytes == 0 {
			continue
		}
		if err := encoder.CopyBufferToBuffer(buffers[slot.Buffer], uint64(slot.Offset), r.staging.buffer, at, uint64(slot.Bytes)); err != nil {
			return err
		}
		at += uint64(slot.Bytes)
	}
	return nil
}

// Wait waits for the values and returns them by name. An error of kind [ir.ErrIndex] is a
// failed check in a kernel: it names the node, and parameters and states are unchanged.
// Wait may be called again.
func (r *Reading) Wait(ctx context.Context) (map[string]Tensor, error) {
	if err := r.s.lock(ctx, "read"); err != nil {
		return nil, err
	}
	defer r.s.unlock()
	return r.collect(ctx)
}

// collect is Wait with the device locked.
func (r *Reading) collect(ctx context.Context) (map[string]Tensor, error) {
	if r.done {
		return r.values, r.err
	}
	if err := r.s.drain(ctx); err != nil {
		return nil, err
	}
	r.done = true
	r.staging.used = nil
	r.values, r.err = r.fetch()
	return r.values, r.err
}

// fetch maps the staging buffer. The device must be idle.
func (r *Reading) fetch() (values map[string]Tensor, err error) {
	bytes := r.bytes
	if r.s.p.Status != nil {
		bytes += plan.StatusBytes
	}
	if bytes == 0 {
		return r.decode(nil)
	}
	err = r.s.mapped(r.staging.buffer, bytes, func(data []byte) (err error) {
		values, err = r.decode(data)
		return err
	})
	return values, err
}

// mapped calls see with the first bytes of a buffer. The device must be idle, so that the
// callback fires at the next poll: the binding does not keep it alive longer.
func (s *Session) mapped(buffer *wgpu.Buffer, bytes int, see func([]byte) error) error {
	status := wgpu.BufferMapAsyncStatusUnknown
	called := false
	err := buffer.MapAsync(wgpu.MapModeRead, 0, uint64(bytes), func(s wgpu.BufferMapAsyncStatus) { status, called = s, true })
	for err == nil && !called {
		s.d.dev.Poll(false, nil)
	}
	switch {
	case err != nil:
		return s.fail(fromBinding(ErrGPU, "read", err))
	case status == wgpu.BufferMapAsyncStatusDeviceLost:
		return s.fail(&Error{Kind: ErrLost, Op: "read"})
	case status != wgpu.BufferMapAsyncStatusSuccess:
		return &Error{Kind: ErrGPU, Op: "read", Msg: "mapping failed: " + status.String()}
	}
	err = see(buffer.GetMappedRange(0, uint(bytes)))
	if e := buffer.Unmap(); e != nil && err == nil {
		err = fromBinding(ErrGPU, "read", e)
	}
	return err
}

func (r *Reading) decode(data []byte) (map[string]Tensor, error) {
	if r.s.p.Status != nil {
		if err := r.checkStatus(data[:plan.StatusBytes]); err != nil {
			return nil, err
		}
		data = data[plan.StatusBytes:]
	}
	values := make(map[string]Tensor, len(r.sources))
	for _, slot := range r.sources {
		values[slot.Name] = fromDevice(slot, data[:slot.Bytes])
		data = data[slot.Bytes:]
	}
	return values, nil
}

// checkStatus returns the error encoded in the status word and clears the word.
func (r *Reading) checkStatus(words []byte) error {
	code := binary.LittleEndian.Uint32(words)
	if code == 0 {
		return nil
	}
	s, st := r.s, r.s.p.Status
	if r.submission > s.ring.cleared {
		s.ring.cleared = s.submitted
		if err := s.d.queue.WriteBuffer(s.b.buffers[st.Buffer], uint64(st.Offset), make([]byte, plan.StatusBytes)); err != nil {
			return fromBinding(ErrGPU, "status", err)
		}
	}
	detail := [3]uint32{}
	for i := range detail {
		detail[i] = binary.LittleEndian.Uint32(words[4*i+4:])
	}
	e := &Error{Kind: ir.ErrIndex, Msg: fmt.Sprintf("code %d %v", code, detail)}
	for _, c := range st.Codes {
		if c.Code == code {
			e.Node, e.Op, e.Msg = c.Node, c.Node, fmt.Sprintf("%s %v", c.Message, detail)
		}
	}
	return e
}
