package jit

import (
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The instructions, with the manual's names as comments, for vectors of four 32-bit lanes
// unless the comment says otherwise.
const (
	bitsAnd       opcode = 0x4e201c00 // AND
	bitsOr        opcode = 0x4ea01c00 // ORR
	bitsXor       opcode = 0x6e201c00 // EOR
	bitsNot       opcode = 0x6e205800 // NOT
	chooseBits    opcode = 0x6e601c00 // BSL
	insertBits    opcode = 0x6ea01c00 // BIT
	fusedAdd      opcode = 0x4e20cc00 // FMLA
	root          opcode = 0x6ea1f800 // FSQRT
	negateFloat   opcode = 0x6ea0f800 // FNEG
	absFloat      opcode = 0x4ea0f800 // FABS
	intToFloat    opcode = 0x4e21d800 // SCVTF
	floatToInt    opcode = 0x4ea1b800 // FCVTZS
	halfToFloat   opcode = 0x0e217800 // FCVTL
	floatToHalf   opcode = 0x0e216800 // FCVTN
	upperHalves   opcode = 0x0f108400 // SHRN #16
	widenUpper    opcode = 0x2e613800 // SHLL #16
	equalFloat    opcode = 0x4e20e400 // FCMEQ
	greaterFloat  opcode = 0x6ea0e400 // FCMGT
	atLeastFloat  opcode = 0x6e20e400 // FCMGE
	equalInt      opcode = 0x6ea08c00 // CMEQ
	greaterInt    opcode = 0x4ea03400 // CMGT
	atLeastInt    opcode = 0x4ea03c00 // CMGE
	greaterUint   opcode = 0x6ea03400 // CMHI
	atLeastUint   opcode = 0x6ea03c00 // CMHS
	addInt        opcode = 0x4ea08400 // ADD
	subtractInt   opcode = 0x6ea08400 // SUB
	negateInt     opcode = 0x6ea0b800 // NEG
	absInt        opcode = 0x4ea0b800 // ABS
	shiftUint     opcode = 0x6ea04400 // USHL
	shiftInt      opcode = 0x4ea04400 // SSHL
	extract       opcode = 0x6e000000 // EXT
	leftBy        opcode = 0x4f205400 // SHL
	rightUint     opcode = 0x6f400400 // USHR
	rightInt      opcode = 0x4f400400 // SSHR
	rightInsert   opcode = 0x6f404400 // SRI
	loadVector    opcode = 0x3ce07800 // LDR Q, an index of 16 bytes
	storeVector   opcode = 0x3ca07800 // STR Q
	loadNarrow    opcode = 0xfc607800 // LDR D, an index of 8 bytes
	storeNarrow   opcode = 0xfc207800 // STR D
	loadBytes     opcode = 0xbc607800 // LDR S, an index of 4 bytes
	storeBytes    opcode = 0xbc207800 // STR S
	narrowWords   opcode = 0x0e612800 // XTN, from 32 bits
	narrowHalves  opcode = 0x0e212800 // XTN, from 16 bits
	loadAt        opcode = 0x3dc00000 // LDR Q, a distance
	storeAt       opcode = 0x3d800000 // STR Q
	storeWord     opcode = 0xbd000000 // STR S
	storeLong     opcode = 0xfd000000 // STR D
	splatAt       opcode = 0x4d40c800 // LD1R
	splatLong     opcode = 0x4d40cc00 // LD1R of 64 bits
	multiplyInt   opcode = 0x4ea09c00 // MUL
	swapWords     opcode = 0x4ea00800 // REV64
	addPairs      opcode = 0x6ea02800 // UADDLP
	fusedHalves   opcode = 0x2ea08000 // UMLAL
	narrowLanes   opcode = 0x0ea12800 // XTN, from 64 bits
	widenWords    opcode = 0x0f20a400 // SSHLL #0, to 64 bits
	widenFloats   opcode = 0x0e617800 // FCVTL, to 64 bits
	narrowDoubles opcode = 0x0e616800 // FCVTN, from 64 bits
)

// unsigned is the bit that makes an integer instruction unsigned.
const unsigned opcode = 1 << 29

// widenings double the width of lanes.
var widenings = map[dtype.DType]opcode{
	dtype.I8:  0x0f08a400, // SSHLL #0
	dtype.I16: 0x0f10a400, // SSHLL #0
	dtype.U8:  0x0f08a400 | unsigned,
	dtype.U16: 0x0f10a400 | unsigned,
}

// floatOps are binary operations on floats.
var floatOps = map[scalar.Op]opcode{
	scalar.OpAdd: 0x4e20d400, // FADD
	scalar.OpMul: 0x6e20dc00, // FMUL
	scalar.OpSub: 0x4ea0d400, // FSUB
	scalar.OpDiv: 0x6e20fc00, // FDIV
}

// floatUnary are unary operations on floats.
var floatUnary = map[scalar.Op]opcode{
	scalar.OpNeg: negateFloat, scalar.OpAbs: absFloat, scalar.OpSqrt: root,
	scalar.OpRound: 0x4e218800, // FRINTN
	scalar.OpFloor: 0x4e219800, // FRINTM
	scalar.OpCeil:  0x4ea18800, // FRINTP
	scalar.OpTrunc: 0x4ea19800, // FRINTZ
}

// intExtremes and uintExtremes are minimum and maximum of 32-bit integers.
var (
	intExtremes = map[scalar.Op]opcode{
		scalar.OpMin: 0x4ea06c00, // SMIN
		scalar.OpMax: 0x4ea06400, // SMAX
	}
	uintExtremes = map[scalar.Op]opcode{
		scalar.OpMin: 0x6ea06c00, // UMIN
		scalar.OpMax: 0x6ea06400, // UMAX
	}
)

// boolOps are binary operations on booleans as lanes of all ones or zeros.
var boolOps = map[scalar.Op]opcode{
	scalar.OpAnd: bitsAnd, scalar.OpOr: bitsOr, scalar.OpXor: bitsXor, scalar.OpNe: bitsXor,
}

// comparison holds the instructions of a comparison, which may swap its operands and negate
// the result.
type comparison struct {
	float, signed, unsigned opcode
	swapped, negated        bool
}

var comparisons = map[scalar.Op]comparison{
	scalar.OpEq: {equalFloat, equalInt, equalInt, false, false},
	scalar.OpNe: {equalFloat, equalInt, equalInt, false, true},
	scalar.OpLt: {greaterFloat, greaterInt, greaterUint, true, false},
	scalar.OpLe: {atLeastFloat, atLeastInt, atLeastUint, true, false},
	scalar.OpGt: {greaterFloat, greaterInt, greaterUint, false, false},
	scalar.OpGe: {atLeastFloat, atLeastInt, atLeastUint, false, false},
}
