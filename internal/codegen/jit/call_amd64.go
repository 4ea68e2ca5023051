package jit

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/simd"
)

// call runs code on n lanes.
//
//go:noescape
func call(code unsafe.Pointer, args *unsafe.Pointer, n int)

func hasEncoder(level simd.Level) bool { return level != simd.Go }

func maxAccumulators(level simd.Level) int {
	if level == simd.AVX512 {
		return 12
	}
	return 5
}

func widthOf(level simd.Level) int {
	if level == simd.AVX512 {
		return 16
	}
	return 8
}

// synchronize does nothing: the instruction cache is coherent.
func synchronize(unsafe.Pointer, int) {}
