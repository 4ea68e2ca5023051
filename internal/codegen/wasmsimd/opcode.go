package wasmsimd

// opcode is an instruction: a byte, or a prefix byte and a number.
// The names are those of the WebAssembly specification 3.0, appendix "Index of
// Instructions".
type opcode uint32

// prefixShift is the bit position of the prefix in an opcode.
const prefixShift = 16

const (
	misc   opcode = 0xfc << prefixShift
	vector opcode = 0xfd << prefixShift
)

const blockVoid = 0x40

// Control, locals, memory, constants.
const (
	opLoop         opcode = 0x03
	opIf           opcode = 0x04
	opElse         opcode = 0x05
	opEnd          opcode = 0x0b
	opBranchIf     opcode = 0x0d
	opCall         opcode = 0x10
	opSelect       opcode = 0x1b
	opLocalGet     opcode = 0x20
	opLocalSet     opcode = 0x21
	opLocalTee     opcode = 0x22
	opI32Load      opcode = 0x28
	opI64Load      opcode = 0x29
	opF32Load      opcode = 0x2a
	opF64Load      opcode = 0x2b
	opI32Load8S    opcode = 0x2c
	opI32Load8U    opcode = 0x2d
	opI32Load16S   opcode = 0x2e
	opI32Load16U   opcode = 0x2f
	opI32Store     opcode = 0x36
	opI64Store     opcode = 0x37
	opF32Store     opcode = 0x38
	opF64Store     opcode = 0x39
	opI32Store8    opcode = 0x3a
	opI32Store16   opcode = 0x3b
	opI32Const     opcode = 0x41
	opI64Const     opcode = 0x42
	opF32Const     opcode = 0x43
	opF64Const     opcode = 0x44
	opI32Eqz       opcode = 0x45
	opI32LtS       opcode = 0x48
	opI64Eqz       opcode = 0x50
	opI32Popcnt    opcode = 0x69
	opI32Add       opcode = 0x6a
	opI32Sub       opcode = 0x6b
	opI32Mul       opcode = 0x6c
	opI32And       opcode = 0x71
	opI32Xor       opcode = 0x73
	opI32Shl       opcode = 0x74
	opI64Popcnt    opcode = 0x7b
	opI64Xor       opcode = 0x85
	opI32Extend8S  opcode = 0xc0
	opI32Extend16S opcode = 0xc1
)

// Vectors of 128 bits.
const (
	opV128Load        = vector
	opV128Load16x4S   = vector | 0x03 // four numbers of 16 bits, made 32 bits wide
	opV128Load16x4U   = vector | 0x04
	opV128LoadSplat   = vector | 0x09 // v128.load32_splat
	opV128Store       = vector | 0x0b
	opV128Const       = vector | 0x0c
	opI8x16Shuffle    = vector | 0x0d
	opI32x4Splat      = vector | 0x11
	opF32x4Splat      = vector | 0x13
	opI32x4Extract    = vector | 0x1b
	opI32x4Replace    = vector | 0x1c
	opF32x4Extract    = vector | 0x1f
	opF32x4Replace    = vector | 0x20
	opV128Not         = vector | 0x4d
	opV128And         = vector | 0x4e
	opV128Or          = vector | 0x50
	opV128Xor         = vector | 0x51
	opV128Bitselect   = vector | 0x52
	opV128AnyTrue     = vector | 0x53
	opV128Load8Lane   = vector | 0x54
	opV128Load16Lane  = vector | 0x55
	opV128LoadLane    = vector | 0x56 // v128.load32_lane
	opV128Store8Lane  = vector | 0x58
	opV128Store16Lane = vector | 0x59
	opV128StoreLane   = vector | 0x5a // v128.store32_lane
	opV128Store64Lane = vector | 0x5b
	opV128LoadZero    = vector | 0x5c // v128.load32_zero
	opI32x4Eq         = vector | 0x37
	opI32x4Ne         = vector | 0x38
	opF32x4Ne         = vector | 0x42
	opI16x8ExtendS    = vector | 0x87 // i16x8.extend_low_i8x16_s
	opI16x8ExtendU    = vector | 0x89
	opI32x4ExtendS    = vector | 0xa7 // i32x4.extend_low_i16x8_s
	opI32x4ExtendU    = vector | 0xa9
	opI32x4AllTrue    = vector | 0xa3
	opI32x4Shl        = vector | 0xab
	opI32x4ShrS       = vector | 0xac
	opI32x4Add        = vector | 0xae
	opF32x4Add        = vector | 0xe4
	opF32x4Mul        = vector | 0xe6
	opF32x4Div        = vector | 0xe7
	opF32x4Sqrt       = vector | 0xe3
	opF32x4RelaxMadd  = vector | 0x105
	opF32x4RelaxNmad  = vector | 0x106
)
