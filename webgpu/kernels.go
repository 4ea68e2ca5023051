//go:build cgo && !js

package webgpu

import (
	"fmt"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/loop"
)

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
		return nil, err
	}
	defer layout.Release()
	module, err := b.dev.CreateShaderModule(&wgpu.ShaderModuleDescriptor{
		Label: k.Name, WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: k.Source},
	})
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	defer module.Release()
	made, err := b.dev.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
		Label: k.Name, Layout: layout, Compute: wgpu.ProgrammableStageDescriptor{Module: module, EntryPoint: "main"},
	})
	return own(b, "kernel "+k.Name, made, err)
}

// layout returns the bind group layout of a key.
func (b *builder) layout(key string, entries func() []wgpu.BindGroupLayoutEntry) (*wgpu.BindGroupLayout, error) {
	if made := b.layouts[key]; made != nil {
		return made, nil
	}
	made, err := b.dev.CreateBindGroupLayout(&wgpu.BindGroupLayoutDescriptor{Label: key, Entries: entries()})
	if made, err = own(b, key, made, err); err == nil {
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

// uniformBindings lists a kernel's bindings of group 1: 0 is the row of scalars, 1+d the
// counter of the repeat at depth d.
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
				Buffer: wgpu.BufferBindingLayout{Type: wgpu.BufferBindingTypeUniform, HasDynamicOffset: n > 0},
			}
		}
		return entries
	})
}
