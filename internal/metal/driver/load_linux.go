//go:build cgo

package driver

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include "binding.h"

static const rlx_metal *load_binding(const char *path, const char **why) {
	void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL); // kernels of a software device call it
	const rlx_metal *(*binding)(void) = library ? (const rlx_metal *(*)(void))dlsym(library, "rlx_metal_binding") : NULL;
	*why = binding ? NULL : dlerror();
	return binding ? binding() : NULL;
}
*/
import "C"

import (
	"embed"
	"fmt"
	"os"
	"unsafe"
)

// LibraryVariable is the environment variable that names a library with a software device;
// see the package documentation.
const LibraryVariable = "RLX_METAL_LIBRARY"

// Software reports whether the device is a stand-in for Metal.
const Software = true

// Sources are the files of the binding, for building such a library.
//
//go:embed *.h *.m
var Sources embed.FS

// load returns the binding of the library named by [LibraryVariable].
func load() (*C.rlx_metal, error) {
	path := os.Getenv(LibraryVariable)
	if path == "" {
		return nil, &Error{Call: "load", Kind: Unavailable, Text: "the system is linux; Metal needs macOS"}
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why *C.char
	if m := C.load_binding(name, &why); m != nil {
		return m, nil
	}
	return nil, &Error{Call: "load", Kind: Unavailable, Text: fmt.Sprintf("%s (from $%s): %s", path, LibraryVariable, C.GoString(why))}
}
