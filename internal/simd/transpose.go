package simd

import "unsafe"

// element is a type that transposes move without conversion.
type element interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// transposeKernel transposes squares of size×size elements, whose first elements are fromStep
// apart in the source and toStep in the destination.
type transposeKernel struct {
	size int
	turn func(squares int, from unsafe.Pointer, fromRow, fromStep int, to unsafe.Pointer, toRow, toStep int)
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
	for _, k := range transposeKernels(unsafe.Sizeof(to[0])) {
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
	if rows == k.size { // squares side by side
		k.turn(n/k.size, unsafe.Pointer(&from[0]), fromRow, k.size, unsafe.Pointer(&to[0]), toRow, k.size*toRow)
		return n
	}
	for j := 0; j < n; j += k.size {
		k.turn(rows/k.size, unsafe.Pointer(&from[j]), fromRow, k.size*fromRow, unsafe.Pointer(&to[j*toRow]), toRow, k.size)
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
