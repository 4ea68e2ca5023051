package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// Word is an element of 32 bits, which shuffles move without conversion.
type Word interface {
	~uint32 | ~int32 | ~float32
}

// shuffle is a copy in another order.
type shuffle uint8

const (
	evens    shuffle = iota // every other element
	join                    // those of two arrays, alternating
	reversed                // from the last element to the first
	shuffles                // their number
)

// shuffleWidth is the number of words of a vector of the kernels.
const shuffleWidth = 8

// shuffleArguments are the arguments of a kernel; n is the number of vectors. join reads the second
// array. The source of reversed ends at from, and is read backwards.
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

// call runs a kernel on as many vectors as n elements fill, and returns the number of elements that it moved.
func (s shuffle) call(n int, to, from, second unsafe.Pointer) int {
	entry := shuffleCache.get().entry[s]
	if entry == nil || n < shuffleWidth {
		return 0
	}
	var x shuffleArguments
	x.to, x.from, x.second = to, from, second
	asm.Call(entry, unsafe.Pointer(&x), n/shuffleWidth)
	return n / shuffleWidth * shuffleWidth
}

// Evens copies every other element of from, which has twice as many elements as to, but may lack the last.
func Evens[T Word](to, from []T) {
	if len(to) == 0 {
		return
	}
	from = from[:2*len(to)-1]
	for i := evens.call(len(to), unsafe.Pointer(&to[0]), unsafe.Pointer(&from[0]), nil); i < len(to); i++ {
		to[i] = from[2*i]
	}
}

// Join writes the elements of a, which go to the even places of to, and of b, to the odd ones. Both have the same length.
func Join[T Word](to, a, b []T) {
	if len(a) == 0 {
		return
	}
	b, to = b[:len(a)], to[:2*len(a)]
	for i := join.call(len(a), unsafe.Pointer(&to[0]), unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0])); i < len(a); i++ {
		to[2*i], to[2*i+1] = a[i], b[i]
	}
}

// Reverse copies the elements of from, of the length of to, from the last to the first.
func Reverse[T Word](to, from []T) {
	if len(to) == 0 {
		return
	}
	from = from[:len(to)]
	last := len(from) - 1
	i := 0
	if n := len(to) / shuffleWidth * shuffleWidth; n > 0 {
		i = reversed.call(n, unsafe.Pointer(&to[0]), unsafe.Pointer(&from[len(from)-shuffleWidth]), nil)
	}
	for ; i < len(to); i++ {
		to[i] = from[last-i]
	}
}
