//go:build !amd64 && !arm64

package simd

// Pause does nothing on this processor.
func Pause() {}
