package simd

import "unsafe"

// element is a type that is moved as it is.
type element interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Transpose writes the rows of from, of n elements and fromRow apart, as columns
// of to, whose rows are toRow apart.
func Transpose[T element](to []T, toRow int, from []T, fromRow, rows, n int) {
	const strip = 8 // rows that are turned together
	i := 0
	if f := turn(); f != nil && unsafe.Sizeof(to[0]) == 4 && n >= strip {
		full := n - n%strip
		for ; i+strip <= rows; i += strip {
			f(full/strip, unsafe.Pointer(&from[i*fromRow]), fromRow, unsafe.Pointer(&to[i]), toRow)
			if full < n {
				turnRows(to[i+full*toRow:], toRow, from[i*fromRow+full:], fromRow, strip, n-full)
			}
		}
	}
	for ; i < rows; i += strip {
		turnRows(to[i:], toRow, from[i*fromRow:], fromRow, min(strip, rows-i), n)
	}
}

// turnRows transposes a few rows: each element of to next to those before.
func turnRows[T element](to []T, toRow int, from []T, fromRow, rows, n int) {
	for j := range n {
		out := to[j*toRow : j*toRow+rows]
		at := j
		for i := range out {
			out[i] = from[at]
			at += fromRow
		}
	}
}
