package jit

import (
	"runtime"
	"unsafe"

	"github.com/rlx-go/rlx/internal/simd"
)

// call runs code on n lanes.
//
//go:noescape
func call(code unsafe.Pointer, args *unsafe.Pointer, n int)

// synchronize makes the instruction cache coherent with written code.
//
//go:noescape
func synchronize(code unsafe.Pointer, bytes int)

// hasEncoder returns false on Darwin, which gives memory for code only to programs that switch
// between writing and executing it through its C library, and on Windows, which has its own
// call to flush the instruction cache.
func hasEncoder(level simd.Level) bool {
	return level == simd.NEON && runtime.GOOS != "darwin" && runtime.GOOS != "ios" && runtime.GOOS != "windows"
}

func maxAccumulators(simd.Level) int { return 12 }

func widthOf(simd.Level) int { return 4 }
