package asm

// The vector instructions, with the manual's names as comments, for vectors of four 32-bit lanes
// unless the comment says otherwise.
const (
	BitsAnd       Opcode = 0x4e201c00 // AND
	BitsOr        Opcode = 0x4ea01c00 // ORR
	BitsXor       Opcode = 0x6e201c00 // EOR
	BitsNot       Opcode = 0x6e205800 // NOT
	ChooseBits    Opcode = 0x6e601c00 // BSL
	InsertBits    Opcode = 0x6ea01c00 // BIT
	FusedAdd      Opcode = 0x4e20cc00 // FMLA
	Root          Opcode = 0x6ea1f800 // FSQRT
	NegateFloat   Opcode = 0x6ea0f800 // FNEG
	AbsFloat      Opcode = 0x4ea0f800 // FABS
	IntToFloat    Opcode = 0x4e21d800 // SCVTF
	FloatToInt    Opcode = 0x4ea1b800 // FCVTZS
	HalfToFloat   Opcode = 0x0e217800 // FCVTL
	FloatToHalf   Opcode = 0x0e216800 // FCVTN
	UpperHalves   Opcode = 0x0f108400 // SHRN #16
	WidenUpper    Opcode = 0x2e613800 // SHLL #16
	EqualFloat    Opcode = 0x4e20e400 // FCMEQ
	GreaterFloat  Opcode = 0x6ea0e400 // FCMGT
	AtLeastFloat  Opcode = 0x6e20e400 // FCMGE
	EqualInt      Opcode = 0x6ea08c00 // CMEQ
	GreaterInt    Opcode = 0x4ea03400 // CMGT
	AtLeastInt    Opcode = 0x4ea03c00 // CMGE
	GreaterUint   Opcode = 0x6ea03400 // CMHI
	AtLeastUint   Opcode = 0x6ea03c00 // CMHS
	AddInt        Opcode = 0x4ea08400 // ADD
	SubtractInt   Opcode = 0x6ea08400 // SUB
	NegateInt     Opcode = 0x6ea0b800 // NEG
	AbsInt        Opcode = 0x4ea0b800 // ABS
	ShiftUint     Opcode = 0x6ea04400 // USHL
	ShiftInt      Opcode = 0x4ea04400 // SSHL
	Extract       Opcode = 0x6e000000 // EXT
	LeftBy        Opcode = 0x4f205400 // SHL
	RightUint     Opcode = 0x6f400400 // USHR
	RightInt      Opcode = 0x4f400400 // SSHR
	RightInsert   Opcode = 0x6f404400 // SRI
	LoadVector    Opcode = 0x3ce07800 // LDR Q, an index of 16 bytes
	StoreVector   Opcode = 0x3ca07800 // STR Q
	LoadNarrow    Opcode = 0xfc607800 // LDR D, an index of 8 bytes
	StoreNarrow   Opcode = 0xfc207800 // STR D
	LoadBytes     Opcode = 0xbc607800 // LDR S, an index of 4 bytes
	StoreBytes    Opcode = 0xbc207800 // STR S
	NarrowWords   Opcode = 0x0e612800 // XTN, from 32 bits
	NarrowHalves  Opcode = 0x0e212800 // XTN, from 16 bits
	LoadAt        Opcode = 0x3dc00000 // LDR Q, a distance
	StoreAt       Opcode = 0x3d800000 // STR Q
	StoreWord     Opcode = 0xbd000000 // STR S
	StoreLong     Opcode = 0xfd000000 // STR D
	SplatAt       Opcode = 0x4d40c800 // LD1R
	SplatLong     Opcode = 0x4d40cc00 // LD1R of 64 bits
	MultiplyInt   Opcode = 0x4ea09c00 // MUL
	SwapWords     Opcode = 0x4ea00800 // REV64
	AddPairs      Opcode = 0x6ea02800 // UADDLP
	FusedHalves   Opcode = 0x2ea08000 // UMLAL
	NarrowLanes   Opcode = 0x0ea12800 // XTN, from 64 bits
	WidenWords    Opcode = 0x0f20a400 // SSHLL #0, to 64 bits
	WidenFloats   Opcode = 0x0e617800 // FCVTL, to 64 bits
	NarrowDoubles Opcode = 0x0e616800 // FCVTN, from 64 bits
	AddFloat      Opcode = 0x4e20d400 // FADD
	MultiplyFloat Opcode = 0x6e20dc00 // FMUL
	SubtractFloat Opcode = 0x4ea0d400 // FSUB
	DivideFloat   Opcode = 0x6e20fc00 // FDIV
	RoundEven     Opcode = 0x4e218800 // FRINTN
	RoundDown     Opcode = 0x4e219800 // FRINTM
	RoundUp       Opcode = 0x4ea18800 // FRINTP
	RoundToZero   Opcode = 0x4ea19800 // FRINTZ
	MinInt        Opcode = 0x4ea06c00 // SMIN
	MaxInt        Opcode = 0x4ea06400 // SMAX
	MinUint       Opcode = 0x6ea06c00 // UMIN
	MaxUint       Opcode = 0x6ea06400 // UMAX
	MaxPairs      Opcode = 0x6ea0a400 // UMAXP
	MoveOut       Opcode = 0x9e660000 // FMOV X, D
	WidenBytes    Opcode = 0x0f08a400 // SSHLL #0, to 16 bits
	WidenHalves   Opcode = 0x0f10a400 // SSHLL #0, to 32 bits
	SubtractBytes Opcode = 0x6e208400 // SUB, of 8 bits
	UpperNibbles  Opcode = 0x6f0c0400 // USHR #4, of 8 bits
	MultiplyBytes Opcode = 0x0e20c000 // SMULL, to 16 bits
	FusedBytes    Opcode = 0x0e208000 // SMLAL, to 16 bits
	WidenPairs    Opcode = 0x4e602800 // SADDLP, of 16 bits
	FusedPairs    Opcode = 0x4e606800 // SADALP, of 16 bits
	AddPairFloats Opcode = 0x6e20d400 // FADDP
	LoadHalf      Opcode = 0x7d400000 // LDR H
	HalfToSingle  Opcode = 0x1ee24000 // FCVT S, H
	SplatFirst    Opcode = 0x4e040400 // DUP, of lane 0
)

// Bits that change an instruction.
const (
	Unsigned  Opcode = 1 << 29 // of a widening: integers are unsigned
	UpperHalf Opcode = 1 << 30 // of a widening, or a product that widens: it reads the upper lanes
)

// Conditions of jumps, by the flags of an instruction before.
const (
	Equal   = 0x0
	AtLeast = 0xa
	Less    = 0xb
	Greater = 0xc
)
