#include "textflag.h"

// func Call(code, args unsafe.Pointer, n int)
//
// The code returns to the caller. It may use the memory of these arguments.
TEXT ·Call(SB), NOSPLIT, $0-24
	MOVQ code+0(FP), AX
	MOVQ args+8(FP), SI
	MOVQ n+16(FP), R13
	JMP  AX
