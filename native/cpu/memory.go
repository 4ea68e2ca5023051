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

// buffer is the memory of a tensor. It may change between runs: a bound input uses the
// caller's memory.
type buffer struct {
	dtype ir.DType
	elems int
	data  []byte // never empty, so that a guarded load has an element to read
}

// unit is a Go type in which elements are stored.
type unit interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// view returns the elements of a buffer.
func view[T unit](b *buffer) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.data))), max(b.elems, 1))
}

// bytes returns the size of the elements.
func (b *buffer) bytes() int { return b.elems * b.dtype.Size() }

// cacheLine is the size of a cache line on x86-64 and on most arm64 processors.
const cacheLine = 64

// allocate returns zeroed memory of the given size, at least one element's, aligned to a cache
// line.
func allocate(bytes int) []byte {
	bytes = max(bytes, 16)
	all := make([]byte, bytes+cacheLine)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all))) % cacheLine)
	return all[skip : skip+bytes : skip+bytes]
}

// liveRange is the placement of a temporary in the arena with its last use.
type liveRange struct {
	from, to int // bytes
	last     int // index of the last item that uses it
}

// arena assigns offsets to temporaries, so that those with overlapping live ranges do not
// overlap in memory.
type arena struct {
	live      []liveRange
	size      int
	overflows bool // the live temporaries overflow an int
}

// bytes returns the size of the arena.
func (a *arena) bytes() int64 {
	if a.overflows {
		return math.MaxInt64
	}
	return int64(a.size)
}

// alloc returns the offset of the first gap that fits (first fit), for a temporary that is
// live from item now to item last. Calls must come in the order of now.
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

// ledger records the memory that a program will hold while it is compiled. It is allocated
// once the total is known to fit.
type ledger struct {
	parts    []native.Allocation
	requests []request
}

// request is memory to be allocated and its receiver.
type request struct {
	bytes  int
	assign func(data []byte)
}

// reserve records an allocation; assign receives the memory once it is allocated. A nil assign is
// for memory that a run allocates.
func (l *ledger) reserve(a native.Allocation, take func(data []byte)) {
	l.parts = append(l.parts, a)
	if take != nil {
		l.requests = append(l.requests, request{int(a.Bytes), take})
	}
}

// bytes returns the total, which a check has found not to overflow.
func (l *ledger) bytes() int64 {
	var sum int64
	for _, a := range l.parts {
		sum += a.Bytes
	}
	return sum
}

// allocate allocates all requests.
func (l *ledger) allocate() {
	for _, r := range l.requests {
		r.assign(allocate(r.bytes))
	}
	l.requests = nil
}

// bytesOf returns the size of an array, [math.MaxInt64] where it overflows.
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

// allocationOf describes the memory of a tensor.
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

// checkBudget returns a [*native.MemoryError] where the tensors of all entries exceed the
// budget. It runs before any constant is copied; scratch memory of steps is checked once they
// are compiled.
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

// temporaries returns the allocations for the temporaries of an entry: the arena, and tensors
// too large for any arena.
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

// arenaAllocation describes the arena of an entry and names its largest tensor.
func arenaAllocation(entry string, bytes int64, largest native.Allocation) native.Allocation {
	name := fmt.Sprintf("temporaries of entry %q", entry)
	if largest.Bytes > 0 {
		name += fmt.Sprintf(" (the largest is %s, %s)", largest.Name, native.FormatBytes(largest.Bytes))
	}
	return native.Allocation{Name: name, Bytes: bytes}
}

// lastUses returns the liveness of tensors: the index of the last item that uses each, or the
// number of items for outputs.
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
