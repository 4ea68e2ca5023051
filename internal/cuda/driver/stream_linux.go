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

// Stream is a queue of work that the device does in order.
type Stream struct {
	device *Device
	handle C.rlx_handle
}

// NewStream returns a stream that waits for no other.
func (d *Device) NewStream() (*Stream, error) {
	var handle C.rlx_handle
	err := d.check("cuStreamCreate", C.rlx_cuStreamCreate(d.c, &handle))
	return &Stream{d, handle}, err
}

// Destroy gives the stream back once its work is done.
func (s *Stream) Destroy() error {
	return s.device.check("cuStreamDestroy", C.rlx_cuStreamDestroy(s.device.c, s.handle))
}

// Synchronize waits for all work.
func (s *Stream) Synchronize() error {
	return s.device.check("cuStreamSynchronize", C.rlx_cuStreamSynchronize(s.device.c, s.handle))
}

// Write copies host memory to the device. Memory that is not of AllocHost is
// free again when Write returns, other memory when the copy is done.
func (s *Stream) Write(to Ptr, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return s.device.check("cuMemcpyHtoDAsync", C.rlx_cuMemcpyHtoDAsync(s.device.c, C.rlx_ptr(to), unsafe.Pointer(&from[0]), C.size_t(len(from)), s.handle))
}

// Read copies device memory to the host. It returns when the copy is done, but
// for memory of AllocHost.
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
func (s *Stream) Clear(p Ptr, bytes int) error {
	return s.device.check("cuMemsetD32Async", C.rlx_cuMemsetD32Async(s.device.c, C.rlx_ptr(p), C.size_t(bytes/4), s.handle))
}

// Launch starts a kernel whose parameters are pointers, then numbers of 32 bits, then maps.
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
	g, b := dims(grid), dims(block)
	return s.device.check("cuLaunchKernel", C.rlx_launch(s.device.c, f.handle, &g[0], &b[0], s.handle, C.uint(f.shared),
		(*C.char)(unsafe.Pointer(unsafe.SliceData(params))), C.int(len(pointers)), C.int(len(numbers)), C.int(len(maps))))
}

func dims(n [3]int) [3]C.uint { return [3]C.uint{C.uint(n[0]), C.uint(n[1]), C.uint(n[2])} }

// Graph is work that is started by one call.
type Graph struct {
	// Kinds are how many nodes it has of each kind, by CUgraphNodeType of cuda.h: 0 is a
	// kernel, 1 a copy, 2 what fills memory. Those under conditions do not count, and of
	// drivers that do not tell there are none.
	Kinds [NodeKinds]int

	device *Device
	handle C.rlx_handle
}

// NodeKinds is more than there are kinds of nodes.
const NodeKinds = 16

// Capture returns the work that record asks the stream for, which is not done. Where
// fill is given, the kernel of [FillSource], it takes the place of what fills memory;
// the error is [ErrUnchanged] where the driver refuses.
func (s *Stream) Capture(fill *Function, record func() error) (*Graph, error) {
	// A capture belongs to the thread that begins it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d := s.device
	if err := d.check("cuStreamBeginCapture", C.rlx_cuStreamBeginCapture(d.c, s.handle)); err != nil {
		return nil, err
	}
	failed := record()
	var graph, exec C.rlx_handle
	err := d.check("cuStreamEndCapture", C.rlx_cuStreamEndCapture(d.c, s.handle, &graph))
	if failed != nil {
		err = failed // the capture ends with an error that says less
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
	err = d.check("cuGraphInstantiate", C.rlx_cuGraphInstantiate(d.c, &exec, graph))
	g.handle = exec
	return g, err
}

// Replay starts the work of a graph.
func (s *Stream) Replay(g *Graph) error {
	return s.device.check("cuGraphLaunch", C.rlx_cuGraphLaunch(s.device.c, g.handle, s.handle))
}

// Destroy gives the graph back.
func (g *Graph) Destroy() error {
	return g.device.check("cuGraphExecDestroy", C.rlx_cuGraphExecDestroy(g.device.c, g.handle))
}

// Event is a point in the work of a stream.
type Event struct {
	device *Device
	handle C.rlx_handle
}

// disableTiming is CU_EVENT_DISABLE_TIMING, with which an event costs less.
const disableTiming = 2

// NewEvent returns an event, which has happened.
func (d *Device) NewEvent() (*Event, error) { return d.newEvent(disableTiming) }

// NewMark returns an event that [Event.Since] takes.
func (d *Device) NewMark() (*Event, error) { return d.newEvent(0) }

func (d *Device) newEvent(flags C.uint) (*Event, error) {
	var handle C.rlx_handle
	err := d.check("cuEventCreate", C.rlx_cuEventCreate(d.c, &handle, flags))
	return &Event{d, handle}, err
}

// Since returns how long after another mark the device came to this one. Both have
// happened.
func (e *Event) Since(from *Event) (time.Duration, error) {
	var ms C.float
	err := e.device.check("cuEventElapsedTime", C.rlx_cuEventElapsedTime(e.device.c, &ms, from.handle, e.handle))
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Record makes the event happen when the work asked for so far is done.
func (s *Stream) Record(e *Event) error {
	return s.device.check("cuEventRecord", C.rlx_cuEventRecord(s.device.c, e.handle, s.handle))
}

// Await makes the work asked for from now on wait for an event, as it was
// recorded last.
func (s *Stream) Await(e *Event) error {
	return s.device.check("cuStreamWaitEvent", C.rlx_cuStreamWaitEvent(s.device.c, s.handle, e.handle))
}

// notReady is the code of work that is under way.
const notReady = 600

// Done reports whether the event has happened. The error is one of the work
// before it, or of any work on the device.
func (e *Event) Done() (bool, error) {
	code := C.rlx_cuEventQuery(e.device.c, e.handle)
	if code == notReady {
		return false, nil
	}
	return code == 0, e.device.check("cuEventQuery", code)
}

// Destroy gives the event back.
func (e *Event) Destroy() error {
	return e.device.check("cuEventDestroy", C.rlx_cuEventDestroy(e.device.c, e.handle))
}
