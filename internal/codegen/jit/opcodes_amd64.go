package jit

import (
	"slices"

	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/scalar"
)

// The instructions, with the manual's names as comments.
var (
	moveIn         = opcode{prefix: pNone, space: m0F, code: 0x10, imm: none}                // VMOVUPS
	moveOut        = opcode{prefix: pNone, space: m0F, code: 0x11, imm: none}                // VMOVUPS
	moveOutFirst   = opcode{prefix: pF3, space: m0F, code: 0x11, imm: none}                  // VMOVSS
	moveAll        = opcode{prefix: pNone, space: m0F, code: 0x28, imm: none}                // VMOVAPS
	broadcast      = opcode{prefix: p66, space: m0F38, code: 0x18, imm: none}                // VBROADCASTSS
	testWords      = opcode{prefix: p66, space: m0F38, code: 0x27, imm: none}                // VPTESTMD
	onesWhere      = opcode{prefix: p66, space: m0F38, code: 0x58, imm: none}                // VPBROADCASTD
	blendMasked    = opcode{prefix: p66, space: m0F38, code: 0x65, imm: none}                // VBLENDMPS
	blendVector    = opcode{prefix: p66, space: m0F3A, code: 0x4a, imm: 0}                   // VBLENDVPS
	maskIn         = opcode{prefix: pNone, space: m0F, code: 0x90, imm: none}                // KMOVW
	maskOut        = opcode{prefix: pNone, space: m0F, code: 0x91, imm: none}                // KMOVW
	maskNot        = opcode{prefix: pNone, space: m0F, code: 0x44, imm: none}                // KNOTW
	bitsAnd        = opcode{prefix: p66, space: m0F, code: 0xdb, imm: none}                  // VPAND
	bitsOr         = opcode{prefix: p66, space: m0F, code: 0xeb, imm: none}                  // VPOR
	bitsXor        = opcode{prefix: p66, space: m0F, code: 0xef, imm: none}                  // VPXOR
	fused213       = opcode{prefix: p66, space: m0F38, code: 0xa8, imm: none}                // VFMADD213PS
	fused231       = opcode{prefix: p66, space: m0F38, code: 0xb8, imm: none}                // VFMADD231PS
	root           = opcode{prefix: pNone, space: m0F, code: 0x51, imm: none}                // VSQRTPS
	roundWide      = opcode{prefix: p66, space: m0F3A, code: 0x08, imm: 0}                   // VRNDSCALEPS, VROUNDPS
	intToFloat     = opcode{prefix: pNone, space: m0F, code: 0x5b, imm: none}                // VCVTDQ2PS
	floatToInt     = opcode{prefix: pF3, space: m0F, code: 0x5b, imm: none}                  // VCVTTPS2DQ
	halfToFloat    = opcode{prefix: p66, space: m0F38, code: 0x13, imm: none}                // VCVTPH2PS
	floatToHalf    = opcode{prefix: p66, space: m0F3A, code: 0x1d, imm: 0}                   // VCVTPS2PH
	widenWords     = opcode{prefix: p66, space: m0F38, code: 0x33, imm: none}                // VPMOVZXWD
	narrowWords    = opcode{prefix: pF3, space: m0F38, code: 0x33, imm: none}                // VPMOVDW
	widenFloats    = opcode{prefix: pNone, space: m0F, code: 0x5a, imm: none}                // VCVTPS2PD
	narrowDoubles  = opcode{prefix: p66, space: m0F, code: 0x5a, imm: none, quad: true}      // VCVTPD2PS
	multiplySigned = opcode{prefix: p66, space: m0F38, code: 0x28, imm: none, quad: true}    // VPMULDQ
	widenUnsigned  = opcode{prefix: p66, space: m0F38, code: 0x35, imm: none}                // VPMOVZXDQ
	widenSigned    = opcode{prefix: p66, space: m0F38, code: 0x25, imm: none}                // VPMOVSXDQ
	shiftQuad      = opcode{prefix: p66, space: m0F, code: 0x73, imm: 0}                     // VPSLLQ, VPSRLQ by the register field
	lowerWords     = opcode{prefix: pNone, space: m0F, code: 0xc6, imm: 0x88}                // VSHUFPS
	narrowQuads    = opcode{prefix: pF3, space: m0F38, code: 0x35, imm: none}                // VPMOVQD
	narrowToBytes  = opcode{prefix: pF3, space: m0F38, code: 0x31, imm: none}                // VPMOVDB
	packBytes      = opcode{prefix: p66, space: m0F, code: 0x67, imm: none}                  // VPACKUSWB
	pairWords      = opcode{prefix: p66, space: m0F, code: 0x70, imm: 0x08}                  // VPSHUFD
	moveOutQuad    = opcode{prefix: p66, space: m0F, code: 0xd6, imm: none}                  // VMOVQ
	packWords      = opcode{prefix: p66, space: m0F38, code: 0x2b, imm: none}                // VPACKUSDW
	permuteQuad    = opcode{prefix: p66, space: m0F3A, code: 0x00, imm: 0xd8, quadVEX: true} // VPERMQ
	compareReal    = opcode{prefix: pNone, space: m0F, code: 0xc2, imm: 0}                   // VCMPPS
	compareInt     = opcode{prefix: p66, space: m0F3A, code: 0x1f, imm: 0}                   // VPCMPD
	compareUint    = opcode{prefix: p66, space: m0F3A, code: 0x1e, imm: 0}                   // VPCMPUD
	equalInt       = opcode{prefix: p66, space: m0F, code: 0x76, imm: none}                  // VPCMPEQD
	greaterInt     = opcode{prefix: p66, space: m0F, code: 0x66, imm: none}                  // VPCMPGTD
	subtractInt    = opcode{prefix: p66, space: m0F, code: 0xfa, imm: none}                  // VPSUBD
	addInt         = opcode{prefix: p66, space: m0F, code: 0xfe, imm: none}                  // VPADDD
	minFloat       = opcode{prefix: pNone, space: m0F, code: 0x5d, imm: none}                // VMINPS
	maxFloat       = opcode{prefix: pNone, space: m0F, code: 0x5f, imm: none}                // VMAXPS
	scaleFloat     = opcode{prefix: p66, space: m0F38, code: 0x2c, imm: none}                // VSCALEFPS
	multiplyHalves = opcode{prefix: p66, space: m0F, code: 0xf4, imm: none, quad: true}      // VPMULUDQ
	absInt         = opcode{prefix: p66, space: m0F38, code: 0x1e, imm: none}                // VPABSD
	alignWords     = opcode{prefix: p66, space: m0F3A, code: 0x03, imm: 0}                   // VALIGND
	swapHalves     = opcode{prefix: p66, space: m0F3A, code: 0x06, imm: 0x01}                // VPERM2F128
	permuteFour    = opcode{prefix: p66, space: m0F3A, code: 0x04, imm: 0}                   // VPERMILPS
	shiftByByte    = opcode{prefix: p66, space: m0F, code: 0x72, imm: 0}                     // VPSLLD, VPSRLD, VPSRAD, VPROLD by the register field
)

