package jit

import (
	"unsafe"

	"github.com/rlx-go/rlx/native/cpu/simd"
)

// call runs code with its arguments on n lanes.
//
//go:noescape
func call(code unsafe.Pointer, args *unsafe.Pointer, n int)

func compiles(level simd.Level) bool { return level >= simd.AVX2 }

func widthOf(level simd.Level) int {
	if level == simd.AVX512 {
		return 16
	}
	return 8
}
