package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// floatOps are binary operations on floats.
var floatOps = map[scalar.Op]asm.Opcode{
	scalar.OpAdd: asm.AddFloat, scalar.OpMul: asm.MultiplyFloat, scalar.OpSub: asm.SubtractFloat, scalar.OpDiv: asm.DivideFloat,
}

// widenings load narrower integers as 32-bit lanes.
var widenings = map[dtype.DType]asm.Opcode{
	dtype.I8: asm.WidenInt8, dtype.I16: asm.WidenInt16, dtype.U8: asm.WidenUint8, dtype.U16: asm.WidenWords,
}

// longWidenings load 32-bit numbers as 64-bit lanes.
var longWidenings = map[dtype.DType]asm.Opcode{
	dtype.F32: asm.WidenFloats, dtype.I32: asm.WidenSigned, dtype.U32: asm.WidenUnsigned,
}

// intOps are binary operations on integers, signed where it matters.
var intOps = map[scalar.Op]asm.Opcode{
	scalar.OpAdd: asm.AddInt, scalar.OpSub: asm.SubtractInt, scalar.OpMul: asm.MultiplyInt,
	scalar.OpAnd: asm.BitsAnd, scalar.OpOr: asm.BitsOr, scalar.OpXor: asm.BitsXor,
	scalar.OpMin: asm.MinInt, scalar.OpMax: asm.MaxInt,
	scalar.OpShl: asm.ShiftLeftEach, scalar.OpShr: asm.ShiftSignedEach,
}

// uintOps are the unsigned operations that differ.
var uintOps = map[scalar.Op]asm.Opcode{
	scalar.OpMin: asm.MinUint, scalar.OpMax: asm.MaxUint, scalar.OpShr: asm.ShiftRightEach,
}

// maskOps are binary operations on mask registers.
var maskOps = map[scalar.Op]asm.Opcode{
	scalar.OpAnd: asm.MaskAnd, scalar.OpOr: asm.MaskOr, scalar.OpXor: asm.MaskXor, scalar.OpNe: asm.MaskXor,
}

// boolOps are binary operations on booleans as lanes of all ones or zeros.
var boolOps = map[scalar.Op]asm.Opcode{
	scalar.OpAnd: asm.BitsAnd, scalar.OpOr: asm.BitsOr, scalar.OpXor: asm.BitsXor, scalar.OpNe: asm.BitsXor,
}

// roundings are the immediates of rounding modes, with inexact exceptions suppressed.
var roundings = map[scalar.Op]int{scalar.OpRound: 8, scalar.OpFloor: 9, scalar.OpCeil: 10, scalar.OpTrunc: 11}

// The predicates of the comparisons from OpEq to OpGe; those of floats are quiet, and ordered
// except Ne.
var (
	realPredicates = [...]int{0x00, 0x04, 0x11, 0x12, 0x1e, 0x1d}
	intPredicates  = [...]int{0, 4, 1, 2, 6, 5}
)
