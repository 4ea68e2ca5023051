//go:build cgo && !js

package exec

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/kernel/loop"
	"github.com/rlx-go/rlx/ir/plan"
)

// maxSteps is how many rows of scalars an entry has: the most steps of a run.
const maxSteps = 64

// The operations of an entry with their objects made.
type (
	op any

	dispatchOp struct {
		pipeline *wgpu.ComputePipeline
		storage  *wgpu.BindGroup
		uniforms *wgpu.BindGroup // nil where the kernel reads none
		scalars  bool
		counters int
		groups   [3]uint32
		grid     *wgpu.Buffer // nil where groups are the grid
		gridAt   uint64
	}
	copyOp struct {
		src, dst             *wgpu.Buffer
		srcOffset, dstOffset uint64
		bytes                uint64
	}
	repeatOp struct {
		count int
		ops   [2][]op // of even rounds and of odd ones
	}
)

// releaser is any object of the binding.
type releaser interface{ Release() }

// builder makes a plan's objects, each layout and bind group once.
type builder struct {
	dev       *wgpu.Device
	p         *plan.Plan
	buffers   []*wgpu.Buffer
	counters  *wgpu.Buffer
	look      *wgpu.Buffer // where the host sees whether a loop goes on, nil without such loops
	pipelines []*wgpu.ComputePipeline
	layouts   map[string]*wgpu.BindGroupLayout
	groups    map[string]*wgpu.BindGroup
	owned     []releaser
}

// release gives back all objects, the newest first.
func (b *builder) release() {
	for i := len(b.owned) - 1; i >= 0; i-- {
		b.owned[i].Release()
	}
	b.owned = nil
}

// own notes an object for release, unless its maker failed.
func own[T releaser](b *builder, kind error, op string, made T, err error) (T, error) {
	if err != nil {
		return made, fromBinding(kind, op, err)
	}
	b.owned = append(b.owned, made)
	return made, nil
}

func (b *builder) buffer(label string, bytes int, usage wgpu.BufferUsage) (*wgpu.Buffer, error) {
	buf, err := b.dev.CreateBuffer(&wgpu.BufferDescriptor{Label: "rlx " + label, Size: uint64(bytes), Usage: usage})
	return own(b, ErrGPU, label, buf, err)
}

func (b *builder) makeBuffers(queue *wgpu.Queue) error {
	for i, spec := range b.p.Buffers {
		label := fmt.Sprintf("%s %d", spec.Kind, i)
		buf, err := b.buffer(label, spec.Bytes, wgpu.BufferUsageStorage|wgpu.BufferUsageIndirect|wgpu.BufferUsageCopySrc|wgpu.BufferUsageCopyDst)
		if err != nil {
			return err
		}
		b.buffers = append(b.buffers, buf)
	}
	for _, c := range b.p.Constants {
		if err := queue.WriteBuffer(b.buffers[c.Buffer], uint64(c.Offset), c.Data); err != nil {
			return fromBinding(ErrGPU, "constants", err)
		}
	}
	rows := 0
	for i := range b.p.Entries {
		rows = max(rows, mostRepeats(b.p.Entries[i].Steps))
	}
	if rows == 0 {
		return nil
	}
	numbers := make([]byte, rows*plan.RowBytes)
	for i := range rows {
		binary.LittleEndian.PutUint32(numbers[i*plan.RowBytes:], uint32(i))
	}
	var err error
	if b.counters, err = b.buffer("counters", len(numbers), wgpu.BufferUsageUniform|wgpu.BufferUsageCopyDst); err != nil {
		return err
	}
	return fromBinding(ErrGPU, "counters", queue.WriteBuffer(b.counters, 0, numbers))
}

func mostRepeats(steps []plan.Step) int {
	most := 0
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Repeat:
			most = max(most, s.Count, mostRepeats(s.Steps), mostRepeats(s.Odd))
		case *plan.While:
			most = max(most, 1, mostRepeats(s.Steps)) // its own count is always 0
		}
	}
	return most
}

func (b *builder) makePipelines() error {
	for i := range b.p.Kernels {
		pipeline, err := b.pipeline(&b.p.Kernels[i])
		if err != nil {
			return err
		}
		b.pipelines = append(b.pipelines, pipeline)
	}
	return nil
}

func (b *builder) pipeline(k *plan.Kernel) (*wgpu.ComputePipeline, error) {
	storage, err := b.storageLayout(k)
	if err != nil {
		return nil, err
	}
	groups := []*wgpu.BindGroupLayout{storage}
	if bindings := uniformBindings(k); len(bindings) > 0 {
		uniforms, err := b.uniformLayout(bindings)
		if err != nil {
			return nil, err
		}
		groups = append(groups, uniforms)
	}
	layout, err := b.dev.CreatePipelineLayout(&wgpu.PipelineLayoutDescriptor{Label: k.Name, BindGroupLayouts: groups})
	if err != nil {
		return nil, fromBinding(ErrGPU, k.Name, err)
	}
	defer layout.Release()
	module, err := b.dev.CreateShaderModule(&wgpu.ShaderModuleDescriptor{
		Label: k.Name, WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: k.Source},
	})
	if err != nil {
		return nil, fromBinding(ErrShader, "kernel "+k.Name, err)
	}
	defer module.Release()
	made, err := b.dev.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
		Label: k.Name, Layout: layout, Compute: wgpu.ProgrammableStageDescriptor{Module: module, EntryPoint: "main"},
	})
	return own(b, ErrShader, "kernel "+k.Name, made, err)
}

