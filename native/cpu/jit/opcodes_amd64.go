package jit

import "github.com/rlx-go/rlx/ir/scalar"

// The instructions, by what they do; their names stand beside them.
var (
	moveIn       = opcode{pNone, m0F, 0x10, none} // VMOVUPS
	moveOut      = opcode{pNone, m0F, 0x11, none} // VMOVUPS
	moveOutFirst = opcode{pF3, m0F, 0x11, none}   // VMOVSS
	moveAll      = opcode{pNone, m0F, 0x28, none} // VMOVAPS
	broadcast    = opcode{p66, m0F38, 0x18, none} // VBROADCASTSS
	testWords    = opcode{p66, m0F38, 0x27, none} // VPTESTMD
	onesWhere    = opcode{p66, m0F38, 0x58, none} // VPBROADCASTD
	blendMasked  = opcode{p66, m0F38, 0x65, none} // VBLENDMPS
	blendVector  = opcode{p66, m0F3A, 0x4a, 0}    // VBLENDVPS
	maskIn       = opcode{pNone, m0F, 0x90, none} // KMOVW
	maskOut      = opcode{pNone, m0F, 0x91, none} // KMOVW
	maskNot      = opcode{pNone, m0F, 0x44, none} // KNOTW
	bitsAnd      = opcode{p66, m0F, 0xdb, none}   // VPAND
	bitsOr       = opcode{p66, m0F, 0xeb, none}   // VPOR
	bitsXor      = opcode{p66, m0F, 0xef, none}   // VPXOR
	fused213     = opcode{p66, m0F38, 0xa8, none} // VFMADD213PS
	fused231     = opcode{p66, m0F38, 0xb8, none} // VFMADD231PS
	root         = opcode{pNone, m0F, 0x51, none} // VSQRTPS
	roundWide    = opcode{p66, m0F3A, 0x08, 0}    // VRNDSCALEPS, VROUNDPS
	intToFloat   = opcode{pNone, m0F, 0x5b, none} // VCVTDQ2PS
	floatToInt   = opcode{pF3, m0F, 0x5b, none}   // VCVTTPS2DQ
	halfToFloat  = opcode{p66, m0F38, 0x13, none} // VCVTPH2PS
	floatToHalf  = opcode{p66, m0F3A, 0x1d, 0}    // VCVTPS2PH
	widenWords   = opcode{p66, m0F38, 0x33, none} // VPMOVZXWD
	narrowWords  = opcode{pF3, m0F38, 0x33, none} // VPMOVDW
	packWords    = opcode{p66, m0F38, 0x2b, none} // VPACKUSDW
	permuteQuad  = opcode{p66, m0F3A, 0x00, 0xd8} // VPERMQ
	compareReal  = opcode{pNone, m0F, 0xc2, 0}    // VCMPPS
	compareInt   = opcode{p66, m0F3A, 0x1f, 0}    // VPCMPD
	compareUint  = opcode{p66, m0F3A, 0x1e, 0}    // VPCMPUD
	equalInt     = opcode{p66, m0F, 0x76, none}   // VPCMPEQD
	greaterInt   = opcode{p66, m0F, 0x66, none}   // VPCMPGTD
	subtractInt  = opcode{p66, m0F, 0xfa, none}   // VPSUBD
	addInt       = opcode{p66, m0F, 0xfe, none}   // VPADDD
	leastFloat   = opcode{pNone, m0F, 0x5d, none} // VMINPS
	mostFloat    = opcode{pNone, m0F, 0x5f, none} // VMAXPS
	scaleFloat   = opcode{p66, m0F38, 0x2c, none} // VSCALEFPS
	absInt       = opcode{p66, m0F38, 0x1e, none} // VPABSD
	alignWords   = opcode{p66, m0F3A, 0x03, 0}    // VALIGND
	swapHalves   = opcode{p66, m0F3A, 0x06, 0x01} // VPERM2F128
	permuteFour  = opcode{p66, m0F3A, 0x04, 0}    // VPERMILPS
	shiftByByte  = opcode{p66, m0F, 0x72, 0}      // VPSLLD, VPSRLD, VPSRAD, VPROLD by the register field
)

// The register fields of shiftByByte.
const (
	rotateLeft  = 1
	shiftRight  = 2
	shiftSigned = 4
	shiftLeft   = 6
)

// floatOps are operations on two floats.
var floatOps = map[scalar.Op]opcode{
	scalar.OpAdd: {pNone, m0F, 0x58, none}, // VADDPS
	scalar.OpMul: {pNone, m0F, 0x59, none}, // VMULPS
	scalar.OpSub: {pNone, m0F, 0x5c, none}, // VSUBPS
	scalar.OpDiv: {pNone, m0F, 0x5e, none}, // VDIVPS
}

// intOps are operations on two integers, those of signed ones where it matters.
var intOps = map[scalar.Op]opcode{
	scalar.OpAdd: addInt,
	scalar.OpSub: subtractInt,
	scalar.OpMul: {p66, m0F38, 0x40, none}, // VPMULLD
	scalar.OpAnd: bitsAnd,
	scalar.OpOr:  bitsOr,
	scalar.OpXor: bitsXor,
	scalar.OpMin: {p66, m0F38, 0x39, none}, // VPMINSD
	scalar.OpMax: {p66, m0F38, 0x3d, none}, // VPMAXSD
	scalar.OpShl: {p66, m0F38, 0x47, none}, // VPSLLVD
	scalar.OpShr: {p66, m0F38, 0x46, none}, // VPSRAVD
}

// uintOps are those of unsigned ones that differ.
var uintOps = map[scalar.Op]opcode{
	scalar.OpMin: {p66, m0F38, 0x3b, none}, // VPMINUD
	scalar.OpMax: {p66, m0F38, 0x3f, none}, // VPMAXUD
	scalar.OpShr: {p66, m0F38, 0x45, none}, // VPSRLVD
}

// maskOps are operations on two mask registers.
var maskOps = map[scalar.Op]opcode{
	scalar.OpAnd: {pNone, m0F, 0x41, none}, // KANDW
	scalar.OpOr:  {pNone, m0F, 0x45, none}, // KORW
	scalar.OpXor: {pNone, m0F, 0x47, none}, // KXORW
	scalar.OpNe:  {pNone, m0F, 0x47, none},
}

// truthOps are operations on truths as lanes of ones or zeros.
var truthOps = map[scalar.Op]opcode{
	scalar.OpAnd: bitsAnd, scalar.OpOr: bitsOr, scalar.OpXor: bitsXor, scalar.OpNe: bitsXor,
}

// roundings are how a float is rounded, without the exception of being inexact.
var roundings = map[scalar.Op]int{scalar.OpRound: 8, scalar.OpFloor: 9, scalar.OpCeil: 10, scalar.OpTrunc: 11}

// The comparisons from OpEq to OpGe: of floats ordered and quiet but for Ne.
var (
	realPredicates = [...]int{0x00, 0x04, 0x11, 0x12, 0x1e, 0x1d}
	intPredicates  = [...]int{0, 4, 1, 2, 6, 5}
)
