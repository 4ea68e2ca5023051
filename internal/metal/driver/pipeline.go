//go:build cgo && (darwin || linux)

package driver

/*
#include <stdlib.h>
#include "binding.h"

static void *call_archive(const rlx_metal *m, void *d, const char *path, rlx_error *e) { return m->archive(d, path, e); }
static int call_save(const rlx_metal *m, void *a, const char *path, rlx_error *e) { return m->save(a, path, e); }
static void *call_function(const rlx_metal *m, void *d, const char *source, const char *name, rlx_error *e) { return m->function(d, source, name, e); }
static void *call_pipeline(const rlx_metal *m, void *d, void *f, uint64_t threads, void *a, int add, rlx_error *e) { return m->pipeline(d, f, threads, a, add, e); }
static void release_object(const rlx_metal *m, void *o) { m->release(o); }
*/
import "C"

import "unsafe"

// object is a Metal object.
type object struct {
	m      *C.rlx_metal
	handle unsafe.Pointer
}

// Release releases the object.
func (o object) Release() { C.release_object(o.m, o.handle) }

// Archive is a file of compiled pipelines (MTLBinaryArchive).
type Archive struct{ object }

// OpenArchive opens a file, or a new archive for "". The error is of kind Failed for a file
// that is missing, damaged, or of another system.
func (d *Device) OpenArchive(path string) (Archive, error) {
	var name *C.char
	if path != "" {
		name = C.CString(path)
		defer C.free(unsafe.Pointer(name))
	}
	var e C.rlx_error
	a := Archive{object{d.m, C.call_archive(d.m, d.handle, name, &e)}}
	return a, failure("archive", a.handle != nil, &e)
}

// Save writes the archive to a file.
func (a Archive) Save(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var e C.rlx_error
	return failure("archive", C.call_save(a.m, a.handle, name, &e) != 0, &e)
}

// Function is a kernel in the compiler's intermediate form.
type Function struct{ object }

// Compile compiles a source and returns its kernel with a name. The error is of kind
// BadSource, with the compiler's messages.
func (d *Device) Compile(source, name string) (Function, error) {
	text, function := C.CString(source), C.CString(name)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(function))
	var e C.rlx_error
	f := Function{object{d.m, C.call_function(d.m, d.handle, text, function, &e)}}
	return f, failure("compile", f.handle != nil, &e)
}

// Pipeline is a compiled kernel.
type Pipeline struct{ object }

// NewPipeline compiles a function for threadgroups of the given number of threads, or takes
// it from the archive; if add is set it is added to the archive. The error is of kind
// BadSource if the device does not support that many threads.
func (d *Device) NewPipeline(f Function, threads int, a Archive, add bool) (Pipeline, error) {
	flag := C.int(0)
	if add {
		flag = 1
	}
	var e C.rlx_error
	p := Pipeline{object{d.m, C.call_pipeline(d.m, d.handle, f.handle, C.uint64_t(threads), a.handle, flag, &e)}}
	return p, failure("pipeline", p.handle != nil, &e)
}