// layout makes the layout of a key once.
func (b *builder) layout(key string, entries func() []wgpu.BindGroupLayoutEntry) (*wgpu.BindGroupLayout, error) {
	if made := b.layouts[key]; made != nil {
		return made, nil
	}
	made, err := b.dev.CreateBindGroupLayout(&wgpu.BindGroupLayoutDescriptor{Label: key, Entries: entries()})
	if made, err = own(b, ErrGPU, key, made, err); err == nil {
		b.layouts[key] = made
	}
	return made, err
}

func (b *builder) storageLayout(k *plan.Kernel) (*wgpu.BindGroupLayout, error) {
	return b.layout(fmt.Sprint("storage ", k.Storage), func() []wgpu.BindGroupLayoutEntry {
		entries := make([]wgpu.BindGroupLayoutEntry, len(k.Storage))
		for i, access := range k.Storage {
			kind := wgpu.BufferBindingTypeStorage
			if access == loop.Read {
				kind = wgpu.BufferBindingTypeReadOnlyStorage
			}
			entries[i] = wgpu.BindGroupLayoutEntry{
				Binding: uint32(i), Visibility: wgpu.ShaderStageCompute, Buffer: wgpu.BufferBindingLayout{Type: kind},
			}
		}
		return entries
	})
}

// uniformBindings lists the bindings of group 1 that a kernel has: 0 for the
// row of scalars, 1+d for the counter of the repeat at depth d.
func uniformBindings(k *plan.Kernel) []uint32 {
	var out []uint32
	if k.ScalarBytes > 0 {
		out = append(out, 0)
	}
	for d := range k.Counters {
		out = append(out, uint32(1+d))
	}
	return out
}

func (b *builder) uniformLayout(bindings []uint32) (*wgpu.BindGroupLayout, error) {
	return b.layout(fmt.Sprint("uniforms ", bindings), func() []wgpu.BindGroupLayoutEntry {
		entries := make([]wgpu.BindGroupLayoutEntry, len(bindings))
		for i, n := range bindings {
			entries[i] = wgpu.BindGroupLayoutEntry{
				Binding: n, Visibility: wgpu.ShaderStageCompute,
				Buffer: wgpu.BufferBindingLayout{Type: wgpu.BufferBindingTypeUniform, HasDynamicOffset: true},
			}
		}
		return entries
	})
}

// ops makes the operations of a list of steps; scalars is the entry's buffer
// of rows, nil where it has none, and stride the size of a row.
func (b *builder) ops(steps []plan.Step, scalars *wgpu.Buffer, stride int) ([]op, error) {
	out := make([]op, 0, len(steps))
	for _, step := range steps {
		switch s := step.(type) {
		case *plan.Dispatch:
			made, err := b.dispatch(s, scalars, stride)
			if err != nil {
				return nil, err
			}
			out = append(out, made)
		case *plan.Call:
			return nil, ir.Errorf(ir.ErrUnsupported, "WebGPU has no routine %q", b.p.Routines[s.Routine].Name())
		case *plan.Copy:
			out = append(out, &copyOp{
				src: b.buffers[s.Src], srcOffset: uint64(s.SrcOffset),
				dst: b.buffers[s.Dst], dstOffset: uint64(s.DstOffset), bytes: uint64(s.Bytes),
			})
		case *plan.Repeat:
			r := &repeatOp{count: s.Count}
			var err error
			if r.ops[0], err = b.ops(s.Steps, scalars, stride); err != nil {
				return nil, err
			}
			r.ops[1] = r.ops[0]
			if len(s.Odd) > 0 {
				if r.ops[1], err = b.ops(s.Odd, scalars, stride); err != nil {
					return nil, err
				}
			}
			out = append(out, r)
		case *plan.While:
			w, err := b.while(s, scalars, stride)
			if err != nil {
				return nil, err
			}
			out = append(out, w)
		}
	}
	return out, nil
}

func (b *builder) dispatch(s *plan.Dispatch, scalars *wgpu.Buffer, stride int) (*dispatchOp, error) {
	k := &b.p.Kernels[s.Kernel]
	made := &dispatchOp{
		pipeline: b.pipelines[s.Kernel], scalars: k.ScalarBytes > 0, counters: k.Counters,
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
			w.Buffer, w.Size = scalars, uint64(stride)
		}
		windows = append(windows, w)
	}
	made.uniforms, err = b.group("uniforms", layout, windows)
	return made, err
}

// group makes the bind group of a layout and windows once.
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
	if made, err = own(b, ErrGPU, label, made, err); err == nil {
		b.groups[key.String()] = made
	}
	return made, err
}
