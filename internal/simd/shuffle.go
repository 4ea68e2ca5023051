package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// shuffle is a copy in another order.
type shuffle uint8

const (
	evens           shuffle = iota // every other element
	join                           // those of two arrays, alternating
	reversedBytes                  // from the last element to the first, by the size of an element
	reversedHalves                 //
	reversedWords                  //
	reversedDoubles                //
	shuffles                       // their number
)

// shuffleBytes is the size of a vector of the kernels, shuffleWidth the number of its words.
const shuffleBytes, shuffleWidth = 32, 8

// shuffleArguments are the arguments of a kernel; n is the number of vectors. join reads the second
// array; reversedBytes and reversedHalves read a row of reversals. The source of the reversed ends at from, and
// is read backwards.
type shuffleArguments struct {
	to, from, second unsafe.Pointer
}

// shuffleKernels are the kernels of a level; without code they are nil.
type shuffleKernels struct {
	code  *asm.Code
	entry [shuffles]unsafe.Pointer
}

var shuffleCache = cache[shuffleKernels]{generate: newShuffleKernels, plain: func() *shuffleKernels { return &shuffleKernels{} }}

func newShuffleKernels(level Level) (k *shuffleKernels, err error) {
	l, k := &library{}, &shuffleKernels{}
	for s := range shuffles {
		l.add(&k.entry[s], shuffleCode(level, s))
	}
	k.code, err = l.load()
	return k, err
}

// call runs a kernel on n vectors, and returns their number of bytes; 0 without a kernel.
func (s shuffle) call(n int, to, from, second unsafe.Pointer) int {
	entry := shuffleCache.get().entry[s]
	if entry == nil || n == 0 {
		return 0
	}
	var x shuffleArguments
	x.to, x.from, x.second = to, from, second
	asm.Call(entry, unsafe.Pointer(&x), n)
	return n * shuffleBytes
}

// words returns how many elements the kernels of words move at a time, of n elements of a type; 0 for other types.
func words[T element](n int) int {
	if unsafe.Sizeof(*new(T)) != shuffleBytes/shuffleWidth {
		return 0
	}
	return n / shuffleWidth
}

// Evens copies every other element of from, which has twice as many elements as to, but may lack the last.
func Evens[T element](to, from []T) {
	if len(to) == 0 {
		return
	}
	from = from[:2*len(to)-1]
	for i := evens.call(words[T](len(to)), unsafe.Pointer(&to[0]), unsafe.Pointer(&from[0]), nil) / 4; i < len(to); i++ {
		to[i] = from[2*i]
	}
}

// Join writes the elements of a, which go to the even places of to, and of b, to the odd ones. Both have the same length.
func Join[T element](to, a, b []T) {
	if len(a) == 0 {
		return
	}
	b, to = b[:len(a)], to[:2*len(a)]
	for i := join.call(words[T](len(a)), unsafe.Pointer(&to[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0])) / 4; i < len(a); i++ {
		to[2*i], to[2*i+1] = a[i], b[i]
	}
}

// reversals are the places in half a vector from which reversed elements of one byte and of two come.
var reversals = [2][16]uint8{
	{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
	{14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1},
}

// Reverse copies the elements of from, of the length of to, from the last to the first.
func Reverse[T element](to, from []T) {
	if len(to) == 0 {
		return
	}
	from = from[:len(to)]
	size := int(unsafe.Sizeof(from[0]))
	kind, places := reversedDoubles, unsafe.Pointer(nil)
	switch size {
	case 1:
		kind, places = reversedBytes, unsafe.Pointer(&reversals[0])
	case 2:
		kind, places = reversedHalves, unsafe.Pointer(&reversals[1])
	case 4:
		kind = reversedWords
	}
	i := 0
	if width := shuffleBytes / size; len(to) >= width {
		i = kind.call(len(to)/width, unsafe.Pointer(&to[0]), unsafe.Pointer(&from[len(from)-width]), places) / size
	}
	for last := len(from) - 1; i < len(to); i++ {
		to[i] = from[last-i]
	}
}
