//go:build amd64 || arm64

package driver

/*
#cgo noescape rlx_nccl_run
#cgo nocallback rlx_nccl_run
#include <stdlib.h>
#include "cuda_linux.h"
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/routine"
)

// NCCL is the loaded library of collectives, NCCL or RCCL.
type NCCL struct {
	// Path is where it was found, and Version is "2.27.5".
	Path, Version string

	c *C.rlx_nccl // never freed
}

// nccl is the library of the process, loaded once it was found.
var nccl struct {
	sync.Mutex
	found *NCCL
	path  string // by which it was found
}

// LoadNCCL loads NCCL. The error is of kind [ErrUnavailable] and lists the paths searched.
func LoadNCCL() (*NCCL, error) {
	e := system()
	key := e.get(NCCLVariable) + "\x00" + e.get(PathVariable)
	nccl.Lock()
	defer nccl.Unlock()
	if nccl.found != nil && nccl.path == key {
		return nccl.found, nil
	}
	made, err := loadNCCL(e)
	if err == nil {
		nccl.found, nccl.path = made, key
	}
	return made, err
}

func loadNCCL(e environment) (*NCCL, error) {
	var failed error
	for _, path := range ncclPaths(e) {
		c, err := open(path, func(p, why *C.char) *C.rlx_nccl { return C.rlx_load_nccl(p, why, whyBytes) })
		if err != nil {
			if failed == nil || !missing(err) {
				failed = err
			}
			continue
		}
		n := &NCCL{Path: path, c: c}
		var v C.int
		if err := n.check(nil, "ncclGetVersion", C.rlx_nccl_version(c, &v)); err != nil {
			return nil, err
		}
		n.Version = fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
		return n, nil
	}
	return nil, fmt.Errorf("%w: no NCCL: %w; install Python's package nvidia-nccl-cu13, or set %s to the path of libnccl.so.2", ErrUnavailable, failed, NCCLVariable)
}

// check converts a status to an error with NCCL's message, which NCCL keeps for each thread: callers lock theirs.
func (n *NCCL) check(comm C.rlx_handle, call string, code C.int) error {
	if code == 0 {
		return nil
	}
	text := C.GoString(C.rlx_nccl_last(n.c, comm))
	return &Error{Call: call, Code: int(code), Name: C.GoString(C.rlx_nccl_text(n.c, code)), Text: strings.TrimSpace(text)}
}

// NCCLID names a communicator; rank 0 makes it and all ranks use it.
type NCCLID [128]byte

// NewID returns a new id.
func (n *NCCL) NewID() (id NCCLID, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = n.check(nil, "ncclGetUniqueId", C.rlx_nccl_unique_id(n.c, (*C.char)(unsafe.Pointer(&id[0]))))
	return id, err
}

// Comm is one rank of a communicator. Calls come one at a time, except Abort and Failed.
type Comm struct {
	Rank, Size int

	nccl   *NCCL
	device *Device
	handle C.rlx_handle
}

// Connect makes the communicator of an id. It waits until all ranks have called it.
func (n *NCCL) Connect(d *Device, id NCCLID, rank, size int) (*Comm, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := &Comm{Rank: rank, Size: size, nccl: n, device: d}
	handle := (*C.rlx_handle)(C.calloc(1, C.size_t(unsafe.Sizeof(C.rlx_handle(nil)))))
	defer C.free(unsafe.Pointer(handle))
	err := n.check(nil, "ncclCommInitRankConfig", C.rlx_nccl_init(n.c, d.c, handle, C.int(size), (*C.char)(unsafe.Pointer(&id[0])), C.int(rank)))
	c.handle = *handle
	return c, err
}

// Failed returns the error of work that runs or has run, nil without one.
func (c *Comm) Failed() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var code C.int
	err := c.nccl.check(c.handle, "ncclCommGetAsyncError", C.rlx_nccl_async_error(c.nccl.c, c.handle, &code))
	const inProgress = 7
	if err != nil || code == inProgress {
		return err
	}
	return c.nccl.check(c.handle, "asynchronous work of ncclComm", code)
}

// Abort ends all work of the communicator on this rank and frees it.
func (c *Comm) Abort() error {
	return c.nccl.check(nil, "ncclCommAbort", C.rlx_nccl_abort(c.nccl.c, c.device.c, c.handle))
}

// Destroy frees the communicator after its work and that of its graphs.
func (c *Comm) Destroy() error {
	return c.nccl.check(nil, "ncclCommDestroy", C.rlx_nccl_destroy(c.nccl.c, c.device.c, c.handle))
}

// Types and reductions of nccl.h.
var (
	ncclTypes = map[dtype.DType]C.int{
		dtype.I8: 0, dtype.U8: 1, dtype.I32: 2, dtype.U32: 3, dtype.I64: 4, dtype.U64: 5, dtype.F16: 6, dtype.F32: 7, dtype.F64: 8, dtype.BF16: 9,
	}
	ncclReductions = [...]C.int{routine.Sum: 0, routine.Max: 2, routine.Min: 3}
)

// Reduces returns an error of kind [ir.ErrUnsupported] if NCCL cannot reduce elements of the type of
// a collective.
func (n *NCCL) Reduces(r routine.Collective) error {
	if _, ok := ncclTypes[r.DType]; !ok && (r.Op == routine.AllReduce || r.Op == routine.ReduceScatter) {
		return ir.Errorf(ir.ErrUnsupported, "NCCL has no reduction of %s: convert to a wider type first", r.DType)
	}
	return nil
}

// Run enqueues a collective.
func (c *Comm) Run(on *Stream, r routine.Collective, send, recv Ptr) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.nccl.Reduces(r); err != nil || r.Count == 0 {
		return err
	}
	bytes, _ := r.Bytes()
	x := (*C.rlx_collective)(C.calloc(1, C.sizeof_rlx_collective))
	defer C.free(unsafe.Pointer(x))
	*x = C.rlx_collective{
		op: C.int(r.Op), _type: ncclTypes[dtype.U8], reduction: ncclReductions[r.Reduction], rank: C.int(c.Rank), size: C.int(c.Size),
		root: C.int(r.Root), sender: -1, receiver: -1, count: C.size_t(bytes), bytes: C.size_t(bytes),
	}
	switch r.Op {
	case routine.AllReduce:
		x._type, x.count = ncclTypes[r.DType], C.size_t(r.Count)
	case routine.ReduceScatter:
		x._type, x.count = ncclTypes[r.DType], C.size_t(r.Count/r.Devices)
	}
	for _, p := range r.Pairs.List() {
		if p[1] == c.Rank {
			x.sender = C.int(p[0])
		}
		if p[0] == c.Rank {
			x.receiver = C.int(p[1])
		}
	}
	code, name := noted(func(call **C.char) C.int {
		return C.rlx_nccl_run(c.nccl.c, c.device.c, c.handle, x, C.rlx_ptr(send), C.rlx_ptr(recv), on.handle, call)
	})
	if !strings.HasPrefix(name, "nccl") {
		return c.device.check(name, code)
	}
	return c.nccl.check(c.handle, name, code)
}

// ncclPaths returns the paths to try for NCCL, in order.
func ncclPaths(e environment) []string {
	if path := e.get(NCCLVariable); path != "" {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return []string{path}
		}
		return []string{filepath.Join(path, "libnccl.so.2"), filepath.Join(path, "librccl.so.1")}
	}
	var out []string
	for _, name := range []string{"libnccl.so.2", "librccl.so.1"} {
		for _, dir := range libraryDirs(e) {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}
