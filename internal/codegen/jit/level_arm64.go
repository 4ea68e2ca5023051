package jit

import "github.com/rlx-go/rlx/internal/simd"

func maxAccumulators(simd.Level) int { return 12 }

func widthOf(simd.Level) int { return 4 }
