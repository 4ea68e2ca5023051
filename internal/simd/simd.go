// Package simd has the loops that the CPU backend spends its time in, in
// assembly for processors with AVX-512, AVX2 or NEON and in Go for all others. Which
// is used is decided when the program starts.
package simd

//go:generate go run ./gen

import (
	"os"
	"strings"
)

// Level is a set of instructions.
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

// Levels returns those that the processor has, the best one last.
func Levels() []Level { return append([]Level{Go}, beyondGo()...) }

// Has is the level of this process: the best that the processor has, unless the
// environment variable RLX_CPU asks for another one of [Levels] by name.
var Has = wanted(Levels(), os.Getenv("RLX_CPU"))

func wanted(levels []Level, name string) Level {
	for _, l := range levels {
		if strings.EqualFold(l.String(), name) {
			return l
		}
	}
	return levels[len(levels)-1]
}
