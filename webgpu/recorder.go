//go:build cgo && !js

package webgpu

import (
	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// recorder encodes operations into as few compute passes as possible; copies split a pass.
// It skips redundant state changes.
type recorder struct {
	encoder  *wgpu.CommandEncoder
	pass     *wgpu.ComputePassEncoder
	pipeline *wgpu.ComputePipeline
	storage  *wgpu.BindGroup
	uniforms *wgpu.BindGroup
	depth    int                          // of the current repeat
	counters [plan.MaxCounters]uint32     // row offsets of the counters, outermost first
	goesOn   func(*whileOp) (bool, error) // submits the commands recorded so far
}

// record encodes operations.
func (r *recorder) record(ops []op) error {
	for _, o := range ops {
		switch o := o.(type) {
		case *dispatchOp:
			r.dispatch(o)
		case *copyOp:
			if err := r.copy(o.src, o.srcOffset, o.dst, o.dstOffset, o.bytes); err != nil {
				return err
			}
		case *repeatOp:
			r.depth++
			for i := range o.count {
				r.counters[r.depth-1] = uint32(i * plan.RowBytes)
				if err := r.record(o.ops[i%2]); err != nil {
					return err
				}
			}
			r.depth--
		case *whileOp:
			if err := r.while(o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *recorder) dispatch(o *dispatchOp) {
	if r.pass == nil {
		r.pass = r.encoder.BeginComputePass(nil)
		r.pipeline, r.storage, r.uniforms = nil, nil, nil
	}
	if r.pipeline != o.pipeline {
		r.pass.SetPipeline(o.pipeline)
		r.pipeline = o.pipeline
	}
	if r.storage != o.storage {
		r.pass.SetBindGroup(0, o.storage, nil)
		r.storage = o.storage
	}
	if o.uniforms != nil && (o.counters > 0 || o.uniforms != r.uniforms) {
		r.pass.SetBindGroup(1, o.uniforms, r.counters[:o.counters])
		r.uniforms = o.uniforms
	}
	if o.grid != nil {
		r.pass.DispatchWorkgroupsIndirect(o.grid, o.gridAt)
		return
	}
	r.pass.DispatchWorkgroups(o.groups[0], o.groups[1], o.groups[2])
}

// How many rounds of a loop of unknown length are submitted before the host looks
// whether it goes on: more and more, as a loop that took long may take longer. A round
// too many costs its dispatches, which find no workgroups; a look costs a way to the
// device and back, which on a GPU is some hundred empty dispatches.
const (
	firstRounds = 8
	maxRounds   = 64
)

// while records rounds until the device says that the loop is done.
func (r *recorder) while(o *whileOp) error {
	r.depth++
	defer func() { r.depth-- }()
	r.counters[r.depth-1] = 0
	for rounds := firstRounds; ; rounds = min(2*rounds, maxRounds) {
		for range rounds {
			if err := r.record(o.ops); err != nil {
				return err
			}
		}
		if going, err := r.goesOn(o); err != nil || !going {
			return err
		}
	}
}

// copy records a copy, which is outside of a pass.
func (r *recorder) copy(from *wgpu.Buffer, fromOffset uint64, to *wgpu.Buffer, toOffset, bytes uint64) error {
	if err := r.endPass(); err != nil {
		return err
	}
	return r.encoder.CopyBufferToBuffer(from, fromOffset, to, toOffset, bytes)
}

// endPass ends the pass, if there is one.
func (r *recorder) endPass() error {
	if r.pass == nil {
		return nil
	}
	err := r.pass.End()
	r.pass.Release()
	r.pass = nil
	return err
}

// begin makes an encoder.
func (r *recorder) begin(d *device) (err error) {
	r.encoder, err = d.dev.CreateCommandEncoder(nil)
	return err
}

// submit submits the recorded commands.
func (r *recorder) submit(d *device) error {
	defer r.drop()
	if err := r.endPass(); err != nil {
		return err
	}
	return d.submit(r.encoder)
}

// drop releases the encoder, with the commands recorded and not submitted.
func (r *recorder) drop() {
	if r.encoder != nil {
		_ = r.endPass() // after an error, which is reported
		r.encoder.Release()
		r.encoder = nil
	}
}
