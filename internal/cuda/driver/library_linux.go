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
	"strings"
	"unsafe"
)

// Library is the loaded CUDA driver. Its methods may be called from several goroutines.
type Library struct {
	cu          *C.rlx_cuda
	environment environment

	// Version is the version of CUDA that the driver supports: 13000 for 13.0.
	Version int
}

// Load loads the driver. The error is of kind [ErrUnavailable] and names what is missing and
// where it was searched.
func Load() (*Library, error) { return load(system()) }

func load(e environment) (*Library, error) {
	l := &Library{environment: e}
	if err := l.loadDriver(e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return l, nil
}

// whyBytes is the size of the buffer for a loader's message.
const whyBytes = 1024

// open calls a loader in C, which writes the reason of a failure.
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
		return fmt.Errorf("the NVIDIA driver supports CUDA %s; %d.0 or later is required: install driver 525 or later", versionText(l.Version), oldest)
	}
	return nil
}

// noted runs C code that makes several calls and notes the name of the last one. It returns its status and that name.
func noted(run func(call **C.char) C.int) (code C.int, name string) {
	call := (**C.char)(C.calloc(1, C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(call))
	code = run(call)
	return code, C.GoString(*call)
}

// missing reports whether a library does not exist, rather than fails to load.
func missing(err error) bool { return strings.Contains(err.Error(), "cannot open shared object file") }

// check converts a status of the driver to an error.
func (l *Library) check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return &Error{
		Call: call, Code: int(code),
		Name: C.GoString(C.rlx_error_name(l.cu, code)), Text: C.GoString(C.rlx_error_text(l.cu, code)),
	}
}

// Count returns the number of devices. $CUDA_VISIBLE_DEVICES may hide some.
func (l *Library) Count() (int, error) {
	var n C.int
	err := l.check("cuDeviceGetCount", C.rlx_count(l.cu, &n))
	return int(n), err
}
