//go:build cgo && linux

package wgsl_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cogentcore/webgpu/wgpu"

	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/kerneltest"
	"github.com/rlx-go/rlx/ir/loop"
	"github.com/rlx-go/rlx/native/backendtest"
)

// wgpuDevice opens the software Vulkan device through wgpu, whose release here
// is 0.19.4: older than what browsers have, and stricter.
func wgpuDevice(t *testing.T) *wgpu.Device {
	t.Helper()
	drivers, _ := filepath.Glob("/usr/share/vulkan/icd.d/lvp_icd*.json")
	for _, name := range []string{"VK_ICD_FILENAMES", "VK_DRIVER_FILES"} {
		if os.Getenv(name) == "" && len(drivers) > 0 {
			t.Setenv(name, drivers[0])
		}
	}
	adapter, err := wgpu.CreateInstance(nil).RequestAdapter(nil)
	backendtest.Require(t, "webgpu", err)
	device, err := adapter.RequestDevice(nil)
	if err != nil {
		t.Fatal(err)
	}
	return device
}

// wgpuRun is one dispatch. Its methods stop the test on an error.
type wgpuRun struct {
	*testing.T
	device *wgpu.Device
}

func must[T any](t *testing.T, x T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (r wgpuRun) buffer(data []byte, usage wgpu.BufferUsage) *wgpu.Buffer {
	data = append(slices.Clone(data), make([]byte, -len(data)&3)...)
	b, err := r.device.CreateBufferInit(&wgpu.BufferInitDescriptor{Contents: data, Usage: usage})
	return must(r.T, b, err)
}

// group binds buffers in order and returns the group with its layout.
func (r wgpuRun) group(buffers []*wgpu.Buffer, types []wgpu.BufferBindingType) (*wgpu.BindGroup, *wgpu.BindGroupLayout) {
	var layout wgpu.BindGroupLayoutDescriptor
	var group wgpu.BindGroupDescriptor
	for i, b := range buffers {
		layout.Entries = append(layout.Entries, wgpu.BindGroupLayoutEntry{
			Binding: uint32(i), Visibility: wgpu.ShaderStageCompute, Buffer: wgpu.BufferBindingLayout{Type: types[i]},
		})
		group.Entries = append(group.Entries, wgpu.BindGroupEntry{Binding: uint32(i), Buffer: b, Size: wgpu.WholeSize})
	}
	l, err := r.device.CreateBindGroupLayout(&layout)
	group.Layout = must(r.T, l, err)
	g, err := r.device.CreateBindGroup(&group)
	return must(r.T, g, err), group.Layout
}

func (r wgpuRun) read(b *wgpu.Buffer) []byte {
	size := b.GetSize()
	staging, err := r.device.CreateBuffer(&wgpu.BufferDescriptor{Size: size, Usage: wgpu.BufferUsageCopyDst | wgpu.BufferUsageMapRead})
	must(r.T, staging, err)
	encoder, err := r.device.CreateCommandEncoder(nil)
	must(r.T, encoder, err).CopyBufferToBuffer(b, 0, staging, 0, size)
	commands, err := encoder.Finish(nil)
	r.device.GetQueue().Submit(must(r.T, commands, err))
	err = staging.MapAsync(wgpu.MapModeRead, 0, size, func(wgpu.BufferMapAsyncStatus) {})
	must(r.T, 0, err)
	r.device.Poll(true, nil)
	return slices.Clone(staging.GetMappedRange(0, uint(size)))
}

// run dispatches the kernel of a case and returns its arrays.
func (r wgpuRun) run(c *kerneltest.Case, source string) [][]float64 {
	var arrays, uniforms []*wgpu.Buffer
	var arrayTypes, uniformTypes []wgpu.BufferBindingType
	for i, a := range c.Storage() {
		arrays = append(arrays, r.buffer(kerneltest.Encode(a.DType, c.Arrays[i]), wgpu.BufferUsageStorage|wgpu.BufferUsageCopySrc))
		kind := wgpu.BufferBindingTypeStorage
		if a.Access == loop.Read {
			kind = wgpu.BufferBindingTypeReadOnlyStorage
		}
		arrayTypes = append(arrayTypes, kind)
	}
	blocks := [][]byte{kerneltest.EncodeScalars(c.Kernel.Scalars, c.Scalars)}
	for _, count := range c.Counters {
		blocks = append(blocks, []byte{byte(count), 0, 0, 0})
	}
	for _, block := range blocks {
		uniforms = append(uniforms, r.buffer(append(block, make([]byte, 16)...), wgpu.BufferUsageUniform))
		uniformTypes = append(uniformTypes, wgpu.BufferBindingTypeUniform)
	}
	storage, storageLayout := r.group(arrays, arrayTypes)
	uniform, uniformLayout := r.group(uniforms, uniformTypes)
	module, err := r.device.CreateShaderModule(&wgpu.ShaderModuleDescriptor{WGSLDescriptor: &wgpu.ShaderModuleWGSLDescriptor{Code: source}})
	must(r.T, module, err)
	layout, err := r.device.CreatePipelineLayout(&wgpu.PipelineLayoutDescriptor{BindGroupLayouts: []*wgpu.BindGroupLayout{storageLayout, uniformLayout}})
	must(r.T, layout, err)
	pipeline, err := r.device.CreateComputePipeline(&wgpu.ComputePipelineDescriptor{
		Layout: layout, Compute: wgpu.ProgrammableStageDescriptor{Module: module, EntryPoint: "main"},
	})
	must(r.T, pipeline, err)
	encoder, err := r.device.CreateCommandEncoder(nil)
	pass := must(r.T, encoder, err).BeginComputePass(nil)
	pass.SetPipeline(pipeline)
	pass.SetBindGroup(0, storage, nil)
	pass.SetBindGroup(1, uniform, nil)
	g := c.Kernel.Groups
	pass.DispatchWorkgroups(uint32(g[0]), uint32(g[1]), uint32(g[2]))
	must(r.T, 0, pass.End())
	pass.Release() // an encoder with a pass that still lives cannot finish
	commands, err := encoder.Finish(nil)
	r.device.GetQueue().Submit(must(r.T, commands, err))
	var got [][]float64
	for i, a := range c.Storage() {
		got = append(got, kerneltest.Decode(a.DType, r.read(arrays[i])))
	}
	return got
}

func TestShadersOnWgpuEqualPlainLoops(t *testing.T) {
	device := wgpuDevice(t)
	for _, c := range append(kerneltest.Cases(), kerneltest.AtomicFloats()...) {
		if c.Kernel.Subgroup != [2]int{} {
			continue // this wgpu has no subgroups
		}
		t.Run(c.Kernel.Name, func(t *testing.T) {
			source, err := wgsl.Print(c.Kernel)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Compare(wgpuRun{t, device}.run(c, source)); err != nil {
				t.Error(err)
			}
		})
	}
}
