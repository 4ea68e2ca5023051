package asm

import "unsafe"

// Call runs code with the address of its arguments in RSI and n in R13. The code may change any
// register but RSP and RBP, and the memory of [Stack].
//
//go:noescape
func Call(code, args unsafe.Pointer, n int)

const hasEncoder = true

// synchronize does nothing: the instruction cache is coherent.
func synchronize(unsafe.Pointer, int) {}
