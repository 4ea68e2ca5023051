//go:build cgo && !js

package webgpu

import (
	"fmt"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
)

// The steps of an entry, with their objects.
type (
	op any // *dispatchOp, *copyOp, *repeatOp or *whileOp

	dispatchOp struct {
		pipeline *wgpu.ComputePipeline
		storage  *wgpu.BindGroup
		uniforms *wgpu.BindGroup // nil if the kernel reads none
		counters int
		groups   [3]uint32
		grid     *wgpu.Buffer // of an indirect dispatch, else nil
		gridAt   uint64
	}
	copyOp struct {
		src, dst             *wgpu.Buffer
		srcOffset, dstOffset uint64
		bytes                uint64
	}
	repeatOp struct {
		count int
		ops   [2][]op // of even and of odd iterations
	}
	// whileOp is a loop of unknown trip count: it continues while the word is not 0.
	whileOp struct {
		ops  []op
		word *wgpu.Buffer
		at   uint64
	}
)

// ops makes the operations of steps; scalars is the entry's buffer of scalars, or nil.
func (b *builder) ops(steps []plan.Step, scalars *wgpu.Buffer) ([]op, error) {
	out := make([]op, 0, len(steps))
	for _, step := range steps {
		switch s := step.(type) {
		case *plan.Dispatch:
			made, err := b.dispatch(s, scalars)
			if err != nil {
				return nil, err
			}
			out = append(out, made)
		case *plan.Call:
			return nil, ir.Errorf(ir.ErrUnsupported, "unknown routine %q on WebGPU", b.p.Routines[s.Routine].Name())
		case *plan.Copy:
			out = append(out, &copyOp{
				src: b.buffers[s.Src], srcOffset: uint64(s.SrcOffset),
				dst: b.buffers[s.Dst], dstOffset: uint64(s.DstOffset), bytes: uint64(s.Bytes),
			})
		case *plan.Repeat:
			r := &repeatOp{count: s.Count}
			var err error
			if r.ops[0], err = b.ops(s.Steps, scalars); err != nil {
				return nil, err
			}
			r.ops[1] = r.ops[0]
			if len(s.Odd) > 0 {
				if r.ops[1], err = b.ops(s.Odd, scalars); err != nil {
					return nil, err
				}
			}
			out = append(out, r)
		case *plan.While:
			w, err := b.while(s, scalars)
			if err != nil {
				return nil, err
			}
			out = append(out, w)
		}
	}
	return out, nil
}

func (b *builder) while(s *plan.While, scalars *wgpu.Buffer) (*whileOp, error) {
	var err error
	if b.look == nil {
		if b.look, err = b.ownBuffer("look", plan.WordBytes, wgpu.BufferUsageMapRead|wgpu.BufferUsageCopyDst); err != nil {
			return nil, err
		}
	}
	w := &whileOp{word: b.buffers[s.Condition.Buffer], at: uint64(s.Condition.Offset)}
	w.ops, err = b.ops(s.Steps, scalars)
	return w, err
}

func (b *builder) dispatch(s *plan.Dispatch, scalars *wgpu.Buffer) (*dispatchOp, error) {
	k := &b.p.Kernels[s.Kernel]
	made := &dispatchOp{
		pipeline: b.pipelines[s.Kernel], counters: k.Counters,
		groups: [3]uint32{uint32(s.Groups[0]), uint32(s.Groups[1]), uint32(s.Groups[2])},
	}
	if s.Grid != nil {
		made.grid, made.gridAt = b.buffers[s.Grid.Buffer], uint64(s.Grid.Offset)
	}
	layout, err := b.storageLayout(k)
	if err != nil {
		return nil, err
	}
	windows := make([]wgpu.BindGroupEntry, len(s.Bindings))
	for i, w := range s.Bindings {
		windows[i] = wgpu.BindGroupEntry{Binding: uint32(i), Buffer: b.buffers[w.Buffer], Offset: uint64(w.Offset), Size: uint64(w.Bytes)}
	}
	if made.storage, err = b.group(k.Name, layout, windows); err != nil {
		return nil, err
	}
	bindings := uniformBindings(k)
	if len(bindings) == 0 {
		return made, nil
	}
	if layout, err = b.uniformLayout(bindings); err != nil {
		return nil, err
	}
	windows = windows[:0]
	for _, n := range bindings {
		w := wgpu.BindGroupEntry{Binding: n, Buffer: b.counters, Size: plan.RowBytes}
		if n == 0 {
			w.Buffer, w.Size = scalars, wgpu.WholeSize
		}
		windows = append(windows, w)
	}
	made.uniforms, err = b.group("uniforms", layout, windows)
	return made, err
}

// group returns the bind group of a layout and windows.
func (b *builder) group(label string, layout *wgpu.BindGroupLayout, windows []wgpu.BindGroupEntry) (*wgpu.BindGroup, error) {
	var key strings.Builder
	fmt.Fprintf(&key, "%p", layout)
	for _, w := range windows {
		fmt.Fprintf(&key, " %d %p %d %d", w.Binding, w.Buffer, w.Offset, w.Size)
	}
	if made := b.groups[key.String()]; made != nil {
		return made, nil
	}
	made, err := b.dev.CreateBindGroup(&wgpu.BindGroupDescriptor{Label: label, Layout: layout, Entries: windows})
	if made, err = own(b, label, made, err); err == nil {
		b.groups[key.String()] = made
	}
	return made, err
}
