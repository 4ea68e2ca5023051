// Package simd is the CPU backend's library of vectorised kernels: matrix products, dot
// products with plain or quantised rows, and transposes. They are machine code for processors
// with AVX-512, AVX2 or NEON, which package asm assembles when kernels are first used, and in Go
// for all others and where the system permits no generated code. The level is chosen when the
// program starts. Read product.go first; kernels.go generates the code, which code_*.go, tile_*.go,
// packed_*.go and transpose_*.go write for each processor.
package simd

import (
	"os"
	"strings"
)

// Level is an instruction set.
type Level uint8

// The levels.
const (
	Go     Level = iota // plain Go
	AVX2                // of x86-64, with FMA and F16C
	AVX512              // of x86-64, F, DQ, BW and VL
	NEON                // of arm64: Advanced SIMD
)

// String returns the level's name.
func (l Level) String() string { return [...]string{"go", "avx2", "avx512", "neon"}[l] }

// Title returns the level as its maker writes it, such as "AVX-512"; "no vector instructions" for Go.
func (l Level) Title() string {
	return [...]string{"no vector instructions", "AVX2", "AVX-512", "NEON"}[l]
}

// Levels returns the levels that the processor supports, the best one last.
func Levels() []Level { return append([]Level{Go}, beyondGo()...) }

// Has is the level in use: the best that the processor supports, or another one of [Levels]
// that the environment variable RLX_CPU names.
var Has = wanted(Levels(), os.Getenv("RLX_CPU"))

func wanted(levels []Level, name string) Level {
	for _, l := range levels {
		if strings.EqualFold(l.String(), name) {
			return l
		}
	}
	return levels[len(levels)-1]
}
