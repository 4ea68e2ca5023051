//go:build cgo && !js

package exec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/plan"
)

// InFlight is how many runs may be under way before the next one waits.
const InFlight = 3

// Session is a plan on a device: its buffers, its kernels, its state. All
// contents are zeros at first, but for the plan's constants.
type Session struct {
	d          *Device
	p          *plan.Plan
	b          *builder
	entries    map[string]*Entry
	persistent map[string]*plan.Slot
	given      map[*plan.Slot]bool // inputs that were set
	last       *Entry              // the entry that ran last
	rec        recorder
	ring       ring
	scratch    []byte
	inFlight   int
	submitted  int // submissions
	steps      int
	savedAt    int
	closed     bool
}

// Load makes the first of a plan and its variants that the device can run ready
// to run. The error is an [*Error] of kind [ErrLimit], [ErrShader], [ErrMemory]
// or [ErrGPU].
func (d *Device) Load(p *plan.Plan) (*Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &Error{Kind: ErrClosed, Op: "load"}
	}
	fits := func(v *plan.Plan) bool { return v.Target == "webgpu" && v.Requires.Met(nil, d.limits, [2]int{}) }
	candidates := append([]*plan.Plan{p}, p.Variants...)
	i := slices.IndexFunc(candidates, fits)
	if i < 0 {
		return nil, &Error{Kind: ErrLimit, Op: "load", Msg: fmt.Sprintf("the plan is for %s and requires %+v, the device has %+v", p.Target, p.Requires, d.limits)}
	}
	p = candidates[i]
	if err := plan.Validate(p); err != nil {
		return nil, err
	}
	s := &Session{
		d: d, p: p, entries: map[string]*Entry{}, persistent: map[string]*plan.Slot{}, given: map[*plan.Slot]bool{},
		b: &builder{dev: d.dev, p: p, layouts: map[string]*wgpu.BindGroupLayout{}, groups: map[string]*wgpu.BindGroup{}},
	}
	if err := s.build(); err != nil {
		s.b.release()
		return nil, err
	}
	return s, nil
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

// Plan returns the plan, of its variants the one that runs. Do not change it.
func (s *Session) Plan() *plan.Plan { return s.p }

// Steps returns how many steps were run.
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

// lock takes the device for a call, unless the session is closed.
func (s *Session) lock(op string) error {
	s.d.mu.Lock()
	if s.closed {
		s.d.mu.Unlock()
		return &Error{Kind: ErrClosed, Op: op}
	}
	return nil
}

func (s *Session) unlock() { s.d.mu.Unlock() }

// upload writes a checked tensor to its slot.
func (s *Session) upload(op string, slot *plan.Slot, t Tensor) error {
	if slot.Bytes == 0 {
		return nil
	}
	data := toDevice(slot, t, &s.scratch)
	return s.fail(fromBinding(ErrGPU, op, s.d.queue.WriteBuffer(s.b.buffers[slot.Buffer], uint64(slot.Offset), data)))
}

// fail adds to a lost device what it has cost.
func (s *Session) fail(err error) error {
	if e, ok := err.(*Error); ok && e.Kind == ErrLost {
		e.Steps = s.steps - s.savedAt
	}
	return err
}

// Write sets a parameter or a state. Errors are of kind [ir.ErrName],
// [ir.ErrDType] or [ir.ErrShape].
func (s *Session) Write(name string, t Tensor) error {
	if err := s.lock("write"); err != nil {
		return err
	}
	defer s.unlock()
	slot, err := s.accept("write", name, t)
	if err != nil {
		return err
	}
	return s.upload("write", slot, t)
}

// accept returns the parameter or state of that name, which t can be a value of.
func (s *Session) accept(op, name string, t Tensor) (*plan.Slot, error) {
	slot := s.persistent[name]
	if slot == nil {
		return nil, &Error{Kind: ir.ErrName, Op: op, Name: name, Msg: fmt.Sprintf("no parameter or state is named %q: there are %s", name, list(maps.Keys(s.persistent)))}
	}
	return slot, check(op, slot, t, slot.Dims)
}

// Read returns the value of an output of the last run, of a parameter or of a
// state, as of now. It waits for the device.
func (s *Session) Read(ctx context.Context, name string) (Tensor, error) {
	values, err := s.read(ctx, name)
	return values[name], err
}

func (s *Session) read(ctx context.Context, names ...string) (map[string]Tensor, error) {
	if err := s.lock("read"); err != nil {
		return nil, err
	}
	defer s.unlock()
	sources, err := s.sources("read", s.last, names)
	if err != nil || len(sources) == 0 {
		return map[string]Tensor{}, err
	}
	r, err := s.submit(ctx, "read", sources, nil)
	if err != nil {
		return nil, err
	}
	return r.collect(ctx)
}

// Save returns all parameters and states. What a lost device costs is counted
// from here.
func (s *Session) Save(ctx context.Context) (map[string]Tensor, error) {
	values, err := s.read(ctx, slices.Sorted(maps.Keys(s.persistent))...)
	if err == nil {
		s.savedAt = s.steps
	}
	return values, err
}

// Load sets parameters and states as Save gave them; others stay as they are.
// Nothing is written if one of them is refused.
func (s *Session) Load(values map[string]Tensor) error {
	if err := s.lock("load"); err != nil {
		return err
	}
	defer s.unlock()
	names := slices.Sorted(maps.Keys(values))
	for _, name := range names {
		if _, err := s.accept("load", name, values[name]); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := s.upload("load", s.persistent[name], values[name]); err != nil {
			return err
		}
	}
	return nil
}

// sources finds the slots of readable values: persistent ones, and outputs of
// an entry.
func (s *Session) sources(op string, e *Entry, names []string) ([]*plan.Slot, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out := make([]*plan.Slot, len(names))
	for i, name := range names {
		out[i] = s.persistent[name]
		if out[i] == nil && e != nil {
			out[i] = e.outputs[name]
		}
		if out[i] == nil {
			return nil, &Error{Kind: ir.ErrName, Op: op, Name: name, Msg: fmt.Sprintf("there is no value %q to read: it is neither a parameter or state nor an output of the entry that ran last", name)}
		}
	}
	return out, nil
}

// submit makes one submission: what record writes, if anything, and the copies
// for a reading of the sources, if there are any.
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
		defer func(p *place) {
			if err != nil {
				p.used = nil
			}
		}(r.place)
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

// send submits what was recorded.
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

// drop gives the encoder back.
func (s *Session) drop() {
	if s.rec.encoder != nil {
		s.rec.encoder.Release()
		s.rec.encoder = nil
	}
}

// drain waits until the device has done all that was submitted.
func (s *Session) drain(ctx context.Context) error {
	if err := s.d.drain(ctx); err != nil {
		return err
	}
	s.inFlight = 0
	return nil
}

// Close gives back all memory, once the device is done with it. A second call
// does nothing.
func (s *Session) Close() {
	if s.lock("close") != nil {
		return
	}
	defer s.unlock()
	s.closed = true
	_ = s.drain(context.Background())
	s.b.release()
}
