package schedtest

import (
	"github.com/rlx-go/rlx/internal/compiler/plan"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/hardware"
	"github.com/rlx-go/rlx/ir/loop"
)

// Apple has fragments, and the workgroup memory of Apple's GPUs.
func Apple() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers, l.BindingBytes, l.BufferBytes, l.SharedBytes = 29, 1<<30, 1<<30, 32<<10
	return plan.Target{Name: "apple", Caps: loop.Caps{
		Dialect: dtype.MSL, Limits: l, F16: true, Subgroups: true, Subgroup: [2]int{32, 32}, Shuffles: true, Fragments: true, HalfFragments: true, BFloat: true,
	}}
}

// Dawn has fragments of f32 alone, as WGSL.
func Dawn() plan.Target {
	t := plan.WebGPU().WithFragments()
	t.SharedBytes = 32 << 10
	return t
}

// OwnProducts is an H200 without TF32.
func OwnProducts() plan.Target {
	t := Hopper()
	t.TF32 = false
	return t
}

// Hopper has the multiply-adds of an H200.
func Hopper() plan.Target {
	l := loop.DefaultLimits()
	l.StorageBuffers, l.BindingBytes, l.BufferBytes = 64, 1<<30, 1<<30
	return plan.Target{Name: "hopper", Caps: loop.Caps{
		Dialect: dtype.CUDA, Limits: l, Mma: true, TensorMaps: true, TF32: true, Shuffles: true, MmaBytes: 227 << 10, Multiprocessors: 132,
	}}
}

// Ampere has the warp multiply-adds and the shared memory of an A100.
func Ampere() plan.Target {
	t := Hopper()
	t.Name, t.MmaByWarps, t.TensorMaps, t.MmaBytes, t.Multiprocessors = "ampere", true, false, 163<<10, 108
	return t
}

// Ada has the shared memory of compute capability 8.6 and 8.9.
func Ada() plan.Target {
	t := Ampere()
	t.Name, t.MmaBytes, t.Multiprocessors = "ada", 99<<10, 128
	return t
}

// WithLibrary has a library for products.
func WithLibrary(p loop.Products) plan.Target {
	t := Hopper()
	t.Products, t.ProductBytes = p, 1024
	return t
}

// Choosy is WebGPU with free launches, so that no group is too small for a choice.
func Choosy() plan.Target {
	t := plan.WebGPU()
	t.Device = hardware.Unknown()
	t.Device.Launch = 1e-6
	return t
}
