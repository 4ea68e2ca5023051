//go:build cgo && !js

package webgpu

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
)

// releaser is an object of the binding.
type releaser interface{ Release() }

// builder makes a plan's objects and deduplicates layouts and bind groups.
type builder struct {
	*device
	p         *plan.Plan
	shared    []*wgpu.Buffer // the first buffers of the plan, which are another program's
	buffers   []*wgpu.Buffer
	counters  *wgpu.Buffer
	look      *wgpu.Buffer // for the conditions of loops, nil without loops
	pipelines []*wgpu.ComputePipeline
	layouts   map[string]*wgpu.BindGroupLayout
	groups    map[string]*wgpu.BindGroup
	owned     []releaser
}

// release releases all objects, newest first.
func (b *builder) release() {
	for i := len(b.owned) - 1; i >= 0; i-- {
		b.owned[i].Release()
	}
	b.owned = nil
}

// own registers an object for release, unless its maker failed.
func own[T releaser](b *builder, label string, made T, err error) (T, error) {
	if err != nil {
		return made, fmt.Errorf("%s: %w", label, err)
	}
	b.owned = append(b.owned, made)
	return made, nil
}

func (b *builder) ownBuffer(label string, bytes int, usage wgpu.BufferUsage) (*wgpu.Buffer, error) {
	made, err := b.buffer(label, bytes, usage)
	return own(b, label, made, err)
}

func (b *builder) makeBuffers() error {
	b.buffers = slices.Clone(b.shared)
	for i, spec := range b.p.Buffers[len(b.shared):] {
		label := fmt.Sprintf("%s %d", spec.Kind, i)
		buf, err := b.ownBuffer(label, spec.Bytes, wgpu.BufferUsageStorage|wgpu.BufferUsageIndirect|wgpu.BufferUsageCopySrc|wgpu.BufferUsageCopyDst)
		if err != nil {
			return err
		}
		b.buffers = append(b.buffers, buf)
	}
	for _, c := range b.p.Constants {
		if err := b.queue.WriteBuffer(b.buffers[c.Buffer], uint64(c.Offset), c.Data); err != nil {
			return err
		}
	}
	rows := 0
	for i := range b.p.Entries {
		rows = max(rows, maxRepeats(b.p.Entries[i].Steps))
	}
	if rows == 0 {
		return nil
	}
	numbers := make([]byte, rows*plan.RowBytes)
	for i := range rows {
		binary.LittleEndian.PutUint32(numbers[i*plan.RowBytes:], uint32(i))
	}
	var err error
	if b.counters, err = b.ownBuffer("counters", len(numbers), wgpu.BufferUsageUniform|wgpu.BufferUsageCopyDst); err != nil {
		return err
	}
	return b.queue.WriteBuffer(b.counters, 0, numbers)
}

func maxRepeats(steps []plan.Step) int {
	largest := 0
	for s := range plan.Each(steps) {
		switch s := s.(type) {
		case *plan.Repeat:
			largest = max(largest, s.Count)
		case *plan.While:
			largest = max(largest, 1) // its count is always 0
		}
	}
	return largest
}
