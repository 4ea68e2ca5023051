//go:build cgo && linux && (amd64 || arm64)

package mpi

/*
#include <stdlib.h>
#include "mpi_linux.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/rlx-go/rlx/native/collective"
)

// world is the use of MPI by this process.
type world struct {
	lib        *C.rlx_mpi
	rank, size int
	own        bool // MPI was begun here, and is ended here
	jobs       chan func()
	units      map[int]C.rlx_mpi_handle
	// control carries why a rank has aborted: a message to each other rank, of reasonBytes.
	control C.rlx_mpi_handle
	inbox   []C.rlx_mpi_handle // requests by rank
	letters []unsafe.Pointer   // their memory, by rank
	held    []*runtime.Pinner  // memory that a failed collective may still write

	mu    sync.Mutex
	fault *collective.Fault
	down  chan struct{} // closed with fault
}

// reasonBytes is the size of a message that says why a rank has aborted.
const reasonBytes = 1024

// idle is how often a process that makes no collective looks for such a message.
const idle = 20 * time.Millisecond

// begun is set once the process has joined: MPI cannot begin twice.
var begun struct {
	sync.Mutex
	done bool
}

// Join returns the group of all processes that mpirun, mpiexec or srun has started. MPI knows the ranks; no
// address is needed. A process can join once. The error is an [*collective.Error] of kind
// [collective.ErrJoin]: there is no library, or MPI does not begin. MPI_Init itself has no deadline.
//
// [collective.Group.Close] ends MPI, which waits for all ranks to close, unless the group has failed: exit with an
// error then, and mpirun ends the others. A rank that has closed its group while another still
// makes a collective is noticed at the deadline.
func Join(_ context.Context, o collective.Options) (*collective.Group, error) {
	begun.Lock()
	defer begun.Unlock()
	failed := func(err error) error {
		return &collective.Error{Kind: collective.ErrJoin, Size: 1, Peer: -1, Err: err}
	}
	if begun.done {
		return nil, failed(errors.New("this process has joined before: MPI begins once"))
	}
	lib, err := load()
	if err != nil {
		return nil, failed(err)
	}
	begun.done = true
	w := &world{lib: lib, jobs: make(chan func()), units: map[int]C.rlx_mpi_handle{}, down: make(chan struct{})}
	ready := make(chan *collective.Fault)
	go w.serve(ready)
	if f := <-ready; f != nil {
		return nil, failed(f)
	}
	if w.size == 1 {
		if err := (&engine{world: w}).Close(); err != nil {
			return nil, failed(err)
		}
		return collective.Local(1, o)[0], nil
	}
	return collective.NewGroup(newEngine(w, C.rlx_mpi_world(w.lib), w.rank, w.size), o), nil
}

// serve makes all calls of MPI, on a thread of its own, until jobs is closed.
func (w *world) serve(ready chan<- *collective.Fault) {
	runtime.LockOSThread()
	ready <- w.begin()
	tick := time.NewTicker(idle)
	defer tick.Stop()
	for {
		select {
		case job, open := <-w.jobs:
			if !open {
				return
			}
			job()
		case <-tick.C:
			w.listen()
		}
	}
}

// run makes calls of MPI.
func (w *world) run(f func()) {
	done := make(chan struct{})
	w.jobs <- func() { f(); close(done) }
	<-done
}

func (w *world) begin() *collective.Fault {
	var was, rank, size C.int
	if f := w.check("MPI_Init_thread", C.rlx_mpi_begin(w.lib, &was, &rank, &size)); f != nil {
		return f
	}
	w.own, w.rank, w.size = was == 0, int(rank), int(size)
	if f := w.check("MPI_Comm_split", C.rlx_mpi_split(w.lib, C.rlx_mpi_world(w.lib), 0, rank, &w.control)); f != nil {
		return f
	}
	unit, f := w.unit(1)
	w.inbox, w.letters = make([]C.rlx_mpi_handle, w.size), make([]unsafe.Pointer, w.size)
	for i := 0; i < w.size && f == nil; i++ {
		if i == w.rank {
			continue
		}
		w.letters[i] = C.calloc(1, reasonBytes)
		f = w.check("MPI_Irecv", C.rlx_mpi_recv(w.lib, w.letters[i], reasonBytes, unit, C.int(i), w.control, &w.inbox[i]))
	}
	return f
}

// unit returns the type of some bytes, a power of two.
func (w *world) unit(bytes int) (C.rlx_mpi_handle, *collective.Fault) {
	if u, ok := w.units[bytes]; ok {
		return u, nil
	}
	var u C.rlx_mpi_handle
	if f := w.check("MPI_Type_contiguous", C.rlx_mpi_unit(w.lib, C.int(bytes), &u)); f != nil {
		return nil, f
	}
	w.units[bytes] = u
	return u, nil
}

// listen looks for a rank that has aborted.
func (w *world) listen() {
	for i := range w.inbox {
		if i == w.rank || w.letters[i] == nil {
			continue
		}
		var done C.int
		if code := C.rlx_mpi_test(w.lib, &w.inbox[i], &done); code != 0 || done == 0 {
			continue
		}
		text := C.GoString((*C.char)(w.letters[i]))
		C.free(w.letters[i])
		w.letters[i] = nil
		w.fail(&collective.Fault{Kind: collective.ErrAborted, Peer: i, Err: errors.New(text)})
	}
}

// fail records the first fault.
func (w *world) fail(f *collective.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		w.fault = f
		close(w.down)
	}
}

func (w *world) reason() *collective.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

// A process that waits tests a request spins times, and then with pauses up to maxPause.
const (
	spins    = 500
	maxPause = 200 * time.Microsecond
)

// wait returns once all requests are done, a rank has aborted, or ctx is done.
func (w *world) wait(ctx context.Context, requests ...*C.rlx_mpi_handle) *collective.Fault {
	for turn := 0; ; turn++ {
		left := 0
		for _, r := range requests {
			var done C.int
			if f := w.check("MPI_Test", C.rlx_mpi_test(w.lib, r, &done)); f != nil {
				return f
			}
			left += 1 - int(done)
		}
		if left == 0 {
			return nil
		}
		if turn < spins {
			continue
		}
		w.listen()
		if f := w.reason(); f != nil {
			return f
		}
		if err := ctx.Err(); err != nil {
			return &collective.Fault{Kind: collective.ErrDeadline, Peer: -1, Err: err}
		}
		time.Sleep(min(time.Duration(turn-spins)*time.Microsecond, maxPause))
	}
}

// abortTime bounds how long a rank that aborts waits until MPI has sent the reason.
const abortTime = time.Second

// abort says why to all ranks.
func (w *world) abort(reason error) {
	w.fail(&collective.Fault{Kind: collective.ErrAborted, Peer: w.rank, Err: reason})
	w.run(func() {
		text := []byte(fmt.Sprint(reason))
		letter := C.CBytes(append(text[:min(len(text), reasonBytes-1)], make([]byte, reasonBytes)...)) // MPI may keep it
		unit, f := w.unit(1)
		ctx, cancel := context.WithTimeout(context.Background(), abortTime)
		defer cancel()
		requests := make([]C.rlx_mpi_handle, w.size)
		for i := 0; i < w.size && f == nil; i++ {
			if i != w.rank {
				f = w.check("MPI_Isend", C.rlx_mpi_send(w.lib, letter, reasonBytes, unit, C.int(i), w.control, &requests[i]))
			}
		}
		for sent := 0; f == nil && sent < w.size && ctx.Err() == nil; time.Sleep(maxPause) {
			sent = 0
			for i := range requests {
				done := C.int(1)
				if i != w.rank {
					f = w.check("MPI_Test", C.rlx_mpi_test(w.lib, &requests[i], &done))
				}
				sent += int(done)
			}
		}
	})
}

// close ends MPI if it has begun here and no rank has failed.
func (w *world) close() (err error) {
	w.run(func() {
		if w.reason() != nil {
			return
		}
		for i := range w.inbox {
			if w.letters[i] != nil {
				C.rlx_mpi_cancel(w.lib, &w.inbox[i])
			}
		}
		w.inbox = nil
		for _, unit := range w.units {
			if f := w.check("MPI_Type_free", C.rlx_mpi_free_unit(w.lib, &unit)); f != nil {
				err = f
			}
		}
		clear(w.units)
		if w.own {
			if f := w.check("MPI_Finalize", C.rlx_mpi_end(w.lib)); f != nil {
				err = f
			}
		}
	})
	close(w.jobs)
	w.fail(&collective.Fault{Kind: collective.ErrClosed, Peer: -1})
	return err
}
