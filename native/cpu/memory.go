package cpu

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/native"
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

// liveRange is where a temporary tensor lies in the memory they share.
type liveRange struct {
	from, to int // bytes
	last     int // the last item that needs it
}

// arena gives tensors that are not needed at the same time the same memory.
type arena struct {
	live      []liveRange
	size      int
	overflows bool // what is needed at one time is more than an int counts
}

// bytes returns how large the memory is.
func (a *arena) bytes() int64 {
	if a.overflows {
		return math.MaxInt64
	}
	return int64(a.size)
}

// take finds the first gap that fits, for a tensor needed from item now until
// item last. Calls come in the order of now.
func (a *arena) alloc(bytes, now, last int) int {
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
	a.live = append(a.live, liveRange{})
	copy(a.live[i+1:], a.live[i:])
	a.live[i] = liveRange{at, at + bytes, last}
	a.size = max(a.size, at+bytes)
	a.overflows = a.overflows || at > math.MaxInt-bytes
	return at
}

// ledger is the memory that a program will hold, noted while it is compiled and allocated
// when it is known that all of it fits.
type ledger struct {
	parts    []native.Allocation
	requests []request
}

// request is memory for somebody to take.
type request struct {
	bytes  int
	assign func(data []byte)
}

// reserve notes memory, which take has when all is known. Nobody takes what runs allocate.
func (l *ledger) reserve(a native.Allocation, take func(data []byte)) {
	l.parts = append(l.parts, a)
	if take != nil {
		l.requests = append(l.requests, request{int(a.Bytes), take})
	}
}

// bytes returns the sum of all that was noted, which a check has found to fit.
func (l *ledger) bytes() int64 {
	var sum int64
	for _, a := range l.parts {
		sum += a.Bytes
	}
	return sum
}

// allocate gives everybody the memory that was asked for.
func (l *ledger) allocate() {
	for _, r := range l.requests {
		r.assign(allocate(r.bytes))
	}
	l.requests = nil
}

// bytesOf returns what elements take, no less than the largest number where that overflows.
func bytesOf(d ir.DType, dims []int) int64 {
	bytes := int64(d.Size())
	for _, n := range dims {
		if n > 0 && bytes > math.MaxInt64/int64(n) {
			bytes = math.MaxInt64
			continue
		}
		bytes *= int64(n)
	}
	return bytes
}

// allocationOf returns a tensor as a part of what a program holds.
func allocationOf(t *fusion.Tensor) native.Allocation {
	bytes := bytesOf(t.DType, t.Dims)
	switch {
	case t.Constant != nil:
		return native.Allocation{Name: fmt.Sprint("constant ", t.Type()), Bytes: bytes, Fixed: true}
	case t.Port != nil:
		return native.AllocationOf(native.SlotOf(t.Name, roleOf(t.Port.Kind), t.Port.Value), bytes)
	}
	return native.Allocation{Name: fmt.Sprintf("%s %s", t.Name, t.Type()), Bytes: bytes}
}

func roleOf(k ir.PortKind) native.Role {
	switch k {
	case ir.ParamPort:
		return native.Param
	case ir.StatePort:
		return native.State
	}
	return native.Input
}

// source is an entry before it is compiled.
type source struct {
	entry     ir.Entry
	partition *fusion.Partition
}

// checkBudget returns a [*native.MemoryError] where the tensors of all entries take more than
// the budget, before anything as large as they are is made. What steps need besides is
// known when they are compiled.
func checkBudget(sources []source, budget native.Budget) error {
	var parts []native.Allocation
	var slots []native.Slot
	known := map[string]bool{}
	for _, s := range sources {
		for _, t := range s.partition.Tensors {
			if t.Port == nil && t.Constant == nil || t.Persistent() && known[t.Name] {
				continue
			}
			known[t.Name] = known[t.Name] || t.Persistent()
			parts = append(parts, allocationOf(t))
			if t.Port != nil {
				slots = append(slots, native.SlotOf(t.Name, roleOf(t.Port.Kind), t.Port.Value))
			}
		}
		parts = append(parts, temporaries(s)...)
	}
	return budget.Check(parts, slots)
}

// temporaries returns the memory of what an entry computes: the arena, or a tensor that is
// more than any arena holds.
func temporaries(s source) []native.Allocation {
	var a arena
	var largest native.Allocation
	var parts []native.Allocation
	last := lastUses(s.partition)
	var visit func(p *fusion.Partition, now int)
	write := func(t *fusion.Tensor, now int) {
		if t.Port != nil || t.Constant != nil || t.Outer != nil {
			return
		}
		made := allocationOf(t)
		if made.Bytes > math.MaxInt>>8 {
			parts = append(parts, made)
			return
		}
		if made.Bytes > largest.Bytes {
			largest = made
		}
		a.alloc(int(made.Bytes), now, max(last[t], now))
	}
	visit = func(p *fusion.Partition, at int) {
		for i, item := range p.Items {
			now := at
			if at < 0 {
				now = i
			}
			for _, t := range item.Writes() {
				write(t, now)
			}
			if c, ok := item.(fusion.Control); ok {
				for _, inner := range c.Partitions() {
					visit(inner, now)
				}
			}
		}
	}
	visit(s.partition, -1)
	return append(parts, arenaAllocation(s.entry.Name, a.bytes(), largest))
}

// arenaAllocation says what an entry computes, and what of it is largest.
func arenaAllocation(entry string, bytes int64, largest native.Allocation) native.Allocation {
	name := fmt.Sprintf("what entry %q computes", entry)
	if largest.Bytes > 0 {
		name += fmt.Sprintf(" (%s among it, %s)", largest.Name, native.FormatBytes(largest.Bytes))
	}
	return native.Allocation{Name: name, Bytes: bytes}
}

// lastUses returns the item that needs each tensor last.
func lastUses(p *fusion.Partition) map[*fusion.Tensor]int {
	last := map[*fusion.Tensor]int{}
	for i, item := range p.Items {
		for _, t := range slices.Concat(item.Writes(), item.Reads()) {
			last[t] = i
		}
	}
	for _, t := range p.Outputs {
		if t != nil {
			last[t] = len(p.Items)
		}
	}
	return last
}
