//go:build amd64 || arm64

package simd

// Pause hints that the thread spins, so that another thread of its core gets more of it.
func Pause()
