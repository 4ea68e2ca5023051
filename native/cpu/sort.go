package cpu

import (
	"math"
	"sort"
	"unsafe"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// sortStep argsorts the keys of each row, stably.
type sortStep struct {
	keys, order  *buffer
	places       *buffer // two lists of placed keys for each worker
	rows, length int
	first        int // the elements of each order that are read and stored
}

// readOfSorts returns how many elements of each row of an argsort are read, the first ones,
// where all readers in the graph are slices, as in a top-k.
func readOfSorts(g *ir.Graph) map[*ir.Node]int {
	read := map[*ir.Node]int{}
	for _, n := range g.Nodes() {
		for _, v := range n.Inputs() {
			if s := v.Node(); s != nil && s.Op() == ops.OpArgSort {
				read[s] = max(read[s], readBy(n, s.Attrs().(*ops.SortAttrs).Axis))
			}
		}
	}
	for _, o := range g.Outputs() {
		delete(read, o.Value.Node())
	}
	return read
}

// readBy returns the index after the last element along an axis that a node reads of its first operand.
func readBy(n *ir.Node, axis int) int {
	if a, ok := n.Attrs().(*ops.SliceAttrs); ok && a.Stride[axis] == 1 {
		start, known := a.Start[axis].Const()
		size, fixed := a.Size[axis].Const()
		if known && fixed {
			return start + size
		}
	}
	return math.MaxInt
}

// maxInserted is the maximum number of elements of an order that are found by insertion: one more
// costs a move of half of them at worst.
const maxInserted = 64

// newSort returns the step that sorts rows of keys, with its memory; read is how many elements of an order
// are read, 0 where that is unknown.
func newSort(c *compiler, keys *buffer, rows, length, read int) *sortStep {
	if 0 < read && read <= min(maxInserted, length/4) {
		return &sortStep{keys: keys, order: c.scratch(ir.I32, rows*read), places: c.scratch(ir.U64, 2*maxInserted*min(rows, workers())), rows: rows, length: length, first: read}
	}
	size := int(unsafe.Sizeof(placed[uint32]{}))
	if keys.dtype == ir.U64 {
		size = int(unsafe.Sizeof(placed[uint64]{}))
	}
	lists := 2 * length * min(rows, workers())
	return &sortStep{keys: keys, order: c.scratch(ir.I32, rows*length), places: c.scratch(ir.U64, lists*size/8), rows: rows, length: length, first: length}
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
	keys, order := view[T](s.keys)[row*s.length:][:s.length], view[int32](s.order)[row*s.first:][:s.first]
	if s.first < s.length {
		list := unsafe.Slice((*placed[T])(unsafe.Pointer(unsafe.SliceData(s.places.data))), maxInserted*(worker+1))
		for i, p := range firstPlaced(keys, list[maxInserted*worker:][:s.first]) {
			order[i] = int32(p.place)
		}
		return
	}
	lists := unsafe.Slice((*placed[T])(unsafe.Pointer(unsafe.SliceData(s.places.data))), 2*s.length*(worker+1))
	lists = lists[2*s.length*worker:]
	list := sortPlaced(keys, lists[:s.length], lists[s.length:])
	for i, p := range list {
		order[i] = int32(p.place)
	}
}

// firstPlaced fills a list with the first keys in order with their positions, and returns it.
func firstPlaced[T uint32 | uint64](keys []T, list []placed[T]) []placed[T] {
	count := 0
	for i, key := range keys {
		if count < len(list) {
			count++
		} else if key >= list[count-1].key {
			continue
		}
		at := sort.Search(count-1, func(j int) bool { return list[j].key > key })
		copy(list[at+1:count], list[at:])
		list[at] = placed[T]{key, uint32(i)}
	}
	return list
}

// fewKeys is the length below which insertion is faster than counting.
const fewKeys = 48

// sortPlaced returns the keys in order with their positions, in one of two lists that it
// overwrites. It sorts few keys by insertion, others by a stable radix sort from the lowest byte
// (Knuth, The Art of Computer Programming, volume 3, section 5.2.5). It skips bytes that are equal
// in all keys.
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
