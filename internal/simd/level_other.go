//go:build !amd64 && !arm64

package simd

// beyondGo returns the levels besides plain Go: there is no code for any.
func beyondGo() []Level { return nil }
