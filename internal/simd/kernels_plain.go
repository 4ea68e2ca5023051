//go:build !amd64

package simd

// transposeKernels are the kernels that transpose: there are none.
func transposeKernels(uintptr) []transposeKernel { return nil }

// pieceKernel is the kernel that fills vectors from pieces: there is none.
func pieceKernel() (fill func(rows int, to *float32, toRow int, from *float32, rowAt *int32, list *piece, count int), lanes int) {
	return nil, 0
}
