//go:build !amd64 && !arm64

package jit

import "github.com/rlx-go/rlx/internal/simd"

func maxAccumulators(simd.Level) int { return 0 }

func widthOf(simd.Level) int { return 1 }

// generate is never reached, as there is no encoder.
func generate(*Rows, simd.Level) (text []byte, room int) { return nil, 0 }

// HasShifts reports whether kernels have [Kernel.Shift].
func HasShifts() bool { return false }

func hasRuns() bool { return false }

func hasGathers() bool { return false }

// HasOverlap reports whether rows may end with a vector that overlaps the one before.
func HasOverlap() bool { return false }

// HasIndirect reports whether rows have indirect arrays.
func HasIndirect() bool { return false }

// HasPairs reports whether kernels have [Kernel.LoadPart] and [Kernel.StorePairs].
func HasPairs() bool { return false }
