package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// widenings double the width of lanes.
var widenings = map[dtype.DType]asm.Opcode{
	dtype.I8: asm.WidenBytes, dtype.I16: asm.WidenHalves,
	dtype.U8: asm.WidenBytes | asm.Unsigned, dtype.U16: asm.WidenHalves | asm.Unsigned,
}

// longWidenings widen 32-bit numbers to 64-bit lanes.
var longWidenings = map[dtype.DType]asm.Opcode{
	dtype.F32: asm.WidenFloats, dtype.I32: asm.WidenWords, dtype.U32: asm.WidenWords | asm.Unsigned,
}

// floatOps are binary operations on floats.
var floatOps = map[scalar.Op]asm.Opcode{
	scalar.OpAdd: asm.AddFloat, scalar.OpMul: asm.MultiplyFloat, scalar.OpSub: asm.SubtractFloat, scalar.OpDiv: asm.DivideFloat,
}

// floatUnary are unary operations on floats.
var floatUnary = map[scalar.Op]asm.Opcode{
	scalar.OpNeg: asm.NegateFloat, scalar.OpAbs: asm.AbsFloat, scalar.OpSqrt: asm.Root,
	scalar.OpRound: asm.RoundEven, scalar.OpFloor: asm.RoundDown, scalar.OpCeil: asm.RoundUp, scalar.OpTrunc: asm.RoundToZero,
}

// intExtremes and uintExtremes are minimum and maximum of 32-bit integers.
var (
	intExtremes  = map[scalar.Op]asm.Opcode{scalar.OpMin: asm.MinInt, scalar.OpMax: asm.MaxInt}
	uintExtremes = map[scalar.Op]asm.Opcode{scalar.OpMin: asm.MinUint, scalar.OpMax: asm.MaxUint}
)

// boolOps are binary operations on booleans as lanes of all ones or zeros.
var boolOps = map[scalar.Op]asm.Opcode{
	scalar.OpAnd: asm.BitsAnd, scalar.OpOr: asm.BitsOr, scalar.OpXor: asm.BitsXor, scalar.OpNe: asm.BitsXor,
}

// comparison holds the instructions of a comparison, which may swap its operands and negate
// the result.
type comparison struct {
	float, signed, unsigned asm.Opcode
	swapped, negated        bool
}

var comparisons = map[scalar.Op]comparison{
	scalar.OpEq: {asm.EqualFloat, asm.EqualInt, asm.EqualInt, false, false},
	scalar.OpNe: {asm.EqualFloat, asm.EqualInt, asm.EqualInt, false, true},
	scalar.OpLt: {asm.GreaterFloat, asm.GreaterInt, asm.GreaterUint, true, false},
	scalar.OpLe: {asm.AtLeastFloat, asm.AtLeastInt, asm.AtLeastUint, true, false},
	scalar.OpGt: {asm.GreaterFloat, asm.GreaterInt, asm.GreaterUint, false, false},
	scalar.OpGe: {asm.AtLeastFloat, asm.AtLeastInt, asm.AtLeastUint, false, false},
}
