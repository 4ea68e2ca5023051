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
	"path/filepath"
	"slices"
	"strings"
	"unsafe"
)

// Compiler is an NVRTC that compiles for a device. Its methods may be called from several
// goroutines.
type Compiler struct {
	// Version is the version of NVRTC, as in "13.0", and Path its file.
	Version, Path string
	// Code is its output format for the device.
	Code Code

	version int // 13000 for 13.0
	rtc     *C.rlx_nvrtc
}

// compilerFor returns the compiler for a GPU of a name and compute capability. It stops
// searching at the first that compiles for that capability.
func (l *Library) compilerFor(name string, capability int) (*Compiler, error) {
	var tables []*C.rlx_nvrtc
	var editions []edition
	var broken error
	for _, c := range candidates(l.environment, "nvrtc", l.Version) {
		if c.dir != "" {
			preload(l.environment, c)
		}
		rtc, err := open(c.path, func(p, why *C.char) *C.rlx_nvrtc { return C.rlx_load_nvrtc(p, why, whyBytes) })
		if err != nil {
			if !missing(err) {
				broken = errors.Join(broken, err)
			}
			continue
		}
		e, err := describe(rtc, c.path)
		if err != nil {
			broken = errors.Join(broken, err)
			continue
		}
		tables, editions = append(tables, rtc), append(editions, e)
		if slices.Contains(e.capabilities, capability) {
			break
		}
	}
	i, code := choose(editions, capability, l.Version)
	if i >= 0 {
		e := editions[i]
		return &Compiler{Version: versionText(e.version), Path: e.path, Code: code, version: e.version, rtc: tables[i]}, nil
	}
	why := unusable(editions, capability, l.Version)
	if broken != nil {
		why += fmt.Sprintf("; one found cannot be used: %v", broken)
	}
	return nil, fmt.Errorf("kernels cannot be compiled for %s of compute capability %s under a driver for CUDA %s: %s: %s; looked in %s",
		name, capabilityText(capability), versionText(l.Version), why, remedy(capability, l.Version), strings.Join(libraryDirs(l.environment), " "))
}

// describe queries an NVRTC for its version and its compute capabilities.
func describe(rtc *C.rlx_nvrtc, path string) (edition, error) {
	var major, minor, count C.int
	if r := C.rlx_nvrtc_version(rtc, &major, &minor); r != 0 {
		return edition{}, fmt.Errorf("nvrtcVersion of %s: %d", path, r)
	}
	if r := C.rlx_nvrtc_count(rtc, &count); r != 0 || count < 1 {
		return edition{}, fmt.Errorf("nvrtcGetNumSupportedArchs of %s: %d, %d architectures", path, r, count)
	}
	list := make([]C.int, count)
	if r := C.rlx_nvrtc_capabilities(rtc, &list[0]); r != 0 {
		return edition{}, fmt.Errorf("nvrtcGetSupportedArchs of %s: %d", path, r)
	}
	e := edition{version: 1000*int(major) + 10*int(minor), path: path}
	for _, c := range list {
		e.capabilities = append(e.capabilities, int(c))
	}
	return e, nil
}

// preload loads the NVRTC builtins of the same folder, which NVRTC itself would only find
// through the system's loader.
func preload(e environment, c candidate) {
	major := c.path[strings.LastIndex(c.path, ".")+1:]
	for _, path := range e.glob(filepath.Join(c.dir, "libnvrtc-builtins.so."+major+".*")) {
		p := C.CString(path)
		C.rlx_preload(p)
		C.free(unsafe.Pointer(p))
	}
}

// Compile compiles CUDA C++ to a cubin or to zero-terminated PTX; the options must name the
// matching architecture. If NVRTC refuses the source, the error is an [*Error] with its log.
func (c *Compiler) Compile(source string, code Code, options ...string) ([]byte, error) {
	src := C.CString(source)
	defer C.free(unsafe.Pointer(src))
	list := (**C.char)(C.calloc(C.size_t(len(options)+1), C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(list))
	for i, o := range options {
		text := C.CString(o)
		defer C.free(unsafe.Pointer(text))
		unsafe.Slice(list, len(options))[i] = text
	}
	ptx := C.int(0)
	if code.PTX {
		ptx = 1
	}
	var image, log *C.char
	var size C.size_t
	r := C.rlx_compile(c.rtc, src, list, C.int(len(options)), ptx, &image, &size, &log)
	defer C.free(unsafe.Pointer(image))
	defer C.free(unsafe.Pointer(log))
	if r != 0 {
		return nil, &Error{Call: nvrtcCall, Code: int(r), Name: C.GoString(C.rlx_nvrtc_error(c.rtc, r)), Text: strings.TrimSpace(C.GoString(log))}
	}
	return C.GoBytes(unsafe.Pointer(image), C.int(size)), nil
}
