package cpu

import (
	"math"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
)

// buffer is where a tensor lies. Its place may change between runs: that of a
// bound input is the caller's memory.
type buffer struct {
	dtype ir.DType
	elems int
	data  []byte // never empty, so that a guarded load has an element to read
}

// unit is a Go type that elements are stored as.
type unit interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// view returns the elements of a buffer.
func view[T unit](b *buffer) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.data))), max(b.elems, 1))
}

// bytes returns what the elements take.
func (b *buffer) bytes() int { return b.elems * b.dtype.Size() }

// cacheLine is the bytes of a line of the cache, on x86-64 and on most processors of arm64.
const cacheLine = 64

// allocate returns zeroed memory for so many bytes, at least one element's,
// that begins on a cache line.
func allocate(bytes int) []byte {
	bytes = max(bytes, 16)
	all := make([]byte, bytes+cacheLine)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all))) % cacheLine)
	return all[skip : skip+bytes : skip+bytes]
}

// place is where a temporary tensor lies in the memory they share.
type place struct {
	from, to int // bytes
	last     int // the last item that needs it
}

// arena gives tensors that are not needed at the same time the same memory.
type arena struct {
	live []place
	size int
	over bool // what is needed at one time is more than an int counts
}

// bytes returns how large the memory is.
func (a *arena) bytes() int64 {
	if a.over {
		return math.MaxInt64
	}
	return int64(a.size)
}

// take finds the first gap that fits, for a tensor needed from item now until
// item last. Calls come in the order of now.
func (a *arena) take(bytes, now, last int) int {
	bytes = (max(bytes, 16) + cacheLine - 1) &^ (cacheLine - 1)
	kept := a.live[:0]
	for _, p := range a.live {
		if p.last >= now {
			kept = append(kept, p)
		}
	}
	a.live = kept
	at, i := 0, 0
	for ; i < len(a.live) && a.live[i].from-at < bytes; i++ {
		at = a.live[i].to
	}
	a.live = append(a.live, place{})
	copy(a.live[i+1:], a.live[i:])
	a.live[i] = place{at, at + bytes, last}
	a.size = max(a.size, at+bytes)
	a.over = a.over || at > math.MaxInt-bytes
	return at
}
