package jit

import (
	"runtime"
	"unsafe"

	"github.com/rlx-go/rlx/internal/simd"
)

// call runs code with its arguments on n lanes.
//
//go:noescape
func call(code unsafe.Pointer, args *unsafe.Pointer, n int)

// synchronize lets processors see code that was written to memory.
//
//go:noescape
func synchronize(code unsafe.Pointer, bytes int)

// hasEncoder is false on Darwin, which gives out memory for code only to programs
// that switch between writing and executing it by a call of its C library, and on
// Windows, which has a call of its own to synchronize it.
func hasEncoder(level simd.Level) bool {
	return level == simd.NEON && runtime.GOOS != "darwin" && runtime.GOOS != "ios" && runtime.GOOS != "windows"
}

func maxAccumulators(simd.Level) int { return 12 }

func widthOf(simd.Level) int { return 4 }
