//go:build amd64 || arm64

package driver

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"
)

// Library is the CUDA driver and NVRTC, loaded. Its methods may be called from
// several goroutines.
type Library struct {
	cu   *C.rlx_cuda
	rtc  *C.rlx_nvrtc
	blas *C.rlx_blas // nil where it is not there

	// Version is what the driver supports, as in 13000 for CUDA 13.0.
	Version int
	// Compiler is the version of NVRTC, as in "13.0", and CompilerPath where it
	// was found.
	Compiler, CompilerPath string
	compilerMajor          int
	// Products is the version of cuBLASLt, as in "13.1.0", "" where there is none.
	Products string
}

// Load loads the libraries. The error is of kind [ErrUnavailable] and says what
// is missing and where it was looked for.
func Load() (*Library, error) { return load(system()) }

func load(e environment) (*Library, error) {
	l := &Library{}
	if err := l.loadDriver(e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := l.loadCompiler(e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	l.loadProducts(e)
	return l, nil
}

// loadProducts loads cuBLASLt of the compiler's major version. Without it all is
// computed by kernels.
func (l *Library) loadProducts(e environment) {
	for _, c := range candidates(e, "cublasLt", 1000*l.compilerMajor) {
		if c.major != l.compilerMajor {
			return
		}
		blas, err := open(c.path, func(p, why *C.char) *C.rlx_blas { return C.rlx_load_blas(p, why, whyBytes) })
		if err == nil {
			v := int(C.rlx_blas_version(blas))
			l.blas, l.Products = blas, fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
			return
		}
	}
}

// whyBytes is the room for a loader's message.
const whyBytes = 1024

// open calls a loader of the C side, which may leave the reason of a failure.
func open[T any](path string, load func(path *C.char, why *C.char) *T) (*T, error) {
	p, why := C.CString(path), (*C.char)(C.calloc(1, whyBytes))
	defer C.free(unsafe.Pointer(p))
	defer C.free(unsafe.Pointer(why))
	if table := load(p, why); table != nil {
		return table, nil
	}
	return nil, errors.New(C.GoString(why))
}

func (l *Library) loadDriver(e environment) error {
	var failed error
	for _, path := range driverPaths(e) {
		cu, err := open(path, func(p, why *C.char) *C.rlx_cuda { return C.rlx_load_cuda(p, why, whyBytes) })
		if err == nil {
			l.cu = cu
			break
		}
		if failed == nil || !missing(err) {
			failed = err
		}
	}
	if l.cu == nil {
		return fmt.Errorf("no NVIDIA driver: %w", failed)
	}
	if err := l.check("cuInit", C.rlx_init(l.cu)); err != nil {
		return err
	}
	var version C.int
	if err := l.check("cuDriverGetVersion", C.rlx_version(l.cu, &version)); err != nil {
		return err
	}
	if l.Version = int(version); l.Version < 1000*oldest {
		return fmt.Errorf("the NVIDIA driver supports CUDA %d.%d, and this program needs %d.0 or later: install driver 525 or later", l.Version/1000, l.Version%1000/10, oldest)
	}
	return nil
}

// missing reports whether a library was not there, rather than there and of no
// use.
func missing(err error) bool { return strings.Contains(err.Error(), "cannot open shared object file") }

func (l *Library) loadCompiler(e environment) error {
	var broken error
	for _, c := range candidates(e, "nvrtc", l.Version) {
		if c.dir != "" {
			preload(e, c)
		}
		rtc, err := open(c.path, func(p, why *C.char) *C.rlx_nvrtc { return C.rlx_load_nvrtc(p, why, whyBytes) })
		if err != nil {
			if !missing(err) {
				broken = errors.Join(broken, err)
			}
			continue
		}
		var major, minor C.int
		if r := C.rlx_nvrtc_version(rtc, &major, &minor); r != 0 {
			broken = errors.Join(broken, fmt.Errorf("nvrtcVersion of %s: %d", c.path, r))
			continue
		}
		l.rtc, l.Compiler, l.CompilerPath, l.compilerMajor = rtc, fmt.Sprintf("%d.%d", major, minor), c.path, int(major)
		return nil
	}
	if broken != nil {
		return fmt.Errorf("NVRTC cannot be used: %w", broken)
	}
	return fmt.Errorf("no NVRTC for a driver of CUDA %d.%d: install a CUDA toolkit of version %d to %d or the Python package nvidia-cuda-nvrtc, or set %s to the folder of libnvrtc.so; looked in %s",
		l.Version/1000, l.Version%1000/10, oldest, l.Version/1000, PathVariable, strings.Join(libraryDirs(e), " "))
}

// preload loads what NVRTC itself would look for where the system's loader
// does.
func preload(e environment, c candidate) {
	major := c.path[strings.LastIndex(c.path, ".")+1:]
	for _, path := range e.glob(filepath.Join(c.dir, "libnvrtc-builtins.so."+major+".*")) {
		p := C.CString(path)
		C.rlx_preload(p)
		C.free(unsafe.Pointer(p))
	}
}

// check makes an error of a result of the driver's.
func (l *Library) check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return &Error{
		Call: call, Code: int(code),
		Name: C.GoString(C.rlx_error_name(l.cu, code)), Text: C.GoString(C.rlx_error_text(l.cu, code)),
	}
}

// Count returns how many devices there are. $CUDA_VISIBLE_DEVICES may hide some.
func (l *Library) Count() (int, error) {
	var n C.int
	err := l.check("cuDeviceGetCount", C.rlx_count(l.cu, &n))
	return int(n), err
}

// Compile compiles CUDA C++ to a cubin with the given options. A source that
// NVRTC refuses gives an [*Error] with its log.
func (l *Library) Compile(source string, options ...string) ([]byte, error) {
	src := C.CString(source)
	defer C.free(unsafe.Pointer(src))
	list := (**C.char)(C.calloc(C.size_t(len(options)+1), C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(list))
	for i, o := range options {
		text := C.CString(o)
		defer C.free(unsafe.Pointer(text))
		unsafe.Slice(list, len(options))[i] = text
	}
	var image, log *C.char
	var size C.size_t
	code := C.rlx_compile(l.rtc, src, list, C.int(len(options)), &image, &size, &log)
	defer C.free(unsafe.Pointer(image))
	defer C.free(unsafe.Pointer(log))
	if code != 0 {
		return nil, &Error{Call: nvrtcCall, Code: int(code), Name: C.GoString(C.rlx_nvrtc_error(l.rtc, code)), Text: strings.TrimSpace(C.GoString(log))}
	}
	return C.GoBytes(unsafe.Pointer(image), C.int(size)), nil
}
