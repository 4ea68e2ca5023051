#include "textflag.h"

// func Call(code, args unsafe.Pointer, n int)
TEXT ·Call(SB), NOSPLIT, $24-24
	MOVQ code+0(FP), AX
	MOVQ args+8(FP), SI
	MOVQ n+16(FP), R13
	CALL AX
	RET
