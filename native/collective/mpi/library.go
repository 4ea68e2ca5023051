//go:build cgo && linux && (amd64 || arm64)

package mpi

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "mpi_linux.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/rlx-go/rlx/native/collective"
)

// Variable is the environment variable with the path of MPI's library.
const Variable = "RLX_MPI"

// libraries are the names of MPI's libraries: those of the ABI of MPI 5, MPICH and Open MPI.
var libraries = map[string][]string{
	"":      {"libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12", "libmpi.so.40"},
	"mpich": {"libmpi_abi.so.1", "libmpich.so.12", "libmpi.so.12"},
	"open":  {"libmpi.so.40"},
}

// pathsOf returns the libraries to try, in order: that of the launcher of this process.
func pathsOf(getenv func(string) string) []string {
	switch {
	case getenv(Variable) != "":
		return []string{getenv(Variable)}
	case getenv("OMPI_COMM_WORLD_RANK") != "":
		return libraries["open"]
	case getenv("PMI_RANK") != "":
		return libraries["mpich"]
	}
	return libraries[""]
}

// interfaces are the names of the binary interfaces.
var interfaces = map[C.int]string{C.rlx_mpi_open: "Open MPI", C.rlx_mpi_mpich: "MPICH", C.rlx_mpi_abi: "the ABI of MPI 5"}

// Available returns nil if a library of MPI can be loaded, or an error that says which were tried.
func Available() error {
	_, err := load()
	return err
}

// load loads the library. It stays loaded.
func load() (*C.rlx_mpi, error) {
	const size = 512
	why := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(why))
	var failed []error
	for _, path := range pathsOf(os.Getenv) {
		p := C.CString(path)
		lib := C.rlx_mpi_load(p, why, size)
		C.free(unsafe.Pointer(p))
		if lib != nil {
			return lib, nil
		}
		failed = append(failed, errors.New(C.GoString(why)))
	}
	return nil, fmt.Errorf("no library of MPI; set %s to its path: %w", Variable, errors.Join(failed...))
}

// check returns the fault of a code of MPI, nil for success.
func (w *world) check(call string, code C.int) *collective.Fault {
	if code == 0 {
		return nil
	}
	const size = 512
	text := (*C.char)(C.calloc(1, size))
	defer C.free(unsafe.Pointer(text))
	C.rlx_mpi_text(w.lib, code, text)
	return &collective.Fault{Kind: collective.ErrPeer, Peer: -1, Err: fmt.Errorf("%s: %s (%d)", call, C.GoString(text), int(code))}
}
