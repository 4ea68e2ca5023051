//go:build !amd64 && !arm64

package jit

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/simd"
)

func hasEncoder(simd.Level) bool { return false }

func maxAccumulators(simd.Level) int { return 0 }

func widthOf(simd.Level) int { return 1 }

// generate and call are never reached, as there is no encoder.
func generate(*Rows, simd.Level) (text []byte, room int) { return nil, 0 }

func call(unsafe.Pointer, *unsafe.Pointer, int) {}

func synchronize(unsafe.Pointer, int) {}