// The register fields of shiftByByte.
const (
	rotateLeft  = 1
	shiftRight  = 2
	shiftSigned = 4
	shiftLeft   = 6
)

// floatOps are binary operations on floats.
var floatOps = map[scalar.Op]opcode{
	scalar.OpAdd: {prefix: pNone, space: m0F, code: 0x58, imm: none}, // VADDPS
	scalar.OpMul: {prefix: pNone, space: m0F, code: 0x59, imm: none}, // VMULPS
	scalar.OpSub: {prefix: pNone, space: m0F, code: 0x5c, imm: none}, // VSUBPS
	scalar.OpDiv: {prefix: pNone, space: m0F, code: 0x5e, imm: none}, // VDIVPS
}

// widenings load narrower integers as 32-bit lanes.
var widenings = map[dtype.DType]opcode{
	dtype.I8:  {prefix: p66, space: m0F38, code: 0x21, imm: none}, // VPMOVSXBD
	dtype.I16: {prefix: p66, space: m0F38, code: 0x23, imm: none}, // VPMOVSXWD
	dtype.U8:  {prefix: p66, space: m0F38, code: 0x31, imm: none}, // VPMOVZXBD
	dtype.U16: widenWords,
}

// Shifts of each lane by its own count.
var (
	shiftLeftEach  = opcode{prefix: p66, space: m0F38, code: 0x47, imm: none} // VPSLLVD
	shiftRightEach = opcode{prefix: p66, space: m0F38, code: 0x45, imm: none} // VPSRLVD
)

