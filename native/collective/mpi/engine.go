//go:build cgo && linux && (amd64 || arm64)

package mpi

/*
#include <stdlib.h>
#include "mpi_linux.h"
*/
import "C"

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native/collective"
)

// engine is a communicator of MPI.
type engine struct {
	world      *world
	comm       C.rlx_mpi_handle
	rank, size int
	split      bool      // from another group, and closed with it
	layouts    [2]layout // of what is sent and received; MPI reads them while a collective is in flight
	space      []byte
	closing    sync.Once
}

func newEngine(w *world, comm C.rlx_mpi_handle, rank, size int) *engine {
	return &engine{world: w, comm: comm, rank: rank, size: size, layouts: [2]layout{newLayout(size), newLayout(size)}}
}

func (e *engine) Name() string { return "mpi" }
func (e *engine) Rank() int    { return e.rank }
func (e *engine) Size() int    { return e.size }

// layout says where the parts of an array are, by rank.
type layout struct{ counts, at []C.int }

// newLayout takes memory of C, as MPI keeps the addresses.
func newLayout(size int) layout {
	of := func() []C.int {
		return unsafe.Slice((*C.int)(C.calloc(C.size_t(size), C.sizeof_int)), size)
	}
	return layout{of(), of()}
}

// set describes parts of some bytes: part i is [ends[i], ends[i+1]).
func (l layout) set(ends []int, unit int) layout {
	for i := range l.counts {
		l.at[i], l.counts[i] = C.int(ends[i]/unit), C.int((ends[i+1]-ends[i])/unit)
	}
	return l
}

// ends returns the ends of n parts of some bytes each.
func ends(bytes, n int) []int {
	out := make([]int, n+1)
	for i := range out {
		out[i] = i * bytes
	}
	return out
}

// largestUnit bounds what MPI counts in, in bytes.
const largestUnit = 4096

// unitOf returns what to count some bytes in: a power of two, as counts of MPI have 32 bits.
func unitOf(bytes int) int { return 1 << bits.TrailingZeros(uint(bytes|largestUnit)) }

func (e *engine) Do(ctx context.Context, number int64, c *collective.Call) error {
	if f := e.world.reason(); f != nil {
		return f
	}
	if most := max(len(c.Send), len(c.Recv)); most/unitOf(len(c.Send)) > math.MaxInt32 {
		return &collective.Fault{Kind: collective.ErrAborted, Peer: e.rank, Err: ir.Shapef("%d bytes of %s are too many for MPI", most, c.DType)}
	}
	var f *collective.Fault
	e.world.run(func() { f = e.do(ctx, number, c) })
	if f != nil {
		return f
	}
	return nil
}

func (e *engine) do(ctx context.Context, number int64, c *collective.Call) *collective.Fault {
	x := &exchange{engine: e, ctx: ctx, pins: &runtime.Pinner{}}
	f := x.compare(number, c)
	if f == nil {
		f = x.do(c)
	}
	if f != nil {
		e.world.held = append(e.world.held, x.pins)
		return f
	}
	x.pins.Unpin()
	return nil
}

func (e *engine) Sub(_ context.Context, color int, members []int) (sub collective.Engine, err error) {
	e.world.run(func() {
		var comm C.rlx_mpi_handle
		key := slices.Index(members, e.rank)
		if f := e.world.check("MPI_Comm_split", C.rlx_mpi_split(e.world.lib, e.comm, C.int(color), C.int(key), &comm)); f != nil {
			err = f
			return
		}
		made := newEngine(e.world, comm, key, len(members))
		made.split = true
		sub = made
	})
	return sub, err
}

func (e *engine) Down() <-chan struct{} { return e.world.down }

func (e *engine) Reason() error {
	if f := e.world.reason(); f != nil && f.Kind != collective.ErrClosed {
		return f
	}
	return nil
}

func (e *engine) Abort(reason error) { e.world.abort(reason) }

func (e *engine) Close() (err error) {
	if !e.split {
		e.closing.Do(func() { err = e.world.close() })
	}
	return err
}

// exchange is a collective in flight.
type exchange struct {
	*engine
	ctx  context.Context
	pins *runtime.Pinner
}

// at returns the address of memory that stays where it is until the collective is done.
func (x *exchange) at(data []byte) unsafe.Pointer {
	if len(data) == 0 {
		return nil
	}
	x.pins.Pin(unsafe.SliceData(data))
	return unsafe.Pointer(unsafe.SliceData(data))
}

// header is the size of what ranks compare: a hash of a call, and its number.
const header = 16

// compare returns a fault unless all ranks make the same call.
func (x *exchange) compare(number int64, c *collective.Call) *collective.Fault {
	h := fnv.New64a()
	fmt.Fprint(h, c.String(), len(c.Recv))
	own := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, h.Sum64()), uint64(number))
	all := make([]byte, header*x.size)
	if f := x.gather(own, all, ends(header, x.size)); f != nil {
		return f
	}
	for rank := range x.size {
		if other := all[rank*header:][:header]; string(other) != string(own) {
			return &collective.Fault{Kind: collective.ErrMismatch, Peer: rank, Err: fmt.Errorf(
				"it makes collective %d, another one than this rank, which makes collective %d, %s", binary.LittleEndian.Uint64(other[8:]), number, c,
			)}
		}
	}
	return nil
}

// smallest is the size in bytes from which an all-reduce is in two steps, as in package tcp.
const smallest = 16 << 10

