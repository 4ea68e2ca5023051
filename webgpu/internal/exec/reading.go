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

// readings is how many readings can be under way.
const readings = 4

// Reading is values on their way from the device.
type Reading struct {
	// Step is how many steps had been run when the values were taken.
	Step int

	s          *Session
	place      *place
	sources    []*plan.Slot
	bytes      int
	submission int
	values     map[string]Tensor
	err        error
	done       bool
}

// place is a staging buffer.
type place struct {
	buffer *wgpu.Buffer
	bytes  int
	used   *Reading // nil for a free one
}

// ring is the staging buffers, made once. One that is too small for a reading
// is made anew.
type ring struct {
	places [readings]place
	next   int
	// The last submission whose failed check was reported: later ones had the
	// status word cleared before them.
	cleared int
}

func (g *ring) make(b *builder, bytes int) error {
	for i := range g.places {
		if err := g.places[i].make(b, bytes); err != nil {
			return err
		}
	}
	return nil
}

// make gives the place a buffer for so many bytes and the status word.
func (p *place) make(b *builder, bytes int) error {
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

// take gives a reading the next place. If that is still in use, its reading is
// collected first, which waits for the device.
func (g *ring) take(ctx context.Context, s *Session, sources []*plan.Slot) (*Reading, error) {
	r := &Reading{s: s, sources: sources}
	for _, slot := range sources {
		r.bytes += slot.Bytes
	}
	p := &g.places[g.next]
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
	r.place = p
	return r, nil
}

// copyIn records the copies: the status word, then the sources.
func (r *Reading) copyIn(encoder *wgpu.CommandEncoder) error {
	at := uint64(0)
	buffers := r.s.b.buffers
	if st := r.s.p.Status; st != nil {
		if err := encoder.CopyBufferToBuffer(buffers[st.Buffer], uint64(st.Offset), r.place.buffer, 0, plan.StatusBytes); err != nil {
			return err
		}
		at = plan.StatusBytes
	}
	for _, slot := range r.sources {
		if slot.Bytes == 0 {
			continue
		}
		if err := encoder.CopyBufferToBuffer(buffers[slot.Buffer], uint64(slot.Offset), r.place.buffer, at, uint64(slot.Bytes)); err != nil {
			return err
		}
		at += uint64(slot.Bytes)
	}
	return nil
}

// Wait returns the values by name once the device has come to them. An error of
// kind [ir.ErrIndex] is a check that failed in a kernel: it names the node, and
// parameters and states are as they were before. Wait may be called again.
func (r *Reading) Wait(ctx context.Context) (map[string]Tensor, error) {
	if err := r.s.lock(ctx, "read"); err != nil {
		return nil, err
	}
	defer r.s.unlock()
	return r.collect(ctx)
}

// collect is Wait for those who hold the device.
func (r *Reading) collect(ctx context.Context) (map[string]Tensor, error) {
	if r.done {
		return r.values, r.err
	}
	if err := r.s.drain(ctx); err != nil {
		return nil, err
	}
	r.done = true
	r.place.used = nil
	r.values, r.err = r.fetch()
	return r.values, r.err
}

// fetch maps the staging buffer, once all work is done.
func (r *Reading) fetch() (values map[string]Tensor, err error) {
	bytes := r.bytes
	if r.s.p.Status != nil {
		bytes += plan.StatusBytes
	}
	if bytes == 0 {
		return r.decode(nil)
	}
	err = r.s.mapped(r.place.buffer, bytes, func(data []byte) (err error) {
		values, err = r.decode(data)
		return err
	})
	return values, err
}

// mapped shows the first bytes of a buffer to see. All work has to be done, so that the
// callback comes at the next poll: the binding does not keep it alive for longer.
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

// checkStatus returns what the status word says, and clears it for the runs to
// come.
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
