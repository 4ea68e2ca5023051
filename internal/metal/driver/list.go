//go:build cgo && (darwin || linux)

package driver

/*
#include <stdlib.h>
#include "binding.h"

static rlx_run *call_commit(const rlx_metal *m, void *d, const char *label, const rlx_command *list, size_t n, rlx_error *e) { return m->commit(d, label, list, n, e); }
static void call_forget(const rlx_metal *m, rlx_run *r) { m->forget(r); }
*/
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Place is a byte offset in a buffer: a multiple of 4, for bindings of 256.
type Place struct {
	Buffer Buffer
	Offset int
}

// Dispatch runs a kernel over a grid of threadgroups.
type Dispatch struct {
	Pipeline Pipeline
	// Bindings are the kernel's buffers; the counters are bound after them.
	Bindings        []Place
	Counters        []int
	Groups, Threads [3]int
	// Grid, if its buffer is set, holds the number of groups, three u32 (an indirect
	// dispatch).
	Grid Place
	// Piece is set if the dispatch is a piece of a larger grid, of size Groups and beginning at
	// First; the kernel must be printed for pieces. Grid then only determines whether the grid is
	// empty.
	Piece bool
	First [3]int
}

// List is a list of commands under construction, and then one that can be committed
// repeatedly. It is in C memory, so one call encodes it.
type List struct {
	label    *C.char
	commands []C.rlx_command
	owned    []unsafe.Pointer
	sealed   unsafe.Pointer
	err      *C.rlx_error
}

// NewList returns an empty list; its command buffers have the label.
func NewList(label string) *List {
	l := &List{label: C.CString(label), err: (*C.rlx_error)(C.calloc(1, C.sizeof_rlx_error))}
	l.owned = append(l.owned, unsafe.Pointer(l.label), unsafe.Pointer(l.err))
	return l
}

// Len returns the number of commands.
func (l *List) Len() int { return len(l.commands) }

func own[T any](l *List, values []T) *T {
	if len(values) == 0 {
		return nil
	}
	p := C.malloc(C.size_t(len(values)) * C.size_t(unsafe.Sizeof(values[0])))
	l.owned = append(l.owned, p)
	copy(unsafe.Slice((*T)(p), len(values)), values)
	return (*T)(p)
}

func (l *List) bindings(places []Place) *C.rlx_binding {
	list := make([]C.rlx_binding, len(places))
	for i, p := range places {
		list[i] = C.rlx_binding{buffer: p.Buffer.handle, offset: C.uint64_t(p.Offset)}
	}
	return own(l, list)
}

// Dispatch adds a dispatch that runs after the commands before it.
func (l *List) Dispatch(d Dispatch) {
	counters := make([]C.int32_t, len(d.Counters))
	for i, n := range d.Counters {
		counters[i] = C.int32_t(n)
	}
	c := C.rlx_command{
		pipeline: d.Pipeline.handle,
		bindings: l.bindings(d.Bindings), binding_count: C.uint32_t(len(d.Bindings)),
		counters: own(l, counters), counter_count: C.uint32_t(len(counters)),
		grid: C.rlx_binding{buffer: d.Grid.Buffer.handle, offset: C.uint64_t(d.Grid.Offset)},
	}
	if d.Piece {
		c.piece = 1
	}
	for axis := range 3 {
		c.first[axis] = C.uint32_t(d.First[axis])
		c.groups[axis], c.threads[axis] = C.uint32_t(d.Groups[axis]), C.uint32_t(d.Threads[axis])
	}
	l.commands = append(l.commands, c)
}

// Copy adds a copy of bytes, a multiple of 4.
func (l *List) Copy(to, from Place, bytes int) {
	l.commands = append(l.commands, C.rlx_command{bindings: l.bindings([]Place{to, from}), binding_count: 2, bytes: C.uint64_t(bytes)})
}

// Release frees the list.
func (l *List) Release() {
	for _, p := range l.owned {
		C.free(p)
	}
	*l = List{}
}

// Run is a committed command buffer.
type Run struct {
	d *Device
	c *C.rlx_run
}

// Commit encodes a list as one command buffer, which runs after those before it. Nothing
// may be added to the list afterwards.
func (d *Device) Commit(l *List) (Run, error) {
	if l.sealed == nil {
		l.sealed = unsafe.Pointer(own(l, l.commands))
	}
	c := C.call_commit(d.m, d.handle, l.label, (*C.rlx_command)(l.sealed), C.size_t(len(l.commands)), l.err)
	return Run{d, c}, failure("run", c != nil, l.err)
}

// Done reports whether a run is done, with its error.
func (r Run) Done() (bool, error) {
	switch atomic.LoadUint32((*uint32)(unsafe.Pointer(&r.c.state))) {
	case C.RLX_RUNNING:
		return false, nil
	case C.RLX_DONE:
		return true, nil
	}
	return true, failure("run", false, &r.c.error)
}

// Forget releases a run, which may be in flight.
func (r Run) Forget() { C.call_forget(r.d.m, r.c) }
