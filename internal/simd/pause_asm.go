//go:build amd64 || arm64

package simd

// Pause tells the processor that this thread only waits for another one, so that one
// which shares its core gets more of it.
func Pause()
