//go:build amd64 || arm64

package driver

/*
#cgo noescape rlx_cuMemcpyHtoDAsync
#cgo nocallback rlx_cuMemcpyHtoDAsync
#cgo noescape rlx_cuMemcpyDtoHAsync
#cgo nocallback rlx_cuMemcpyDtoHAsync
#cgo noescape rlx_cuMemcpyDtoDAsync
#cgo nocallback rlx_cuMemcpyDtoDAsync
#cgo noescape rlx_cuStreamWaitEvent
#cgo nocallback rlx_cuStreamWaitEvent
#cgo noescape rlx_cuGraphLaunch
#cgo nocallback rlx_cuGraphLaunch
#cgo noescape rlx_cuEventRecord
#cgo nocallback rlx_cuEventRecord
#cgo noescape rlx_cuEventQuery
#cgo nocallback rlx_cuEventQuery
#cgo noescape rlx_launch
#cgo nocallback rlx_launch
#include "cuda_linux.h"
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"runtime"
	"time"
	"unsafe"
)

// Stream is a CUDA stream: a queue of work that the device executes in order.
type Stream struct {
	device *Device
	handle C.rlx_handle
	ranked bool // kernels of the capture have priorities
}

// NewStream returns a non-blocking stream.
func (d *Device) NewStream() (*Stream, error) {
	var handle C.rlx_handle
	err := d.check("cuStreamCreate", C.rlx_cuStreamCreate(d.c, &handle))
	return &Stream{device: d, handle: handle}, err
}

// Destroy destroys the stream after its work.
func (s *Stream) Destroy() error {
	return s.device.check("cuStreamDestroy", C.rlx_cuStreamDestroy(s.device.c, s.handle))
}

// Synchronize waits for all work.
func (s *Stream) Synchronize() error {
	return s.device.check("cuStreamSynchronize", C.rlx_cuStreamSynchronize(s.device.c, s.handle))
}

// Write copies host memory to the device. Memory of AllocHost must not change until the copy
// is done; other memory may be reused when Write returns.
func (s *Stream) Write(to Ptr, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return s.device.check("cuMemcpyHtoDAsync", C.rlx_cuMemcpyHtoDAsync(s.device.c, C.rlx_ptr(to), unsafe.Pointer(&from[0]), C.size_t(len(from)), s.handle))
}

// Read copies device memory to the host. It is asynchronous for memory of AllocHost.
func (s *Stream) Read(to []byte, from Ptr) error {
	if len(to) == 0 {
		return nil
	}
	return s.device.check("cuMemcpyDtoHAsync", C.rlx_cuMemcpyDtoHAsync(s.device.c, unsafe.Pointer(&to[0]), C.rlx_ptr(from), C.size_t(len(to)), s.handle))
}

// Copy copies within the device.
func (s *Stream) Copy(to, from Ptr, bytes int) error {
	return s.device.check("cuMemcpyDtoDAsync", C.rlx_cuMemcpyDtoDAsync(s.device.c, C.rlx_ptr(to), C.rlx_ptr(from), C.size_t(bytes), s.handle))
}

// Clear writes zeros; bytes is a multiple of 4.
func (s *Stream) Clear(p Ptr, bytes int) error { return s.Fill(p, 0, bytes/4) }

// Fill writes a word a number of times.
func (s *Stream) Fill(p Ptr, word uint32, words int) error {
	return s.device.check("cuMemsetD32Async", C.rlx_cuMemsetD32Async(s.device.c, C.rlx_ptr(p), C.uint(word), C.size_t(words), s.handle))
}

// Launch launches a kernel whose parameters are pointers, then 32-bit numbers, then maps.
func (s *Stream) Launch(f Function, grid, block [3]int, pointers []Ptr, numbers []int, maps ...Map) error {
	params := make([]byte, 0, 8*len(pointers)+4*len(numbers)+len(Map{})*len(maps)+1)
	for _, p := range pointers {
		params = binary.NativeEndian.AppendUint64(params, uint64(p))
	}
	for _, n := range numbers {
		params = binary.NativeEndian.AppendUint32(params, uint32(n))
	}
	for i := range maps {
		params = append(params, maps[i][:]...)
	}
	g, b, early := dims(grid), dims(block), C.int(0)
	if f.Early {
		early = 1
	}
	return s.device.check("cuLaunchKernel", C.rlx_launch(s.device.c, f.handle, &g[0], &b[0], s.handle, C.uint(f.shared), early,
		(*C.char)(unsafe.Pointer(unsafe.SliceData(params))), C.int(len(pointers)), C.int(len(numbers)), C.int(len(maps))))
}

func dims(n [3]int) [3]C.uint { return [3]C.uint{C.uint(n[0]), C.uint(n[1]), C.uint(n[2])} }

// Graph is an instantiated CUDA graph.
type Graph struct {
	// Kinds counts its nodes by CUgraphNodeType: 0 is a kernel, 1 a copy, 2 a fill. It
	// excludes the bodies of conditional nodes, and is zero with drivers that do not report
	// nodes.
	Kinds [NodeKinds]int

	device *Device
	handle C.rlx_handle
}

// NodeKinds bounds the number of kinds of nodes.
const NodeKinds = 16

// Capture captures the work that record enqueues on the stream as a graph. If fill, the kernel
// of [FillSource], is not nil, it replaces the fill nodes; the error is [ErrUnchanged] if the
// driver refuses that.
func (s *Stream) Capture(fill *Function, record func() error) (*Graph, error) {
	// A capture belongs to the thread that begins it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := s.device
	if err := d.check("cuStreamBeginCapture", C.rlx_cuStreamBeginCapture(d.c, s.handle)); err != nil {
		return nil, err
	}
	s.ranked = false
	failed := record()
	var graph, exec C.rlx_handle
	err := d.check("cuStreamEndCapture", C.rlx_cuStreamEndCapture(d.c, s.handle, &graph))
	if failed != nil {
		err = failed // the capture ends with a less specific error
	}
	if graph != nil {
		defer C.rlx_cuGraphDestroy(d.c, graph)
	}
	if err == nil && fill != nil {
		if failed := d.replaceFills(graph, *fill); failed != nil {
			err = errors.Join(ErrUnchanged, failed)
		}
	}
	if err != nil {
		return nil, err
	}
	g := &Graph{device: d}
	if g.Kinds, err = d.kinds(graph); err != nil {
		return nil, err
	}
	var flags C.uint
	if s.ranked {
		const useNodePriority = 8
		flags = useNodePriority
	}
	err = d.check("cuGraphInstantiate", C.rlx_cuGraphInstantiate(d.c, &exec, graph, flags))
	g.handle = exec
	return g, err
}

// Replay launches a graph.
func (s *Stream) Replay(g *Graph) error {
	return s.device.check("cuGraphLaunch", C.rlx_cuGraphLaunch(s.device.c, g.handle, s.handle))
}

// Destroy destroys the graph.
func (g *Graph) Destroy() error {
	return g.device.check("cuGraphExecDestroy", C.rlx_cuGraphExecDestroy(g.device.c, g.handle))
}

// Event is a point in the work of a stream.
type Event struct {
	device *Device
	handle C.rlx_handle
}

// disableTiming is CU_EVENT_DISABLE_TIMING: an event without a time costs less.
const disableTiming = 2

// NewEvent returns an event that is done.
func (d *Device) NewEvent() (*Event, error) { return d.newEvent(disableTiming) }

// NewMark returns an event with timing, for [Event.Since].
func (d *Device) NewMark() (*Event, error) { return d.newEvent(0) }

func (d *Device) newEvent(flags C.uint) (*Event, error) {
	var handle C.rlx_handle
	err := d.check("cuEventCreate", C.rlx_cuEventCreate(d.c, &handle, flags))
	return &Event{d, handle}, err
}

// Since returns the time between two marks. Both must be done.
func (e *Event) Since(from *Event) (time.Duration, error) {
	var ms C.float
	err := e.device.check("cuEventElapsedTime", C.rlx_cuEventElapsedTime(e.device.c, &ms, from.handle, e.handle))
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Record records the event after the work enqueued so far.
func (s *Stream) Record(e *Event) error {
	return s.device.check("cuEventRecord", C.rlx_cuEventRecord(s.device.c, e.handle, s.handle))
}

// Await makes the work enqueued from now on wait for an event.
func (s *Stream) Await(e *Event) error {
	return s.device.check("cuStreamWaitEvent", C.rlx_cuStreamWaitEvent(s.device.c, s.handle, e.handle))
}

// notReady is CUDA_ERROR_NOT_READY.
const notReady = 600

// Done reports whether the work before the event is done. The error may be of any work on the
// device.
func (e *Event) Done() (bool, error) {
	code := C.rlx_cuEventQuery(e.device.c, e.handle)
	if code == notReady {
		return false, nil
	}
	return code == 0, e.device.check("cuEventQuery", code)
}

// Destroy destroys the event.
func (e *Event) Destroy() error {
	return e.device.check("cuEventDestroy", C.rlx_cuEventDestroy(e.device.c, e.handle))
}
