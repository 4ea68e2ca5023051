#include "textflag.h"

// func Call(code, args unsafe.Pointer, n int)
//
// The code returns to the caller.
TEXT ·Call(SB), NOSPLIT, $0-24
	MOVD code+0(FP), R16
	MOVD args+8(FP), R0
	MOVD n+16(FP), R1
	JMP  (R16)

// func cacheType() int
TEXT ·cacheType(SB), NOSPLIT, $0-8
	WORD $0xd53b0020 // MRS X0, CTR_EL0
	MOVD R0, ret+0(FP)
	RET

// func flushLines(code unsafe.Pointer, bytes, dataLine, codeLine int)
TEXT ·flushLines(SB), NOSPLIT, $0-32
	MOVD code+0(FP), R0
	MOVD bytes+8(FP), R1
	MOVD dataLine+16(FP), R4
	MOVD codeLine+24(FP), R5
	ADD  R0, R1, R1
	NEG  R4, R6
	AND  R6, R0, R7

clean:
	WORD $0xd50b7b27 // DC CVAU, X7
	ADD  R4, R7, R7
	CMP  R1, R7
	BLO  clean
	WORD $0xd5033b9f // DSB ISH
	NEG  R5, R6
	AND  R6, R0, R7

invalidate:
	WORD $0xd50b7527 // IC IVAU, X7
	ADD  R5, R7, R7
	CMP  R1, R7
	BLO  invalidate
	WORD $0xd5033b9f // DSB ISH
	WORD $0xd5033fdf // ISB
	RET
