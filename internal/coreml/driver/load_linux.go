//go:build cgo

package driver

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include "binding.h"

static const rlx_coreml *load_binding(const char *path, const char **why) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const rlx_coreml *(*binding)(void) = library ? (const rlx_coreml *(*)(void))dlsym(library, "rlx_coreml_binding") : NULL;
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

// LibraryVariable is the environment variable that names a library with a Core ML in
// software, see the comment of the package.
const LibraryVariable = "RLX_COREML_LIBRARY"

// Sources are the files of the binding, for building such a library.
//
//go:embed *.h *.m
var Sources embed.FS

// standIn reports whether this is not Core ML itself.
const standIn = true

// binding returns the functions of the library that [LibraryVariable] names.
func binding() (*C.rlx_coreml, error) {
	path := os.Getenv(LibraryVariable)
	if path == "" {
		return nil, unavailable("the system is linux; Core ML needs macOS or iOS, coreml.New writes models on any system")
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why *C.char
	if b := C.load_binding(name, &why); b != nil {
		return b, nil
	}
	return nil, unavailable(fmt.Sprintf("%s (from $%s): %s", path, LibraryVariable, C.GoString(why)))
}
