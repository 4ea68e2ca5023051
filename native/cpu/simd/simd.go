// Package simd has the loops that the CPU backend spends its time in, in
// assembly for processors with AVX-512 or AVX2 and in Go for all others. Which
// is used is decided when the program starts.
package simd

//go:generate go run ./gen

import (
	"os"
	"strings"
)

// Level is a set of instructions.
type Level uint8

// The levels, each with all that those before it have.
const (
	Go     Level = iota // plain Go
	AVX2                // with FMA and F16C
	AVX512              // F, DQ, BW and VL
)

// String returns the level's name.
func (l Level) String() string { return [...]string{"go", "avx2", "avx512"}[l] }

// Has is the level of this process: the best that the processor has, unless the
// environment variable RLX_CPU asks for a lower one by name.
var Has = wanted(best(), os.Getenv("RLX_CPU"))

func wanted(level Level, name string) Level {
	for l := Go; l < level; l++ {
		if strings.EqualFold(l.String(), name) {
			return l
		}
	}
	return level
}
