package cpu

import (
	"unsafe"

	"github.com/rlx-go/rlx/ir"
)

// sortStep argsorts the keys of each row, stably.
type sortStep struct {
	keys, order  *buffer
	places       *buffer // two lists of placed keys for each worker
	rows, length int
}

// newSort returns the step that sorts rows of keys, with its memory.
func newSort(c *compiler, keys *buffer, rows, length int) *sortStep {
	size := int(unsafe.Sizeof(placed[uint32]{}))
	if keys.dtype == ir.U64 {
		size = int(unsafe.Sizeof(placed[uint64]{}))
	}
	lists := 2 * length * min(rows, workers())
	return &sortStep{keys: keys, order: c.scratch(ir.I32, rows*length), places: c.scratch(ir.U64, lists*size/8), rows: rows, length: length}
}

func (s *sortStep) run(r *runner) { r.job.run(s, s.rows) }

func (s *sortStep) do(worker, row int) {
	if s.keys.dtype == ir.U64 {
		argsort[uint64](s, worker, row)
	} else {
		argsort[uint32](s, worker, row)
	}
}

// placed is a key with its place in the row.
type placed[T uint32 | uint64] struct {
	key   T
	place uint32
}

// argsort writes the order of a row.
func argsort[T uint32 | uint64](s *sortStep, worker, row int) {
	keys, order := view[T](s.keys)[row*s.length:][:s.length], view[int32](s.order)[row*s.length:][:s.length]
	lists := unsafe.Slice((*placed[T])(unsafe.Pointer(unsafe.SliceData(s.places.data))), 2*s.length*(worker+1))
	lists = lists[2*s.length*worker:]
	list := sortPlaced(keys, lists[:s.length], lists[s.length:])
	for i, p := range list {
		order[i] = int32(p.place)
	}
}

// fewKeys is the length below which insertion is faster than counting.
const fewKeys = 48

// sortPlaced returns the keys in order with their positions, in one of two lists that it
// overwrites. It sorts few keys by insertion, others by a stable radix sort from the lowest byte
// (Knuth, The Art of Computer Programming, volume 3, section 5.2.5), without passes for bytes that
// are equal in all keys.
func sortPlaced[T uint32 | uint64](keys []T, list, other []placed[T]) []placed[T] {
	if len(keys) < fewKeys {
		for i, key := range keys {
			at := i
			for ; at > 0 && list[at-1].key > key; at-- {
				list[at] = list[at-1]
			}
			list[at] = placed[T]{key, uint32(i)}
		}
		return list
	}
	var counts [8][256]uint32
	bytes := int(unsafe.Sizeof(keys[0]))
	for i, key := range keys {
		list[i] = placed[T]{key, uint32(i)}
		for b := range bytes {
			counts[b][uint8(key>>(8*b))]++
		}
	}
	for b := range bytes {
		count, shift := &counts[b], 8*b
		if count[uint8(keys[0]>>shift)] == uint32(len(keys)) {
			continue
		}
		first := uint32(0)
		for i, n := range count {
			count[i], first = first, first+n
		}
		for _, p := range list {
			at := &count[uint8(p.key>>shift)]
			other[*at] = p
			*at++
		}
		list, other = other, list
	}
	return list
}