func (x *exchange) do(c *collective.Call) *collective.Fault {
	n, bytes := x.size, len(c.Send)
	switch c.Op {
	case collective.AllReduce:
		return x.allReduce(c)
	case collective.ReduceScatter:
		return x.reduceParts(c, ends(bytes/n, n), c.Recv)
	case collective.AllGather:
		return x.gather(c.Send, c.Recv, ends(bytes, n))
	case collective.AllToAll:
		return x.exchange(c.Send, ends(bytes/n, n), c.Recv, ends(bytes/n, n))
	case collective.Permute:
		return x.permute(c)
	}
	if x.rank == c.Root {
		copy(c.Recv, c.Send)
	}
	unit, f := x.world.unit(unitOf(bytes))
	if f != nil {
		return f
	}
	var r C.rlx_mpi_handle
	f = x.world.check("MPI_Ibcast", C.rlx_mpi_broadcast(x.world.lib, x.at(c.Recv), C.int(bytes/unitOf(bytes)), unit, C.int(c.Root), x.comm, &r))
	return x.done(f, &r)
}

// done waits for requests, if none has failed.
func (x *exchange) done(f *collective.Fault, requests ...*C.rlx_mpi_handle) *collective.Fault {
	if f != nil {
		return f
	}
	return x.world.wait(x.ctx, requests...)
}

func (x *exchange) allReduce(c *collective.Call) *collective.Fault {
	n, bytes := x.size, len(c.Send)
	if bytes < smallest {
		arrays := x.scratch(bytes, n)
		if f := x.gather(c.Send, x.space[:n*bytes], ends(bytes, n)); f != nil {
			return f
		}
		collective.Reduce(c.DType, c.Reduction, c.Recv, arrays)
		return nil
	}
	unit := unitOf(bytes)
	parts := make([]int, n+1)
	for i := range parts {
		parts[i] = bytes / unit * i / n * unit
	}
	own := make([]byte, parts[x.rank+1]-parts[x.rank])
	if f := x.reduceParts(c, parts, own); f != nil {
		return f
	}
	return x.gather(own, c.Recv, parts)
}

// reduceParts gives rank i the reduction of part i of the arrays of all ranks.
func (x *exchange) reduceParts(c *collective.Call, parts []int, to []byte) *collective.Fault {
	arrays := x.scratch(len(to), x.size)
	if f := x.exchange(c.Send, parts, x.space[:x.size*len(to)], ends(len(to), x.size)); f != nil {
		return f
	}
	collective.Reduce(c.DType, c.Reduction, to, arrays)
	return nil
}

// scratch returns n arrays next to each other in x.space, each aligned to its elements.
func (x *exchange) scratch(bytes, n int) [][]byte {
	if len(x.space) < n*bytes {
		x.space = make([]byte, n*bytes)
	}
	out := make([][]byte, n)
	for i := range out {
		out[i] = x.space[i*bytes:][:bytes]
	}
	return out
}

// gather gives every rank the array of each, at the ends of parts.
func (x *exchange) gather(from, to []byte, parts []int) *collective.Fault {
	size := unitOf(parts[1])
	for _, end := range parts {
		size = min(size, unitOf(end))
	}
	unit, f := x.world.unit(size)
	if f != nil {
		return f
	}
	l := x.layouts[0].set(parts, size)
	var r C.rlx_mpi_handle
	f = x.world.check("MPI_Iallgatherv", C.rlx_mpi_gather(x.world.lib, x.at(from), C.int(len(from)/size), x.at(to), &l.counts[0], &l.at[0], unit, x.comm, &r))
	return x.done(f, &r)
}

// exchange sends part i of an array to rank i, and receives a part of each.
func (x *exchange) exchange(from []byte, parts []int, to []byte, received []int) *collective.Fault {
	size := largestUnit
	for _, end := range append(slices.Clone(parts), received...) {
		size = min(size, unitOf(end))
	}
	unit, f := x.world.unit(size)
	if f != nil {
		return f
	}
	s, l := x.layouts[0].set(parts, size), x.layouts[1].set(received, size)
	var r C.rlx_mpi_handle
	f = x.world.check("MPI_Ialltoallv", C.rlx_mpi_exchange(
		x.world.lib, x.at(from), &s.counts[0], &s.at[0], x.at(to), &l.counts[0], &l.at[0], unit, x.comm, &r,
	))
	return x.done(f, &r)
}

func (x *exchange) permute(c *collective.Call) *collective.Fault {
	from, to, bytes := c.Sender(x.rank), c.Receiver(x.rank), len(c.Send)
	unit, f := x.world.unit(unitOf(bytes))
	count := C.int(bytes / unitOf(bytes))
	var out, in C.rlx_mpi_handle
	var requests []*C.rlx_mpi_handle
	switch {
	case f != nil:
	case from == x.rank:
		copy(c.Recv, c.Send)
	case from >= 0:
		f = x.world.check("MPI_Irecv", C.rlx_mpi_recv(x.world.lib, x.at(c.Recv), count, unit, C.int(from), x.comm, &in))
		requests = append(requests, &in)
	default:
		clear(c.Recv)
	}
	if f == nil && to >= 0 && to != x.rank {
		f = x.world.check("MPI_Isend", C.rlx_mpi_send(x.world.lib, x.at(c.Send), count, unit, C.int(to), x.comm, &out))
		requests = append(requests, &out)
	}
	return x.done(f, requests...)
}
