package recipe

import (
	"github.com/rlx-go/rlx/autodiff/optim"
	"github.com/rlx-go/rlx/internal/codegen/wasmsimd"
	"github.com/rlx-go/rlx/internal/codegen/wgsl"
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/hardware"
)

// Limits are the capabilities of a WebGPU device. Zero means those of every device.
type Limits struct {
	// StorageBuffers is maxStorageBuffersPerShaderStage, and so on.
	StorageBuffers int
	BindingBytes   int
	BufferBytes    int
	SharedBytes    int
	Invocations    int
	// F16 means that the device computes with f16, the feature "shader-f16".
	F16 bool
	// Subgroup is the device's single subgroup size, a power of two; 0 if there are several, or it
	// is unknown.
	Subgroup int
	// Device is its name: see [hardware.Named].
	Device string
}

// Device is a target and the printer of its kernels.
type Device struct {
	Target  plan.Target
	Printer plan.Printer
}

// maxSubgroup is the maximum subgroup size in WebGPU.
const maxSubgroup = 128

// TargetNames are the targets that [Limits.Device] supports: a GPU, or the CPU of an engine for
// WebAssembly, with or without relaxed SIMD.
var TargetNames = []string{"webgpu", "wasm", "wasm-relaxed"}

// Target returns a target by its name; limits apply to WebGPU only. The error is of kind
// [ir.ErrName] for an unknown name, and [ir.ErrAttr] for limits that no device has.
func (l Limits) Target(name string) (Device, error) {
	switch name {
	case "webgpu":
		t, err := l.webGPU()
		return Device{t, wgsl.Printer{}}, err
	case "wasm", "wasm-relaxed":
		relaxed := name == "wasm-relaxed"
		return Device{plan.WebAssembly(relaxed), wasmsimd.Printer{Relaxed: relaxed}}, nil
	}
	return Device{}, ir.Errorf(ir.ErrName, "unknown target %q: have %q", name, TargetNames)
}

func (l Limits) webGPU() (plan.Target, error) {
	t := plan.WebGPU()
	own := &t.Limits
	for _, limit := range []struct {
		to    *int
		given int
	}{
		{&own.StorageBuffers, l.StorageBuffers},
		{&own.BindingBytes, l.BindingBytes},
		{&own.BufferBytes, l.BufferBytes},
		{&own.SharedBytes, l.SharedBytes},
		{&own.Invocations, l.Invocations},
	} {
		if limit.given > 0 {
			*limit.to = limit.given
		}
	}
	t.F16 = l.F16
	if size := l.Subgroup; size > 0 {
		if size > maxSubgroup || size&(size-1) != 0 {
			return t, ir.Attrf("the subgroup size is %d; it must be a power of two up to %d", size, maxSubgroup)
		}
		t = t.WithSubgroups(size)
	}
	t.Device = hardware.Named(l.Device)
	return t, nil
}

// Compile returns the plan of a module for the first of several devices, with those for the others as its variants.
func Compile(m *ir.Module, devices []Device) (*plan.Plan, error) {
	if err := optim.Check(m); err != nil {
		return nil, err
	}
	var first *plan.Plan
	for _, d := range devices {
		p, err := plan.Compile(m, d.Target, d.Printer)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = p
		} else {
			first.Variants = append(first.Variants, p)
		}
	}
	if first == nil {
		return nil, ir.Attrf("there are no targets; one or more are required")
	}
	return first, nil
}
