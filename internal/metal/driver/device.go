//go:build cgo && (darwin || linux)

package driver

/*
#include <stdlib.h>
#include "binding.h"

static void *call_open(const rlx_metal *m, rlx_error *e) { return m->open(e); }
static void call_info(const rlx_metal *m, void *d, rlx_info *i) { m->info(d, i); }
static void *call_heap(const rlx_metal *m, void *d, const uint64_t *bytes, size_t n, void **buffers, rlx_error *e) { return m->heap(d, bytes, n, buffers, e); }
static void *call_contents(const rlx_metal *m, void *b) { return m->contents(b); }
static void call_drop(const rlx_metal *m, void *d, void *heap, void **buffers, size_t n) { m->drop(d, heap, buffers, n); }
*/
import "C"

import (
	"sync"
	"unsafe"
)

// Device is the machine's Apple GPU with a command queue. It is safe for concurrent use and
// never released.
type Device struct {
	m      *C.rlx_metal
	handle unsafe.Pointer
	heaps  sync.Mutex // serialises making and releasing heaps
}

// Open opens the device, a new one each time. The error is an [*Error] of kind Unavailable that
// names what is missing.
func Open() (*Device, error) {
	m, err := load()
	if err != nil {
		return nil, err
	}
	var e C.rlx_error
	d := &Device{m: m, handle: C.call_open(m, &e)}
	return d, failure("open", d.handle != nil, &e)
}

// failure returns the error of a call, nil if ok.
func failure(call string, ok bool, e *C.rlx_error) error {
	if ok {
		return nil
	}
	return &Error{Call: call, Kind: Kind(e.kind), Code: int(e.code), Text: C.GoString(&e.text[0])}
}

// Info describes a device. Sizes are in bytes.
type Info struct {
	Name      string
	Memory    int // recommended maximal working set
	Allocated int // allocated by this process
	Buffer    int // maximal length of a buffer
	Shared    int // maximal threadgroup memory
	Threads   [3]int
	BFloat    bool // the compiler supports bfloat: MSL 3.1, since macOS 14
}

// Info returns the properties of the device.
func (d *Device) Info() Info {
	var i C.rlx_info
	C.call_info(d.m, d.handle, &i)
	out := Info{Name: C.GoString(&i.name[0]), Memory: int(i.memory), Allocated: int(i.allocated), Buffer: int(i.buffer), Shared: int(i.shared), BFloat: i.bfloat != 0}
	for axis, n := range i.threads {
		out.Threads[axis] = int(n)
	}
	return out
}

// Buffer is memory shared by host and GPU.
type Buffer struct {
	handle unsafe.Pointer
	// Bytes is the memory, valid until the heap is released.
	Bytes []byte
}

// Heap is a block of memory with several buffers.
type Heap struct {
	d       *Device
	handle  unsafe.Pointer
	Buffers []Buffer
}

// NewHeap allocates a buffer of each size, in bytes and not 0. Their contents are
// undefined.
func (d *Device) NewHeap(sizes []int) (*Heap, error) {
	bytes, handles := make([]C.uint64_t, len(sizes)), make([]unsafe.Pointer, len(sizes))
	for i, n := range sizes {
		bytes[i] = C.uint64_t(n)
	}
	var e C.rlx_error
	d.heaps.Lock()
	defer d.heaps.Unlock()
	h := &Heap{d: d, handle: C.call_heap(d.m, d.handle, unsafe.SliceData(bytes), C.size_t(len(sizes)), unsafe.SliceData(handles), &e)}
	if err := failure("heap", h.handle != nil, &e); err != nil {
		return nil, err
	}
	for i, b := range handles {
		memory := (*byte)(C.call_contents(d.m, b))
		h.Buffers = append(h.Buffers, Buffer{handle: b, Bytes: unsafe.Slice(memory, sizes[i])})
	}
	return h, nil
}

// Release frees the heap and its buffers. No run may use them.
func (h *Heap) Release() {
	handles := make([]unsafe.Pointer, len(h.Buffers))
	for i, b := range h.Buffers {
		handles[i] = b.handle
	}
	h.d.heaps.Lock()
	defer h.d.heaps.Unlock()
	C.call_drop(h.d.m, h.d.handle, h.handle, unsafe.SliceData(handles), C.size_t(len(handles)))
	h.Buffers = nil
}
