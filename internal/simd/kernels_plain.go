//go:build !amd64

package simd

// transposeKernels returns nil: there are no kernels that transpose.
func transposeKernels(uintptr) []transposeKernel { return nil }

// pieceKernel returns nil: there is no kernel that fills vectors from pieces.
func pieceKernel() (fill func(rows int, to *float32, toRow int, from *float32, rowAt *int32, list *piece, count int), lanes int) {
	return nil, 0
}
