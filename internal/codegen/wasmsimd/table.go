package wasmsimd

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// class is a class of operand types with the same instructions.
type class uint8

const (
	classS32 class = iota // i32
	classU32              // u32, bools, which are 0 or 1, and the bits of narrow floats
	classS64
	classU64
	classF32
	classF64
	classes
)

// classOf returns the class of a supported type.
func classOf(t dtype.DType) class {
	switch t {
	case dtype.I8, dtype.I16, dtype.I32:
		return classS32
	case dtype.I64:
		return classS64
	case dtype.U64:
		return classU64
	case dtype.F32:
		return classF32
	case dtype.F64:
		return classF64
	}
	return classU32
}

// valueTypes are the types of locals by class.
var valueTypes = [classes]valueType{typeI32, typeI32, typeI64, typeI64, typeF32, typeF64}

// forms are the instructions of an operation by the class of its operands, 0
// for none.
type forms [classes]opcode

// byOp is a table by operation: an array, which takes less space in the module than
// code that fills a map.
type byOp[T any] [1 << 8]T

// scalarForms are the operations with a scalar instruction.
var scalarForms = byOp[forms]{
	scalar.OpAdd:   {0x6a, 0x6a, 0x7c, 0x7c, 0x92, 0xa0},
	scalar.OpSub:   {0x6b, 0x6b, 0x7d, 0x7d, 0x93, 0xa1},
	scalar.OpMul:   {0x6c, 0x6c, 0x7e, 0x7e, 0x94, 0xa2},
	scalar.OpDiv:   {0x6d, 0x6e, 0x7f, 0x80, 0x95, 0xa3},
	scalar.OpRem:   {0x6f, 0x70, 0x81, 0x82},
	scalar.OpMin:   {0, 0, 0, 0, 0x96, 0xa4},
	scalar.OpMax:   {0, 0, 0, 0, 0x97, 0xa5},
	scalar.OpAnd:   {0x71, 0x71, 0x83, 0x83},
	scalar.OpOr:    {0x72, 0x72, 0x84, 0x84},
	scalar.OpXor:   {0x73, 0x73, 0x85, 0x85},
	scalar.OpShl:   {0x74, 0x74, 0x86, 0x86},
	scalar.OpShr:   {0x75, 0x76, 0x87, 0x88},
	scalar.OpEq:    {0x46, 0x46, 0x51, 0x51, 0x5b, 0x61},
	scalar.OpNe:    {0x47, 0x47, 0x52, 0x52, 0x5c, 0x62},
	scalar.OpLt:    {0x48, 0x49, 0x53, 0x54, 0x5d, 0x63},
	scalar.OpGt:    {0x4a, 0x4b, 0x55, 0x56, 0x5e, 0x64},
	scalar.OpLe:    {0x4c, 0x4d, 0x57, 0x58, 0x5f, 0x65},
	scalar.OpGe:    {0x4e, 0x4f, 0x59, 0x5a, 0x60, 0x66},
	scalar.OpAbs:   {0, 0, 0, 0, 0x8b, 0x99},
	scalar.OpNeg:   {0, 0, 0, 0, 0x8c, 0x9a},
	scalar.OpCeil:  {0, 0, 0, 0, 0x8d, 0x9b},
	scalar.OpFloor: {0, 0, 0, 0, 0x8e, 0x9c},
	scalar.OpTrunc: {0, 0, 0, 0, 0x8f, 0x9d},
	scalar.OpRound: {0, 0, 0, 0, 0x90, 0x9e},
	scalar.OpSqrt:  {0, 0, 0, 0, 0x91, 0x9f},

	scalar.OpPopCount: {opI32Popcnt, opI32Popcnt, opI64Popcnt, opI64Popcnt},
}