// intOps are binary operations on integers, signed where it matters.
var intOps = map[scalar.Op]opcode{
	scalar.OpAdd: addInt,
	scalar.OpSub: subtractInt,
	scalar.OpMul: {prefix: p66, space: m0F38, code: 0x40, imm: none}, // VPMULLD
	scalar.OpAnd: bitsAnd,
	scalar.OpOr:  bitsOr,
	scalar.OpXor: bitsXor,
	scalar.OpMin: {prefix: p66, space: m0F38, code: 0x39, imm: none}, // VPMINSD
	scalar.OpMax: {prefix: p66, space: m0F38, code: 0x3d, imm: none}, // VPMAXSD
	scalar.OpShl: shiftLeftEach,
	scalar.OpShr: {prefix: p66, space: m0F38, code: 0x46, imm: none}, // VPSRAVD
}

// uintOps are the unsigned operations that differ.
var uintOps = map[scalar.Op]opcode{
	scalar.OpMin: {prefix: p66, space: m0F38, code: 0x3b, imm: none}, // VPMINUD
	scalar.OpMax: {prefix: p66, space: m0F38, code: 0x3f, imm: none}, // VPMAXUD
	scalar.OpShr: shiftRightEach,
}

// maskOps are binary operations on mask registers.
var maskOps = map[scalar.Op]opcode{
	scalar.OpAnd: {prefix: pNone, space: m0F, code: 0x41, imm: none}, // KANDW
	scalar.OpOr:  {prefix: pNone, space: m0F, code: 0x45, imm: none}, // KORW
	scalar.OpXor: {prefix: pNone, space: m0F, code: 0x47, imm: none}, // KXORW
	scalar.OpNe:  {prefix: pNone, space: m0F, code: 0x47, imm: none},
}

// boolOps are binary operations on booleans as lanes of all ones or zeros.
var boolOps = map[scalar.Op]opcode{
	scalar.OpAnd: bitsAnd, scalar.OpOr: bitsOr, scalar.OpXor: bitsXor, scalar.OpNe: bitsXor,
}

// roundings are the immediates of rounding modes, with inexact exceptions suppressed.
var roundings = map[scalar.Op]int{scalar.OpRound: 8, scalar.OpFloor: 9, scalar.OpCeil: 10, scalar.OpTrunc: 11}

// The predicates of the comparisons from OpEq to OpGe; those of floats are quiet, and ordered
// except Ne.
var (
	realPredicates = [...]int{0x00, 0x04, 0x11, 0x12, 0x1e, 0x1d}
	intPredicates  = [...]int{0, 4, 1, 2, 6, 5}
)

// doubled returns the instruction for 64-bit lanes. Some differ in prefix or opcode, the
// others in the W bit only.
func (o opcode) doubled() opcode {
	type key struct{ prefix, space, code byte }
	at := key{o.prefix, o.space, o.code}
	code, other := map[key]byte{
		{p66, m0F38, 0x18}: 0x19, // VBROADCASTSD
		{p66, m0F3A, 0x4a}: 0x4b, // VBLENDVPD
		{p66, m0F3A, 0x08}: 0x09, // VRNDSCALEPD, VROUNDPD
		{p66, m0F3A, 0x04}: 0x05, // VPERMILPD
		{p66, m0F38, 0x58}: 0x59, // VPBROADCASTQ
		{p66, m0F, 0xfe}:   0xd4, // VPADDQ
		{p66, m0F, 0xfa}:   0xfb, // VPSUBQ
	}[at]
	switch {
	case other:
		o.code = code
	case at == key{pF3, m0F, 0x11}:
		o.prefix = pF2 // VMOVSD
	case o.prefix == pNone:
		o.prefix = p66
	}
	switch at {
	case key{p66, m0F, equalInt.code}:
		o.space, o.code = m0F38, 0x29 // VPCMPEQQ
	case key{p66, m0F, greaterInt.code}:
		o.space, o.code = m0F38, 0x37 // VPCMPGTQ
	}
	o.quad = true
	o.quadVEX = o.space == m0F38 && slices.Contains([]byte{fused213.code, fused231.code, shiftLeftEach.code, shiftRightEach.code}, o.code)
	return o
}
