#include "textflag.h"

// func call(code unsafe.Pointer, args *unsafe.Pointer, n int)
//
// Code is given its arguments in R0 and the number of lanes in R1. It changes
// any vector register, and general ones below R26 but R18.
TEXT ·call(SB), NOSPLIT, $16-24
	MOVD code+0(FP), R16
	MOVD args+8(FP), R0
	MOVD n+16(FP), R1
	CALL (R16)
	RET

// func synchronize(code unsafe.Pointer, bytes int)
//
// It cleans the data cache to where instructions are read from, and invalidates the
// instruction cache, line by line (Arm Architecture Reference Manual, section B2.4.4).
TEXT ·synchronize(SB), NOSPLIT, $0-16
	MOVD code+0(FP), R0
	MOVD bytes+8(FP), R1
	ADD  R0, R1, R1
	WORD $0xd53b0022 // MRS X2, CTR_EL0
	MOVD $4, R3
	UBFX $16, R2, $4, R4
	LSL  R4, R3, R4 // bytes of a line of the data cache
	AND  $15, R2, R5
	LSL  R5, R3, R5 // and of the instruction cache
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
