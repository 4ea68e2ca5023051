//go:build cgo && !js

package exec

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
	row      uint32                   // the bound row of scalars
	depth    int                      // of the current repeat
	counters [plan.MaxCounters]uint32 // row offsets of the counters, outermost first
	offsets  [1 + plan.MaxCounters]uint32
	goesOn   func(*whileOp) (bool, error) // submits the commands recorded so far
}

// record encodes operations; row is the byte offset of the run's scalars.
func (r *recorder) record(ops []op, row uint32) error {
	for _, o := range ops {
		switch o := o.(type) {
		case *dispatchOp:
			r.dispatch(o, row)
		case *copyOp:
			if err := r.endPass(); err != nil {
				return err
			}
			if err := r.encoder.CopyBufferToBuffer(o.src, o.srcOffset, o.dst, o.dstOffset, o.bytes); err != nil {
				return err
			}
		case *repeatOp:
			r.depth++
			for i := range o.count {
				r.counters[r.depth-1] = uint32(i * plan.RowBytes)
				if err := r.record(o.ops[i%2], row); err != nil {
					return err
				}
			}
			r.depth--
		case *whileOp:
			if err := r.while(o, row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *recorder) dispatch(o *dispatchOp, row uint32) {
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
	if o.uniforms != nil && (o.counters > 0 || o.uniforms != r.uniforms || row != r.row) {
		n := 0
		if o.scalars {
			r.offsets[0] = row
			n = 1
		}
		n += copy(r.offsets[n:], r.counters[:o.counters])
		r.pass.SetBindGroup(1, o.uniforms, r.offsets[:n])
		r.uniforms, r.row = o.uniforms, row
	}
	if o.grid != nil {
		r.pass.DispatchWorkgroupsIndirect(o.grid, o.gridAt)
		return
	}
	r.pass.DispatchWorkgroups(o.groups[0], o.groups[1], o.groups[2])
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
