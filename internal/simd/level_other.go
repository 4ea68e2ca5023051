//go:build !amd64 && !arm64

package simd

// beyondGo returns the levels above plain Go: there is no code for any.
func beyondGo() []Level { return nil }
