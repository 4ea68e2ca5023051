//go:build !amd64

package simd

const hasPairs = false

// Processor returns the name that the processor reports: "", as other processors report none to
// programs.
func Processor() string { return "" }
