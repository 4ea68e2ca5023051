//go:build cgo && !js

package exec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// Session is a plan on a device with its buffers, kernels and state. All memory is zero at
// first, except the plan's constants.
type Session struct {
	d          *Device
	p          *plan.Plan
	b          *builder
	entries    map[string]*Entry
	persistent map[string]*plan.Slot
	given      map[*plan.Slot]bool // inputs that are set
	last       *Entry              // the entry that ran last
	rec        recorder
	ring       ring
	scratch    []byte
	inFlight   int
	submitted  int // submissions
	steps      int
	savedAt    int
	closed     bool
	with       *Session // whose parameters and states this one uses, or nil
	holds      int      // of the buffers, which are released after the last
}

// Load prepares the first variant of a plan that the device supports. The error is an
// [*Error] of kind [ErrLimit], [ErrShader], [ErrMemory] or [ErrGPU].
func (d *Device) Load(ctx context.Context, p *plan.Plan) (*Session, error) {
	return d.LoadShared(ctx, p, nil)
}

// LoadShared is [Device.Load] for a plan that shares parameters and states with another session of
// the device (nil for none) and has its layout ([plan.Target]). They live until both are closed.
func (d *Device) LoadShared(ctx context.Context, p *plan.Plan, with *Session) (*Session, error) {
	if err := d.turns.Lock(ctx); err != nil {
		return nil, err
	}
	defer d.turns.Unlock()
	if d.closed.Load() || with != nil && with.closed {
		return nil, &Error{Kind: ErrClosed, Op: "load"}
	}
	if with != nil && with.d != d {
		return nil, &Error{Kind: ir.ErrUnsupported, Op: "load", Msg: "the other session is one of another device"}
	}
	fits := func(v *plan.Plan) bool { return v.Target == "webgpu" && v.Requires.Met(nil, d.limits, [2]int{}) }
	candidates := p.All()
	i := slices.IndexFunc(candidates, fits)
	if i < 0 {
		return nil, &Error{Kind: ErrLimit, Op: "load", Msg: fmt.Sprintf("the plan is for %s and needs %+v; the device has %+v", p.Target, p.Requires, d.limits)}
	}
	p = candidates[i]
	if err := plan.Validate(p); err != nil {
		return nil, err
	}
	s := &Session{
		d: d, p: p, with: with, holds: 1, entries: map[string]*Entry{}, persistent: map[string]*plan.Slot{}, given: map[*plan.Slot]bool{},
		b: &builder{dev: d.dev, p: p, layouts: map[string]*wgpu.BindGroupLayout{}, groups: map[string]*wgpu.BindGroup{}},
	}
	if with != nil {
		with.holds++
		s.b.shared = with.stateBuffers()
	}
	if err := s.build(); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// stateBuffers returns the buffers of parameters and states.
func (s *Session) stateBuffers() (out []*wgpu.Buffer) {
	for _, i := range s.p.StateBuffers() {
		out = append(out, s.b.buffers[i])
	}
	return out
}

// release ends a hold of the buffers. The device is locked.
func (s *Session) release() {
	if s.holds--; s.holds > 0 {
		return
	}
	s.b.release()
	if s.with != nil {
		s.with.release()
	}
}

func (s *Session) build() error {
	if err := s.b.makeBuffers(s.d.queue); err != nil {
		return err
	}
	if err := s.b.makePipelines(); err != nil {
		return err
	}
	for i := range s.p.Slots {
		if slot := &s.p.Slots[i]; slot.Role.Persistent() {
			s.persistent[slot.Name] = slot
		}
	}
	largest := 0
	for i := range s.p.Entries {
		e, err := s.newEntry(&s.p.Entries[i])
		if err != nil {
			return err
		}
		s.entries[e.spec.Name] = e
		bytes := 0
		for _, o := range e.spec.Outputs {
			bytes += s.p.Slots[o].Bytes
		}
		largest = max(largest, bytes)
	}
	return s.ring.make(s.b, min(largest, 1<<20))
}

// Plan returns the variant of the plan that runs. It must not be changed.
func (s *Session) Plan() *plan.Plan { return s.p }

// Steps returns the number of steps run.
func (s *Session) Steps() int { return s.steps }

// Entry returns the entry of that name. The error is of kind [ir.ErrName].
func (s *Session) Entry(name string) (*Entry, error) {
	if e := s.entries[name]; e != nil {
		return e, nil
	}
	return nil, &Error{Kind: ir.ErrName, Op: name, Msg: "the plan has no such entry: it has " + list(maps.Keys(s.entries))}
}

func list(names func(func(string) bool)) string {
	sorted := slices.Sorted(names)
	if len(sorted) == 0 {
		return "none"
	}
	return strings.Join(sorted, ", ")
}

// lock locks the device for a call, in the order of calls. It fails if the session is
// closed or ctx is done.
func (s *Session) lock(ctx context.Context, op string) error {
	if err := s.d.turns.Lock(ctx); err != nil {
		return err
	}
	if s.closed {
		s.d.turns.Unlock()
		return &Error{Kind: ErrClosed, Op: op}
	}
	return nil
}

func (s *Session) unlock() { s.d.turns.Unlock() }

// fail adds the number of lost steps to the error of a lost device.
func (s *Session) fail(err error) error {
	if e, ok := err.(*Error); ok && e.Kind == ErrLost {
		e.Steps = s.steps - s.savedAt
	}
	return err
}

// Sync waits until the device has completed all submissions.
func (s *Session) Sync(ctx context.Context) error {
	if err := s.lock(ctx, "sync"); err != nil {
		return err
	}
	defer s.unlock()
	return s.drain(ctx)
}

// Close releases all memory when the device is done with it. A second call does nothing. If
// ctx is done first, the session stays open; an idle session is closed even if ctx is done.
func (s *Session) Close(ctx context.Context) error {
	if !s.d.turns.TryLock() {
		if err := s.d.turns.Lock(ctx); err != nil {
			return err
		}
	}
	defer s.unlock()
	if s.closed {
		return nil
	}
	if err := s.drain(ctx); err != nil {
		return err
	}
	s.closed = true
	s.release()
	return nil
}
