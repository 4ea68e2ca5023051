package simd

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// element is a type that transposes move without conversion.
type element interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// transposeKernel transposes squares of size×size elements.
type transposeKernel struct {
	size  int
	entry unsafe.Pointer
}

// transposeArguments are the arguments of a kernel: the first elements of squares are fromStep
// apart in the source and toStep in the destination. n is the number of squares.
type transposeArguments struct {
	from              unsafe.Pointer
	fromRow, fromStep int
	to                unsafe.Pointer
	toRow, toStep     int
}

// transposeKernels are the kernels of a level for elements of 1, 2, 4 and 8 bytes, the largest first;
// without code there are none.
type transposeKernels struct {
	code *asm.Code
	// sizes are the kernels for elements of 1<<i bytes.
	sizes [4][]transposeKernel
}

var transposes = cache[transposeKernels]{generate: newTransposeKernels, plain: func() *transposeKernels { return &transposeKernels{} }}

func newTransposeKernels(level Level) (t *transposeKernels, err error) {
	l, t := &library{}, &transposeKernels{sizes: [4][]transposeKernel{{{size: 8}}, {{size: 8}}, {{size: 16}, {size: 8}}, {{size: 8}, {size: 4}}}}
	for i, list := range t.sizes {
		for k := range list {
			l.add(&list[k].entry, transposeCode(level, 1<<i, list[k].size))
		}
	}
	t.code, err = l.load()
	for i, list := range t.sizes {
		t.sizes[i] = slices.DeleteFunc(list, func(k transposeKernel) bool { return k.entry == nil })
	}
	return t, err
}

// of returns the kernels for elements of the given size in bytes.
func (t *transposeKernels) of(size uintptr) []transposeKernel {
	return t.sizes[bits.TrailingZeros(uint(size))]
}

// Kernels transpose pieceRows rows at a time, one column of squares after the other, so that
// long runs of the result are written. Go transposes plainColumns columns of plainRows rows.
const (
	pieceRows    = 256
	plainRows    = 8
	plainColumns = 64
)

// Transpose writes the rows of from, of n elements and fromRow apart, as columns
// of to, whose rows are toRow apart.
func Transpose[T element](to []T, toRow int, from []T, fromRow, rows, n int) {
	i := 0
	for _, k := range transposes.get().of(unsafe.Sizeof(to[0])) {
		for n >= k.size && i+k.size <= rows {
			piece := min(pieceRows, rows-i) / k.size * k.size
			full := transposeSquares(k, to[i:], toRow, from[i*fromRow:], fromRow, piece, n)
			if full < n {
				transposePlain(to[i+full*toRow:], toRow, from[i*fromRow+full:], fromRow, piece, n-full)
			}
			i += piece
		}
	}
	if i < rows {
		transposePlain(to[i:], toRow, from[i*fromRow:], fromRow, rows-i, n)
	}
}

// transposeSquares transposes rows, a multiple of the kernel's size, and returns the number of
// columns it handled.
func transposeSquares[T element](k transposeKernel, to []T, toRow int, from []T, fromRow, rows, n int) int {
	n -= n % k.size
	var x transposeArguments
	x.fromRow, x.toRow = fromRow, toRow
	if rows == k.size { // squares side by side
		x.from, x.fromStep, x.to, x.toStep = unsafe.Pointer(&from[0]), k.size, unsafe.Pointer(&to[0]), k.size*toRow
		asm.Call(k.entry, unsafe.Pointer(&x), n/k.size)
		return n
	}
	x.fromStep, x.toStep = k.size*fromRow, k.size
	for j := 0; j < n; j += k.size {
		x.from, x.to = unsafe.Pointer(&from[j]), unsafe.Pointer(&to[j*toRow])
		asm.Call(k.entry, unsafe.Pointer(&x), rows/k.size)
	}
	return n
}

// transposePlain transposes in Go.
func transposePlain[T element](to []T, toRow int, from []T, fromRow, rows, n int) {
	for j := 0; j < n; j += plainColumns {
		for i := 0; i < rows; i += plainRows {
			transposeRows(to[i+j*toRow:], toRow, from[i*fromRow+j:], fromRow, min(plainRows, rows-i), min(plainColumns, n-j))
		}
	}
}

// transposeRows transposes a few rows, with contiguous writes.
func transposeRows[T element](to []T, toRow int, from []T, fromRow, rows, n int) {
	for j := range n {
		out := to[j*toRow : j*toRow+rows]
		at := j
		for i := range out {
			out[i] = from[at]
			at += fromRow
		}
	}
}
