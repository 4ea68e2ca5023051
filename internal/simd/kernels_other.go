//go:build !amd64 && !arm64

package simd

// kernelsOf returns the kernels in Go, the only ones.
func kernelsOf[T Float]() *kernels[T] {
	var t T
	if _, double := any(t).(float64); double {
		return any(plain64).(*kernels[T])
	}
	return any(plain32).(*kernels[T])
}

var plain32, plain64 = plain[float32](), plain[float64]()

// packedDots returns the kernel in Go, of one lane.
func packedDots(p Packing) (dot packedDot, lanes int) { return plainPacked(p), 1 }