// vectorForms are the operations with an instruction on four lanes.
// Shifts have one count for all lanes.
var vectorForms = byOp[forms]{
	scalar.OpAdd:   {classS32: opI32x4Add, classU32: opI32x4Add, classF32: opF32x4Add},
	scalar.OpSub:   {classS32: vector | 0xb1, classU32: vector | 0xb1, classF32: vector | 0xe5},
	scalar.OpMul:   {classS32: vector | 0xb5, classU32: vector | 0xb5, classF32: opF32x4Mul},
	scalar.OpDiv:   {classF32: opF32x4Div},
	scalar.OpMin:   {classS32: vector | 0xb6, classU32: vector | 0xb7, classF32: vector | 0xe8},
	scalar.OpMax:   {classS32: vector | 0xb8, classU32: vector | 0xb9, classF32: vector | 0xe9},
	scalar.OpAnd:   {classS32: opV128And, classU32: opV128And},
	scalar.OpOr:    {classS32: opV128Or, classU32: opV128Or},
	scalar.OpXor:   {classS32: opV128Xor, classU32: opV128Xor},
	scalar.OpNot:   {classS32: opV128Not, classU32: opV128Not},
	scalar.OpShl:   {classS32: vector | 0xab, classU32: vector | 0xab},
	scalar.OpShr:   {classS32: vector | 0xac, classU32: vector | 0xad},
	scalar.OpEq:    {classS32: opI32x4Eq, classU32: opI32x4Eq, classF32: vector | 0x41},
	scalar.OpNe:    {classS32: opI32x4Ne, classU32: opI32x4Ne, classF32: opF32x4Ne},
	scalar.OpLt:    {classS32: vector | 0x39, classU32: vector | 0x3a, classF32: vector | 0x43},
	scalar.OpGt:    {classS32: vector | 0x3b, classU32: vector | 0x3c, classF32: vector | 0x44},
	scalar.OpLe:    {classS32: vector | 0x3d, classU32: vector | 0x3e, classF32: vector | 0x45},
	scalar.OpGe:    {classS32: vector | 0x3f, classU32: vector | 0x40, classF32: vector | 0x46},
	scalar.OpAbs:   {classS32: vector | 0xa0, classF32: vector | 0xe0},
	scalar.OpNeg:   {classS32: vector | 0xa1, classU32: vector | 0xa1, classF32: vector | 0xe1},
	scalar.OpCeil:  {classF32: vector | 0x67},
	scalar.OpFloor: {classF32: vector | 0x68},
	scalar.OpTrunc: {classF32: vector | 0x69},
	scalar.OpRound: {classF32: vector | 0x6a},
	scalar.OpSqrt:  {classF32: opF32x4Sqrt},
}

// conversions are the conversion instructions from one class to another;
// 0 if the bits are the same. Floats saturate when converted to integers, NaN becomes 0.
var conversions = [classes][classes]opcode{
	classS32: {classS64: 0xac, classU64: 0xac, classF32: 0xb2, classF64: 0xb7},
	classU32: {classS64: 0xad, classU64: 0xad, classF32: 0xb3, classF64: 0xb8},
	classS64: {classS32: 0xa7, classU32: 0xa7, classF32: 0xb4, classF64: 0xb9},
	classU64: {classS32: 0xa7, classU32: 0xa7, classF32: 0xb5, classF64: 0xba},
	classF32: {classS32: misc, classU32: misc | 1, classS64: misc | 4, classU64: misc | 5, classF64: 0xbb},
	classF64: {classS32: misc | 2, classU32: misc | 3, classS64: misc | 6, classU64: misc | 7, classF32: 0xb6},
}

// reinterpretations reinterpret the bits of an operand, by its class.
var reinterpretations = [classes]opcode{
	classS32: 0xbe, classU32: 0xbe, classS64: 0xbf, classU64: 0xbf, classF32: 0xbc, classF64: 0xbd,
}

// vectorConversions are conversions on four lanes.
var vectorConversions = [classes][classes]opcode{
	classS32: {classF32: vector | 0xfa},
	classU32: {classF32: vector | 0xfb},
	classF32: {classS32: vector | 0xf8, classU32: vector | 0xf9},
}

// loads and stores of an element by its class; a bool is a word.
var (
	loads  = forms{opI32Load, opI32Load, opI64Load, opI64Load, opF32Load, opF64Load}
	stores = forms{opI32Store, opI32Store, opI64Store, opI64Store, opF32Store, opF64Store}
)

// mathNames are the functions of JavaScript's Math that kernels call for f64,
// in the order of their indices. For f32 package scalar has expansions.
var mathNames = []string{
	"exp", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "atan2", "pow",
}

// mathCalls has for each operation on f64 the index of its Math function plus one.
var mathCalls = byOp[uint8]{
	scalar.OpExp: 1, scalar.OpExpm1: 2, scalar.OpLog: 3, scalar.OpLog1p: 4,
	scalar.OpSin: 5, scalar.OpCos: 6, scalar.OpTan: 7, scalar.OpAsin: 8, scalar.OpAcos: 9, scalar.OpAtan: 10,
	scalar.OpSinh: 11, scalar.OpCosh: 12, scalar.OpTanh: 13, scalar.OpAtan2: 14, scalar.OpPow: 15,
}

// firstBinaryCall is the index of the first function with two operands.
const firstBinaryCall = 13
