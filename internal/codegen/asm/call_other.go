//go:build !amd64 && !arm64

package asm

import "unsafe"

const hasEncoder = false

// Encoder has no instructions: there is no encoder for the processor.
type Encoder struct{}

// Call is never reached, as there is no code.
func Call(_, _ unsafe.Pointer, _ int) {}

func synchronize(unsafe.Pointer, int) {}
