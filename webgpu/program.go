//go:build cgo && !js

package webgpu

import (
	"errors"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/internal/executor/async"
	"github.com/rlx-go/rlx/native"
)

// program is a plan on a device with its buffers and kernels. All memory is zero at first, except the
// plan's constants.
type program struct {
	*async.Program
	device  *device
	plan    *plan.Plan
	b       *builder
	entries []*entry
}

// open prepares a plan to run, with the parameters and states of another program unless with is nil.
func (p *program) open(made *plan.Plan, with *sharing) error {
	p.plan = made
	p.b = &builder{device: p.device, p: made, layouts: map[string]*wgpu.BindGroupLayout{}, groups: map[string]*wgpu.BindGroup{}}
	if with != nil {
		for _, i := range with.from.plan.StateBuffers() {
			p.b.shared = append(p.b.shared, with.from.b.buffers[i])
		}
	}
	if err := p.build(); err != nil {
		return errors.Join(err, p.Release())
	}
	if with != nil {
		p.Program = with.from.Sharing(made, p, with.drop)
	} else {
		p.Program = async.NewProgram(made, p)
	}
	return nil
}

// build makes the objects of the plan.
func (p *program) build() error {
	p.device.mu.Lock()
	defer p.device.mu.Unlock()
	if err := p.b.makeBuffers(); err != nil {
		return err
	}
	if err := p.b.makePipelines(); err != nil {
		return err
	}
	for i := range p.plan.Entries {
		e, err := p.newEntry(&p.plan.Entries[i])
		if err != nil {
			return err
		}
		p.entries = append(p.entries, e)
	}
	return nil
}

// Release frees the program's objects.
func (p *program) Release() error {
	p.device.mu.Lock()
	defer p.device.mu.Unlock()
	p.b.release()
	return nil
}

// Backend returns the name of the backend.
func (p *program) Backend() string { return Name }

// errGone is the reason of errors after the device is lost.
var errGone = errors.New("this process lost the GPU after an earlier error: restart it")

// Lost returns errGone if the device is lost.
func (p *program) Lost() error {
	if p.device.lost.Load() {
		return errGone
	}
	return nil
}

// Kind classifies an error of the binding and records a lost device.
func (p *program) Kind(err error) error {
	kind := kindOf(err)
	if kind == native.ErrLost {
		p.device.lost.Store(true)
	}
	return kind
}

// InFlight returns the maximal number of runs in flight.
func (p *program) InFlight(int) int { return inFlight }

// HostDriven reports whether an entry has loops of unknown trip count, whose conditions the host reads.
func (p *program) HostDriven(entry int) bool { return p.entries[entry].loops }

// NewStage makes a stage for an entry.
func (p *program) NewStage(entry int) (async.Stage, error) { return p.entries[entry].newStage(), nil }

// Ordered returns true: the queue has the order of the calls.
func (p *program) Ordered() bool { return true }

// Write writes a parameter or a state.
func (p *program) Write(s *plan.Slot, data []byte) error {
	p.device.mu.Lock()
	defer p.device.mu.Unlock()
	if len(data) < s.Bytes { // memory consists of words
		data = append(data[:len(data):len(data)], make([]byte, s.Bytes-len(data))...)
	}
	return p.write(s.Buffer, s.Offset, data)
}

// write writes words to a buffer of the plan, after the runs begun before.
func (p *program) write(buffer, offset int, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	return p.device.queue.WriteBuffer(p.b.buffers[buffer], uint64(offset), data)
}

// Read reads a parameter or a state, after the runs begun before.
func (p *program) Read(s *plan.Slot, data []byte) (err error) {
	if len(data) == 0 {
		return nil
	}
	d := p.device
	d.mu.Lock()
	defer d.mu.Unlock()
	to, err := d.buffer("copy of "+s.Name, s.Bytes, wgpu.BufferUsageMapRead|wgpu.BufferUsageCopyDst)
	if err != nil {
		return err
	}
	defer to.Release()
	var r recorder
	defer r.drop()
	if err := r.begin(d); err != nil {
		return err
	}
	if err := r.copy(p.b.buffers[s.Buffer], uint64(s.Offset), to, 0, uint64(s.Bytes)); err != nil {
		return err
	}
	if err := r.submit(d); err != nil {
		return err
	}
	from, err := d.mapped(to, s.Bytes)
	if err != nil {
		return err
	}
	async.Copy(data, from)
	return to.Unmap()
}
