package cpu

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/ir"
)

// sortStep argsorts the keys of each row, stably.
type sortStep struct {
	keys, order  *buffer
	places       *buffer // two lists of placed keys for each worker
	rows, length int
	first        int  // the elements of each order that are stored
	inserts      bool // finds them by insertion, in a list of maxInserted keys for each worker
}

// maxInserted is the maximum number of elements of an order that are found by insertion: one more
// costs a move of half of them at worst.
const maxInserted = 64

// newSort returns the step that sorts rows of keys, with its memory.
func newSort(c *compiler, keys *buffer, x *fusion.Sort) *sortStep {
	s := &sortStep{keys: keys, order: c.scratch(ir.I32, x.Rows*x.First), rows: x.Rows, length: x.Length, first: x.First}
	lists := min(x.Rows, workers())
	if s.first <= min(maxInserted, s.length/4) {
		s.inserts, s.places = true, c.scratch(ir.U64, 2*maxInserted*lists)
		return s
	}
	size := int(unsafe.Sizeof(placed[uint32]{}))
	if keys.dtype == ir.U64 {
		size = int(unsafe.Sizeof(placed[uint64]{}))
	}
	s.places = c.scratch(ir.U64, 2*s.length*lists*size/8)
	return s
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
	places := unsafe.Slice((*placed[T])(unsafe.Pointer(unsafe.SliceData(s.places.data))), len(s.places.data)/int(unsafe.Sizeof(placed[T]{})))
	if s.inserts {
		for i, p := range firstPlaced(keys, places[maxInserted*worker:][:s.first]) {
			order[i] = int32(p.place)
		}
		return
	}
	lists := places[2*s.length*worker:][:2*s.length]
	list, other := lists[:s.length], lists[s.length:]
	if s.first <= s.length/2 {
		list = selectPlaced(keys, s.first, list)
	} else {
		for i, key := range keys {
			list[i] = placed[T]{key, uint32(i)}
		}
	}
	for i, p := range sortPlaced(list, other)[:s.first] {
		order[i] = int32(p.place)
	}
}

// selectPlaced fills a list with the first keys in order and some others, with their positions and in their order,
// and returns it. It counts the values of the highest bits, drops keys after those that hold the last of the first
// ones, and so on with lower bits.
func selectPlaced[T uint32 | uint64](keys []T, first int, list []placed[T]) []placed[T] {
	const digit = 11 // bits at a time
	var counts [1 << digit]uint32
	shift := int(unsafe.Sizeof(keys[0]))*8 - digit
	for _, key := range keys {
		counts[key>>shift]++
	}
	value, before := rankIn(counts[:], first) // of the bits so far, and the number of smaller keys
	n := 0
	for i, key := range keys {
		if key>>shift <= T(value) {
			list[n] = placed[T]{key, uint32(i)}
			n++
		}
	}
	list = list[:n]
	for shift > 0 && len(list) > 2*first+fewKeys {
		bits := min(digit, shift)
		clear(counts[:])
		for _, p := range list {
			if p.key>>shift == T(value) {
				counts[p.key>>(shift-bits)&(1<<bits-1)]++
			}
		}
		low, below := rankIn(counts[:], first-before)
		value, before, shift = value<<bits|low, before+below, shift-bits
		n = 0
		for _, p := range list {
			if p.key>>shift <= T(value) {
				list[n] = p
				n++
			}
		}
		list = list[:n]
	}
	return list
}

// rankIn returns the value that the key of a rank from 1 on has, by how many keys have each value, and the number
// of keys of smaller values.
func rankIn(counts []uint32, rank int) (value uint64, before int) {
	for int(counts[value])+before < rank {
		before += int(counts[value])
		value++
	}
	return value, before
}

// firstPlaced fills a list of one key or more with the first keys in order with their positions, and returns it.
func firstPlaced[T uint32 | uint64](keys []T, list []placed[T]) []placed[T] {
	for i, key := range keys[:len(list)] {
		insertPlaced(list[:i+1], key, i)
	}
	last := list[len(list)-1].key
	for i := len(list); i < len(keys); i++ {
		if key := keys[i]; key < last {
			insertPlaced(list, key, i)
			last = list[len(list)-1].key
		}
	}
	return list
}

// insertPlaced inserts a key behind those before it in a list that is in order but for its last element, which it drops.
func insertPlaced[T uint32 | uint64](list []placed[T], key T, place int) {
	at := len(list) - 1
	for ; at > 0 && list[at-1].key > key; at-- {
		list[at] = list[at-1]
	}
	list[at] = placed[T]{key, uint32(place)}
}

// fewKeys is the length below which insertion is faster than counting.
const fewKeys = 48

// sortPlaced returns a list of keys with their positions in order, in it or another list of the same length, and
// overwrites both. It sorts few keys by insertion, others by a stable radix sort from the lowest byte
// (Knuth, The Art of Computer Programming, volume 3, section 5.2.5). It skips bytes that are equal
// in all keys.
func sortPlaced[T uint32 | uint64](list, other []placed[T]) []placed[T] {
	other = other[:len(list)]
	if len(list) < fewKeys {
		for i, p := range list {
			insertPlaced(list[:i+1], p.key, int(p.place))
		}
		return list
	}
	var counts [8][256]uint32
	bytes := int(unsafe.Sizeof(list[0].key))
	for _, p := range list {
		for b := range bytes {
			counts[b][uint8(p.key>>(8*b))]++
		}
	}
	for b := range bytes {
		count, shift := &counts[b], 8*b
		if count[uint8(list[0].key>>shift)] == uint32(len(list)) {
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
