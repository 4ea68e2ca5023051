package driver

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "driver.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"
)

// ErrUnavailable says that the machine has no CUDA driver, no NVRTC or no
// device.
var ErrUnavailable = errors.New("CUDA is not available")

// Error is a call that failed.
type Error struct {
	Call    string // of the driver's or NVRTC's API
	Code    int
	Message string // the driver's text, or NVRTC's log
}

// Error returns "cuLaunchKernel: 701: too many resources requested".
func (e *Error) Error() string { return fmt.Sprintf("%s: %d: %s", e.Call, e.Code, e.Message) }

func check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return &Error{call, int(code), C.GoString(C.rlx_cu_error(code))}
}

// Device is a GPU with its primary context. Its methods may be called from any
// goroutine, one at a time.
type Device struct {
	Name         string
	Major, Minor int // compute capability
	context      unsafe.Pointer
}

// Ptr is an address in device memory.
type Ptr uint64

var load = sync.OnceValue(func() error {
	if C.rlx_cuda_load() != 0 {
		return fmt.Errorf("%w: driver: %s", ErrUnavailable, C.GoString(C.rlx_load_error()))
	}
	if err := check("cuInit", C.rlx_cu_init()); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return loadNVRTC()
})

// loadNVRTC tries the places where toolkits and Python wheels put the library.
func loadNVRTC() error {
	names := []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"}
	for _, dir := range append(libraryDirs(), "") {
		for _, name := range names {
			path := C.CString(filepath.Join(dir, name))
			r := C.rlx_nvrtc_load(path)
			C.free(unsafe.Pointer(path))
			if r == 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: NVRTC: %s", ErrUnavailable, C.GoString(C.rlx_load_error()))
}

func libraryDirs() []string {
	var dirs []string
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if root := os.Getenv(v); root != "" {
			dirs = append(dirs, filepath.Join(root, "lib64"), filepath.Join(root, "targets/x86_64-linux/lib"))
		}
	}
	for _, pattern := range []string{
		os.Getenv("VIRTUAL_ENV") + "/lib/python3*/site-packages/nvidia/*/lib",
		"/usr/local/cuda/lib64", "/usr/local/cuda-1*/lib64", "/opt/cuda/lib64",
		"/usr/lib/python3*/*-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib",
		"/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib",
	} {
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	return dirs
}

// Open returns the device with the given number. The error is
// [ErrUnavailable], with what is missing, where there is no CUDA.
func Open(ordinal int) (*Device, error) {
	if err := load(); err != nil {
		return nil, err
	}
	var number, major, minor C.int
	name := (*C.char)(C.calloc(1, 256))
	defer C.free(unsafe.Pointer(name))
	if err := check("cuDeviceGet", C.rlx_cu_device(C.int(ordinal), &number, name, 255, &major, &minor)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	d := &Device{Name: C.GoString(name), Major: int(major), Minor: int(minor)}
	return d, check("cuDevicePrimaryCtxRetain", C.rlx_cu_context(number, &d.context))
}

// with runs f with the device's context current, which belongs to the thread.
func (d *Device) with(call string, f func() C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := check("cuCtxSetCurrent", C.rlx_cu_use(d.context)); err != nil {
		return err
	}
	return check(call, f())
}

// Alloc returns memory of the given size, all bytes 0.
func (d *Device) Alloc(bytes int) (Ptr, error) {
	var p C.uint64_t
	err := d.with("cuMemAlloc", func() C.int {
		if r := C.rlx_cu_alloc(&p, C.size_t(bytes)); r != 0 {
			return r
		}
		return C.rlx_cu_fill(p, 0, C.size_t(bytes))
	})
	return Ptr(p), err
}

// Free gives memory back.
func (d *Device) Free(p Ptr) error {
	return d.with("cuMemFree", func() C.int { return C.rlx_cu_free(C.uint64_t(p)) })
}

// Write copies data to device memory.
func (d *Device) Write(p Ptr, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	return d.with("cuMemcpyHtoD", func() C.int {
		return C.rlx_cu_write(C.uint64_t(p), unsafe.Pointer(&data[0]), C.size_t(len(data)))
	})
}

// Read fills data from device memory, once all launches before are done.
func (d *Device) Read(data []byte, p Ptr) error {
	if len(data) == 0 {
		return nil
	}
	return d.with("cuMemcpyDtoH", func() C.int {
		return C.rlx_cu_read(unsafe.Pointer(&data[0]), C.uint64_t(p), C.size_t(len(data)))
	})
}

// Synchronize waits for all launches.
func (d *Device) Synchronize() error {
	return d.with("cuCtxSynchronize", func() C.int { return C.rlx_cu_synchronize() })
}

// Function is a kernel ready to launch.
type Function struct{ handle unsafe.Pointer }

// Compile compiles CUDA C++ for the device with NVRTC and returns one of its
// kernels. A source that NVRTC refuses gives an [*Error] with its log.
func (d *Device) Compile(source, kernel string) (*Function, error) {
	arch := fmt.Sprintf("--gpu-architecture=sm_%d%d", d.Major, d.Minor)
	image, err := compile(source, arch)
	if err != nil {
		return nil, err
	}
	defer C.free(image)
	name := C.CString(kernel)
	defer C.free(unsafe.Pointer(name))
	f := &Function{}
	return f, d.with("cuModuleLoadData", func() C.int {
		var module unsafe.Pointer
		if r := C.rlx_cu_module(&module, image); r != 0 {
			return r
		}
		return C.rlx_cu_function(&f.handle, module, name)
	})
}

func compile(source, arch string) (unsafe.Pointer, error) {
	src, option := C.CString(source), C.CString(arch)
	defer C.free(unsafe.Pointer(src))
	defer C.free(unsafe.Pointer(option))
	var image, log *C.char
	var size C.size_t
	if r := C.rlx_nvrtc_compile(src, option, &image, &size, &log); r != 0 {
		defer C.free(unsafe.Pointer(log))
		return nil, &Error{"nvrtcCompileProgram", int(r), C.GoString(log)}
	}
	return unsafe.Pointer(image), nil
}

// Launch starts a kernel. args are the addresses of its pointer parameters, in
// order, followed by one parameter block of any size, if there is one.
func (d *Device) Launch(f *Function, grid, block [3]int, args []Ptr, params []byte) error {
	values := (*[1 << 16]C.uint64_t)(C.malloc(C.size_t(8*len(args) + len(params) + 8)))
	pointers := (*[1 << 16]unsafe.Pointer)(C.malloc(C.size_t(8 * (len(args) + 1))))
	defer C.free(unsafe.Pointer(values))
	defer C.free(unsafe.Pointer(pointers))
	for i, p := range args {
		values[i] = C.uint64_t(p)
		pointers[i] = unsafe.Pointer(&values[i])
	}
	if len(params) > 0 {
		at := unsafe.Pointer(&values[len(args)])
		copy(unsafe.Slice((*byte)(at), len(params)), params)
		pointers[len(args)] = at
	}
	g, b := dims(grid), dims(block)
	return d.with("cuLaunchKernel", func() C.int {
		return C.rlx_cu_launch(f.handle, &g[0], &b[0], (*unsafe.Pointer)(unsafe.Pointer(pointers)))
	})
}

func dims(n [3]int) [3]C.uint { return [3]C.uint{C.uint(n[0]), C.uint(n[1]), C.uint(n[2])} }
