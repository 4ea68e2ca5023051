//go:build !amd64

package simd

// best returns the best level that there is code for.
func best() Level { return Go }
