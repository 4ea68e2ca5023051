//go:build amd64 || arm64

package driver

/*
#cgo noescape rlx_factor_run
#cgo nocallback rlx_factor_run
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
	"sync"
	"unsafe"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/routine"
)

// solverLibrary is cuSOLVER, which is loaded when a program first has a factorisation: it and the libraries that it
// needs have hundreds of megabytes.
type solverLibrary struct {
	path   string // "" without one
	once   sync.Once
	solver *C.rlx_solver // nil if it cannot be loaded
}

// find finds cuSOLVER of the compiler's major version of CUDA. Its own is one less: that of CUDA 13 is 12.
func (s *solverLibrary) find(e environment, version int) {
	name := fmt.Sprintf("libcusolver.so.%d", version-1)
	for _, dir := range libraryDirs(e) {
		if dir == "" {
			continue
		}
		if found := e.glob(filepath.Join(dir, name)); len(found) > 0 {
			s.path = found[0]
			return
		}
	}
}

// HasSolver reports whether cuSOLVER is installed.
func (d *Device) HasSolver() bool { return d.solvers.path != "" }

// load returns the library, or nil.
func (s *solverLibrary) load() *C.rlx_solver {
	s.once.Do(func() {
		if s.path != "" {
			s.solver, _ = open(s.path, func(p, why *C.char) *C.rlx_solver { return C.rlx_load_solver(p, why, whyBytes) })
		}
	})
	return s.solver
}

// Solver factors matrices with cuSOLVER. Its calls share memory of the library, so that they must be in order on the
// device: each program has its own.
type Solver struct {
	device         *Device
	handle, params C.rlx_handle
	made           []*Factor
}

// Factor is a factorisation with its workspace on the host.
type Factor struct {
	by *Solver
	c  *C.rlx_factor
}

// NewSolver returns a solver. The error is [ErrNoAlgorithm] if the library cannot be loaded or does not support the
// device.
func (d *Device) NewSolver() (*Solver, error) {
	library := d.solvers.load()
	if library == nil {
		return nil, ErrNoAlgorithm
	}
	s := &Solver{device: d}
	var handle, params C.rlx_handle
	err := s.run(func(call **C.char) C.int { return C.rlx_solver_create(library, d.c, &handle, &params, call) })
	s.handle, s.params = handle, params
	if err != nil {
		return nil, errors.Join(err, s.Release())
	}
	return s, nil
}

// Factor returns a factorisation. The error is [ErrNoAlgorithm] if it needs more workspace than it has.
func (s *Solver) Factor(r routine.Factor) (*Factor, error) {
	f := &Factor{by: s, c: (*C.rlx_factor)(C.calloc(1, C.sizeof_rlx_factor))}
	s.made = append(s.made, f)
	*f.c = C.rlx_factor{
		op: C.int(r.Op), _type: realTypes[r.DType], batch: C.int(r.Batch),
		rows: C.int64_t(r.Rows), columns: C.int64_t(r.Cols), element: C.int64_t(r.DType.Size()),
	}
	d := s.device
	err := s.run(func(call **C.char) C.int {
		return C.rlx_factor_size(d.solvers.solver, d.c, s.handle, s.params, f.c, call)
	})
	if err == nil && int(f.c.workspace) > r.Workspace {
		err = ErrNoAlgorithm
	}
	f.c.host = C.calloc(1, f.c.host_bytes+1)
	return f, err
}

// realTypes are numbers of library_types.h.
var realTypes = map[dtype.DType]C.int{dtype.F32: 0, dtype.F64: 1}

// Factor enqueues a factorisation with arrays in the order of [routine.Factor].
func (s *Stream) Factor(f *Factor, arrays []Ptr) error {
	n := len(arrays)
	d := s.device
	return f.by.run(func(call **C.char) C.int {
		return C.rlx_factor_run(d.solvers.solver, d.c, f.by.handle, f.by.params, f.c,
			C.rlx_ptr(arrays[0]), C.rlx_ptr(arrays[1]), C.rlx_ptr(arrays[n-2]), C.rlx_ptr(arrays[n-1]), s.handle, call)
	})
}

// Release frees the solver's memory after its work.
func (s *Solver) Release() error {
	for _, f := range s.made {
		C.free(f.c.host)
		C.free(unsafe.Pointer(f.c))
	}
	d := s.device
	return s.run(func(call **C.char) C.int {
		return C.rlx_solver_destroy(d.solvers.solver, d.c, s.handle, s.params, call)
	})
}

// Numbers of cusolver_common.h: an architecture or a type that the library does not support.
var solverLacks = []C.int{4, 8, 9}

// run makes calls of the library and converts a status to an error.
func (s *Solver) run(calls func(call **C.char) C.int) error {
	code, name := noted(calls)
	switch {
	case !strings.HasPrefix(name, "cusolver"):
		return s.device.check(name, code)
	case code == 0:
		return nil
	case slices.Contains(solverLacks, code):
		return ErrNoAlgorithm
	}
	return &Error{Call: name, Code: int(code), Name: solverStatus[code], Text: "cuSOLVER failed"}
}

// solverStatus are names of cusolver_common.h.
var solverStatus = map[C.int]string{
	1: "CUSOLVER_STATUS_NOT_INITIALIZED", 2: "CUSOLVER_STATUS_ALLOC_FAILED", 3: "CUSOLVER_STATUS_INVALID_VALUE",
	6: "CUSOLVER_STATUS_EXECUTION_FAILED", 7: "CUSOLVER_STATUS_INTERNAL_ERROR",
}
