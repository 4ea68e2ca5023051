#include "textflag.h"

// func call(code unsafe.Pointer, args *unsafe.Pointer, n int)
//
// Code is given its arguments in RSI and the number of lanes in R13. It changes
// any register but RSP, RBP, R14 and R15.
TEXT ·call(SB), NOSPLIT, $8-24
	MOVQ code+0(FP), AX
	MOVQ args+8(FP), SI
	MOVQ n+16(FP), R13
	CALL AX
	RET
