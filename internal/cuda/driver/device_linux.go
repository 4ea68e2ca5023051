//go:build amd64 || arm64

package driver

/*
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// Device is a GPU with its primary context. Its methods, and those of its modules, streams
// and events, may be called from any goroutine; calls for one stream must be serialised.
type Device struct {
	Name            string
	Major, Minor    int // compute capability
	Multiprocessors int
	Clock           int // of a multiprocessor, in kHz
	Shared          int // maximal shared memory of a workgroup, in bytes
	Memory          int // in bytes
	// Bandwidth is the theoretical memory bandwidth in GB/s, and Cache the size of the L2
	// cache in bytes; each is 0 if unknown.
	Bandwidth float64
	Cache     int
	// Compiler compiles for the device.
	Compiler *Compiler
	// Products is the version of cuBLASLt, as in "13.1.0", or "".
	Products string

	library *Library
	blas    *C.rlx_blas // nil without cuBLASLt
	solvers solverLibrary
	c       *C.rlx_device // never freed
}

// Ptr is an address in device memory.
type Ptr uint64

// Open opens a device by its ordinal, with a compiler for it. The error is of kind
// [ErrUnavailable] and names what to install.
func (l *Library) Open(ordinal int) (*Device, error) {
	n, err := l.Count()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if ordinal < 0 || ordinal >= n {
		return nil, fmt.Errorf("%w: unknown device %d: the driver has %d", ErrUnavailable, ordinal, n)
	}
	d := &Device{library: l, c: (*C.rlx_device)(C.calloc(1, C.sizeof_rlx_device))}
	if err := d.open(ordinal); err != nil {
		C.free(unsafe.Pointer(d.c))
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return d, nil
}

// open describes a device, finds its compiler and then retains its context.
func (d *Device) open(ordinal int) (err error) {
	l := d.library
	var info C.rlx_info
	r, name := noted(func(call **C.char) C.int { return C.rlx_describe(l.cu, C.int(ordinal), d.c, &info, call) })
	if r != 0 {
		return l.check(name, r)
	}
	d.Name, d.Major, d.Minor = C.GoString(&info.name[0]), int(info.major), int(info.minor)
	d.Multiprocessors, d.Clock, d.Memory = int(info.multiprocessors), int(info.clock_khz), int(info.memory)
	d.Shared, d.Cache = int(info.shared), int(info.cache)
	d.Bandwidth = bandwidthOf(int(info.memory_khz), int(info.bus_bits))
	capability := 10*d.Major + d.Minor
	if capability < oldestCapability {
		return fmt.Errorf("%s has compute capability %s; %s or later is required", d.Name, capabilityText(capability), capabilityText(oldestCapability))
	}
	if d.Compiler, err = l.compilerFor(d.Name, capability); err != nil {
		return err
	}
	d.loadProducts()
	d.solvers.find(d.library.environment, d.Compiler.version/1000)
	return l.check("cuDevicePrimaryCtxRetain", C.rlx_retain(d.c))
}

// bandwidthOf returns the bandwidth in GB/s of double-data-rate memory.
func bandwidthOf(kHz, bits int) float64 { return 2 * float64(kHz) / 1e6 * float64(bits) / 8 }

// loadProducts loads cuBLASLt of the compiler's major version, if installed.
func (d *Device) loadProducts() {
	major := d.Compiler.version / 1000
	for _, c := range candidates(d.library.environment, "cublasLt", 1000*major) {
		if c.major != major {
			return
		}
		blas, err := open(c.path, func(p, why *C.char) *C.rlx_blas { return C.rlx_load_blas(p, why, whyBytes) })
		if err == nil {
			v := int(C.rlx_blas_version(blas))
			d.blas, d.Products = blas, fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
			return
		}
	}
}

// Library returns the library that the device was opened with.
func (d *Device) Library() *Library { return d.library }

// wgmmaFrom is the first version of NVRTC that compiles wgmma in seconds: a bf16 product
// takes 12.0 112 s, and a TF32 product with a relu epilogue takes 12.4 60 s; 12.6 and 12.8
// take at most 3 s.
const wgmmaFrom = 12060

// HasWgmma reports whether kernels may use wgmma: on compute capability 9.x only, with a
// compiler that is fast enough at it.
func (d *Device) HasWgmma() bool {
	return d.Major == 9 && d.Compiler.version >= wgmmaFrom && !d.Compiler.Code.PTX
}

// HasMma reports whether kernels may use mma in f16, bf16 and TF32.
func (d *Device) HasMma() bool { return d.Compiler.Code.Capability >= 80 }

func (d *Device) check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return d.library.check(call, code)
}

// MemoryInfo returns the free and the total memory in bytes.
func (d *Device) MemoryInfo() (free, total int, err error) {
	var f, t C.size_t
	err = d.check("cuMemGetInfo", C.rlx_cuMemGetInfo(d.c, &f, &t))
	return int(f), int(t), err
}

// Alloc allocates uninitialised device memory.
func (d *Device) Alloc(bytes int) (Ptr, error) {
	var p C.rlx_ptr
	err := d.check("cuMemAlloc", C.rlx_cuMemAlloc(d.c, &p, C.size_t(bytes)))
	return Ptr(p), err
}

// Release frees device memory.
func (d *Device) Release(p Ptr) error {
	return d.check("cuMemFree", C.rlx_cuMemFree(d.c, C.rlx_ptr(p)))
}

// AllocHost allocates page-locked host memory.
func (d *Device) AllocHost(bytes int) ([]byte, error) {
	var p unsafe.Pointer
	if err := d.check("cuMemHostAlloc", C.rlx_cuMemHostAlloc(d.c, &p, C.size_t(bytes))); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

// ReleaseHost frees memory of AllocHost.
func (d *Device) ReleaseHost(mem []byte) error {
	return d.check("cuMemFreeHost", C.rlx_cuMemFreeHost(d.c, unsafe.Pointer(unsafe.SliceData(mem))))
}

// Module is code on the device.
type Module struct {
	device *Device
	handle C.rlx_handle
}

// LoadModule loads the output of [Compiler.Compile].
func (d *Device) LoadModule(image []byte) (*Module, error) {
	m := &Module{device: d}
	if len(image) == 0 {
		return nil, errors.New("no code given")
	}
	var handle C.rlx_handle
	err := d.check("cuModuleLoadDataEx", C.rlx_cuModuleLoadData(d.c, &handle, unsafe.Pointer(&image[0])))
	m.handle = handle
	return m, err
}

// Function is a kernel ready to launch.
type Function struct {
	// Early launches the kernel as a programmatic dependent of the kernel before it in the stream, if
	// [Device.LaunchesEarly]: its workgroups start once those of the other have begun and wait by
	// griddepcontrol.wait.
	Early bool

	handle C.rlx_handle
	shared int
}

// LaunchesEarly reports whether kernels can start before the kernel before them has ended.
func (d *Device) LaunchesEarly() bool { return d.HasWgmma() && d.library.cu.attributes != 0 }

// maxDynamicShared is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
const maxDynamicShared = 8

// Function returns a kernel of the module, launched with the given bytes of dynamic shared
// memory.
func (m *Module) Function(name string, shared int) (Function, error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	var handle C.rlx_handle
	err := m.device.check("cuModuleGetFunction", C.rlx_cuModuleGetFunction(m.device.c, &handle, m.handle, n))
	if err == nil && shared > 0 {
		err = m.device.check("cuFuncSetAttribute", C.rlx_cuFuncSetAttribute(m.device.c, handle, maxDynamicShared, C.int(shared)))
	}
	return Function{handle: handle, shared: shared}, err
}

// Unload unloads the module.
func (m *Module) Unload() error {
	return m.device.check("cuModuleUnload", C.rlx_cuModuleUnload(m.device.c, m.handle))
}
