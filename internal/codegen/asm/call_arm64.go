package asm

import (
	"runtime"
	"unsafe"
)

// Call runs code with the address of its arguments in R0 and n in R1. The code may change any
// vector register, and general ones below R26 but R18.
//
//go:noescape
func Call(code, args unsafe.Pointer, n int)

// hasEncoder is false on iOS, which gives programs no memory for code.
const hasEncoder = runtime.GOOS != "ios"

// cacheType returns the register CTR_EL0, with the line sizes of the caches.
func cacheType() int

// flushLines cleans the data cache to where instructions are read from, and invalidates the
// instruction cache, line by line (Arm Architecture Reference Manual, section B2.4.4).
//
//go:noescape
func flushLines(code unsafe.Pointer, bytes, dataLine, codeLine int)

// synchronize makes the instruction cache coherent with written code. Programs on Darwin may not
// read CTR_EL0; all processors there have lines of 64 bytes or more.
func synchronize(code unsafe.Pointer, bytes int) {
	dataLine, codeLine := 64, 64
	if runtime.GOOS != "darwin" {
		t := cacheType()
		dataLine, codeLine = 4<<(t>>16&15), 4<<(t&15)
	}
	flushLines(code, bytes, dataLine, codeLine)
}
