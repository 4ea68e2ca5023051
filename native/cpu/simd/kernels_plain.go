//go:build !amd64

package simd

import "unsafe"

// turn is the kernel that transposes eight rows: there is none.
func turn() func(blocks int, from unsafe.Pointer, fromRow int, to unsafe.Pointer, toRow int) {
	return nil
}

// piecewise is the kernel that fills vectors from pieces: there is none.
func piecewise() (fill func(rows int, to *float32, toRow int, from *float32, rowAt *int32, list *piece, count int), lanes int) {
	return nil, 0
}
