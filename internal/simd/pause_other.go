//go:build !amd64 && !arm64

package simd

// Pause does nothing: there is no code for this processor.
func Pause() {}
