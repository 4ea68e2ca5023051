package jit

import "github.com/rlx-go/rlx/internal/simd"

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
