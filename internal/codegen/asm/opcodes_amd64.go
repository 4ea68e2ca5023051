package asm

// Opcode is an instruction without its operands: its prefix and map of opcodes, its byte, and
// the byte after the operands, if it has one.
type Opcode struct {
	form
	imm           int  // or none
	quad, quadVEX bool // the W bit of its EVEX and of its VEX prefix
	doubled       form // for 64-bit lanes
	doubledW      bool // for 64-bit lanes, W is set in the VEX prefix, too
	operand       size // in memory
}

type form struct{ prefix, space, code byte }

const none = -1

// size is the size of an operand in memory.
type size uint8

const (
	vector  size = iota // of a whole vector
	half                // of half a vector
	quarter             // of a quarter
	element             // of one lane
)

func (o Opcode) of(s size) Opcode {
	o.operand = s
	return o
}

// unit returns the bytes that a displacement of a byte counts with an EVEX prefix: the size of
// the operand in memory.
func (o Opcode) unit(broadcast bool) int {
	switch {
	case broadcast || o.operand == element:
		if o.quad {
			return 8
		}
		return 4
	}
	return 64 >> o.operand
}

// The prefixes and maps of opcodes.
const (
	pNone = 0
	p66   = 1
	pF3   = 2
	pF2   = 3

	m0F   = 1
	m0F38 = 2
	m0F3A = 3
)

// op returns an instruction on lanes of 32 bits. That on 64 bits has the W bit, and a prefix
// where the other has none.
func op(prefix, space, code byte) Opcode {
	return Opcode{form: form{prefix, space, code}, imm: none, doubled: form{max(prefix, p66), space, code}}
}

// Imm returns the instruction with the byte after its operands.
func (o Opcode) Imm(x int) Opcode {
	o.imm = x
	return o
}

func (o Opcode) quadEVEX() Opcode {
	o.quad = true
	return o
}

func (o Opcode) quadInVEX() Opcode {
	o.quadVEX = true
	return o
}

// double and doubleAs set an instruction on 64-bit lanes that differs in more than the W bit.
func (o Opcode) double(code byte) Opcode { return o.doubleAs(o.doubled.prefix, o.space, code) }

func (o Opcode) doubleAs(prefix, space, code byte) Opcode {
	o.doubled = form{prefix, space, code}
	return o
}

func (o Opcode) doubleW() Opcode {
	o.doubledW = true
	return o
}

// Vector instructions on 32-bit lanes, with the manual's names; [Encoder.Lanes] returns those on
// 64-bit lanes.
var (
	MoveIn          = op(pNone, m0F, 0x10)                                    // VMOVUPS
	MoveOut         = op(pNone, m0F, 0x11)                                    // VMOVUPS
	MoveOutFirst    = op(pF3, m0F, 0x11).doubleAs(pF2, m0F, 0x11).of(element) // VMOVSS
	MoveAll         = op(pNone, m0F, 0x28)                                    // VMOVAPS
	Broadcast       = op(p66, m0F38, 0x18).double(0x19).of(element)           // VBROADCASTSS
	TestWords       = op(p66, m0F38, 0x27)                                    // VPTESTMD
	OnesWhere       = op(p66, m0F38, 0x58).double(0x59)                       // VPBROADCASTD
	BlendMasked     = op(p66, m0F38, 0x65)                                    // VBLENDMPS
	BlendVector     = op(p66, m0F3A, 0x4a).double(0x4b)                       // VBLENDVPS
	MaskIn          = op(pNone, m0F, 0x90)                                    // KMOVW
	MaskOut         = op(pNone, m0F, 0x91)                                    // KMOVW
	MaskTest        = op(pNone, m0F, 0x98)                                    // KORTESTW
	BitsTest        = op(p66, m0F38, 0x17)                                    // VPTEST
	MaskNot         = op(pNone, m0F, 0x44)                                    // KNOTW
	BitsAnd         = op(p66, m0F, 0xdb)                                      // VPAND
	BitsOr          = op(p66, m0F, 0xeb)                                      // VPOR
	BitsXor         = op(p66, m0F, 0xef)                                      // VPXOR
	Fused213        = op(p66, m0F38, 0xa8).doubleW()                          // VFMADD213PS
	Fused231        = op(p66, m0F38, 0xb8).doubleW()                          // VFMADD231PS
	PairDots        = op(pF3, m0F38, 0x52)                                    // VDPBF16PS
	ByteDots        = op(p66, m0F38, 0x50)                                    // VPDPBUSD
	BytePairs       = op(p66, m0F38, 0x04)                                    // VPMADDUBSW: sums of two products of bytes, without and with a sign
	ShortPairs      = op(p66, m0F, 0xf5)                                      // VPMADDWD: sums of two products of 16 bits
	AddShort        = op(p66, m0F, 0xfd)                                      // VPADDW
	ByteSigns       = op(p66, m0F38, 0x08)                                    // VPSIGNB
	ByteMagnitudes  = op(p66, m0F38, 0x1c)                                    // VPABSB
	Root            = op(pNone, m0F, 0x51)                                    // VSQRTPS
	RoundWide       = op(p66, m0F3A, 0x08).double(0x09)                       // VRNDSCALEPS, VROUNDPS
	IntToFloat      = op(pNone, m0F, 0x5b)                                    // VCVTDQ2PS
	FloatToInt      = op(pF3, m0F, 0x5b)                                      // VCVTTPS2DQ
	HalfToFloat     = op(p66, m0F38, 0x13).of(half)                           // VCVTPH2PS
	FloatToHalf     = op(p66, m0F3A, 0x1d).Imm(0).of(half)                    // VCVTPS2PH
	WidenWords      = op(p66, m0F38, 0x33).of(half)                           // VPMOVZXWD
	NarrowWords     = op(pF3, m0F38, 0x33).of(half)                           // VPMOVDW
	WidenFloats     = op(pNone, m0F, 0x5a).of(half)                           // VCVTPS2PD
	NarrowDoubles   = op(p66, m0F, 0x5a).quadEVEX()                           // VCVTPD2PS
	MultiplySigned  = op(p66, m0F38, 0x28).quadEVEX()                         // VPMULDQ
	WidenUnsigned   = op(p66, m0F38, 0x35).of(half)                           // VPMOVZXDQ
	WidenSigned     = op(p66, m0F38, 0x25).of(half)                           // VPMOVSXDQ
	ShiftQuad       = op(p66, m0F, 0x73)                                      // VPSLLQ, VPSRLQ by the register field
	NarrowQuads     = op(pF3, m0F38, 0x35).of(half)                           // VPMOVQD
	NarrowToBytes   = op(pF3, m0F38, 0x31).of(quarter)                        // VPMOVDB
	PackBytes       = op(p66, m0F, 0x67)                                      // VPACKUSWB
	ShuffleBytes    = op(p66, m0F38, 0x00)                                    // VPSHUFB
	ShuffleInts     = op(p66, m0F, 0x70)                                      // VPSHUFD
	MoveInQuad      = op(pF3, m0F, 0x7e)                                      // VMOVQ
	MoveOutQuad     = op(p66, m0F, 0xd6)                                      // VMOVQ
	MoveOutHighQuad = op(pNone, m0F, 0x17)                                    // VMOVHPS
	PackWords       = op(p66, m0F38, 0x2b)                                    // VPACKUSDW
	PermuteQuad     = op(p66, m0F3A, 0x00).quadInVEX().quadEVEX()             // VPERMQ
	CompareReal     = op(pNone, m0F, 0xc2)                                    // VCMPPS
	CompareInt      = op(p66, m0F3A, 0x1f)                                    // VPCMPD
	CompareUint     = op(p66, m0F3A, 0x1e)                                    // VPCMPUD
	EqualInt        = op(p66, m0F, 0x76).doubleAs(p66, m0F38, 0x29)           // VPCMPEQD
	GreaterInt      = op(p66, m0F, 0x66).doubleAs(p66, m0F38, 0x37)           // VPCMPGTD
	SubtractInt     = op(p66, m0F, 0xfa).double(0xfb)                         // VPSUBD
	AddInt          = op(p66, m0F, 0xfe).double(0xd4)                         // VPADDD
	MinFloat        = op(pNone, m0F, 0x5d)                                    // VMINPS
	MaxFloat        = op(pNone, m0F, 0x5f)                                    // VMAXPS
	ScaleFloat      = op(p66, m0F38, 0x2c)                                    // VSCALEFPS
	MultiplyHalves  = op(p66, m0F, 0xf4).quadEVEX()                           // VPMULUDQ
	AbsInt          = op(p66, m0F38, 0x1e)                                    // VPABSD
	AlignWords      = op(p66, m0F3A, 0x03)                                    // VALIGND
	PermuteFour     = op(p66, m0F3A, 0x04).double(0x05)                       // VPERMILPS
	ShiftByByte     = op(p66, m0F, 0x72)                                      // VPSLLD, VPSRLD, VPSRAD, VPROLD by the register field
	AddFloat        = op(pNone, m0F, 0x58)                                    // VADDPS
	MultiplyFloat   = op(pNone, m0F, 0x59)                                    // VMULPS
	SubtractFloat   = op(pNone, m0F, 0x5c)                                    // VSUBPS
	DivideFloat     = op(pNone, m0F, 0x5e)                                    // VDIVPS
	WidenInt8       = op(p66, m0F38, 0x21).of(quarter)                        // VPMOVSXBD
	WidenInt16      = op(p66, m0F38, 0x23).of(half)                           // VPMOVSXWD
	WidenUint8      = op(p66, m0F38, 0x31).of(quarter)                        // VPMOVZXBD
	MultiplyInt     = op(p66, m0F38, 0x40)                                    // VPMULLD
	MinInt          = op(p66, m0F38, 0x39)                                    // VPMINSD
	MaxInt          = op(p66, m0F38, 0x3d)                                    // VPMAXSD
	MinUint         = op(p66, m0F38, 0x3b)                                    // VPMINUD
	MaxUint         = op(p66, m0F38, 0x3f)                                    // VPMAXUD
	ShiftLeftEach   = op(p66, m0F38, 0x47).doubleW()                          // VPSLLVD
	ShiftRightEach  = op(p66, m0F38, 0x45).doubleW()                          // VPSRLVD
	ShiftSignedEach = op(p66, m0F38, 0x46)                                    // VPSRAVD
	MaskAnd         = op(pNone, m0F, 0x41)                                    // KANDW
	MaskOr          = op(pNone, m0F, 0x45)                                    // KORW
	MaskXor         = op(pNone, m0F, 0x47)                                    // KXORW
	MaskEqual       = op(pNone, m0F, 0x46)                                    // KXNORW
	GatherWords     = op(p66, m0F38, 0x90).double(0x91).doubleW().of(element) // VPGATHERDD
	MaskedIn        = op(p66, m0F38, 0x2c).double(0x2d)                       // VMASKMOVPS
	MaskedOut       = op(p66, m0F38, 0x2e).double(0x2f)                       // VMASKMOVPS
	InterleaveLow   = op(pNone, m0F, 0x14)                                    // VUNPCKLPS
	InterleaveHigh  = op(pNone, m0F, 0x15)                                    // VUNPCKHPS
	BytesLow        = op(p66, m0F, 0x60)                                      // VPUNPCKLBW
	HalvesLow       = op(p66, m0F, 0x61)                                      // VPUNPCKLWD
	HalvesHigh      = op(p66, m0F, 0x69)                                      // VPUNPCKHWD
	ShuffleWords    = op(pNone, m0F, 0xc6)                                    // VSHUFPS
	ShuffleQuarters = op(p66, m0F3A, 0x23)                                    // VSHUFF32X4
	PermuteHalves   = op(p66, m0F3A, 0x06)                                    // VPERM2F128
	PermuteWords    = op(p66, m0F38, 0x16)                                    // VPERMPS
	BroadcastHalf   = op(p66, m0F38, 0x79)                                    // VPBROADCASTW
	SpreadQuarter   = op(p66, m0F38, 0x1a).of(quarter)                        // VBROADCASTF32X4, VBROADCASTF128
	SpreadHalf      = op(p66, m0F38, 0x1b).quadEVEX().of(half)                // VBROADCASTF64X4
	InsertQuarter   = op(p66, m0F3A, 0x18).of(quarter)                        // VINSERTF32X4, VINSERTF128
	InsertHalf      = op(p66, m0F3A, 0x1a).quadEVEX().of(half)                // VINSERTF64X4
	ExtractQuarter  = op(p66, m0F3A, 0x19).of(quarter)                        // VEXTRACTF32X4, VEXTRACTF128
	ExtractHalf     = op(p66, m0F3A, 0x1b).quadEVEX().of(half)                // VEXTRACTF64X4
	MoveQuad        = op(p66, m0F, 0x6e).quadEVEX().quadInVEX()               // VMOVQ from a general register
)

// The register fields of ShiftByByte and ShiftQuad.
const (
	RotateLeft  = 1
	ShiftRight  = 2
	ShiftSigned = 4
	ShiftLeft   = 6
)

// Instructions on 64-bit general registers, whose first operand is also the result.
var (
	Move         = general(0x8b)                                         // MOVQ
	MoveTo       = general(0x89)                                         // MOVQ, to the last operand
	Address      = general(0x8d)                                         // LEAQ
	LoadInt32    = general(0x63)                                         // MOVLQSX
	LoadUint16   = Opcode{form: form{space: m0F, code: 0xb7}, imm: none} // MOVWLZX
	Add          = general(0x03)                                         // ADDQ
	Or           = general(0x0b)                                         // ORQ
	Compare      = general(0x3b)                                         // CMPQ
	Exchange     = general(0x87)                                         // XCHGQ
	Test         = general(0x85)                                         // TESTQ
	countDown    = general(0xff)                                         // DECQ, by the register field
	byConstant   = general(0x81)                                         // ADDQ, SUBQ, CMPQ, by the register field
	byByte       = general(0x83)                                         // the same with a constant of 8 bits
	shiftGeneral = general(0xc1)                                         // SHLQ, SHRQ, by the register field
	multiply     = general(0x69)                                         // IMUL3Q
)

func general(code byte) Opcode { return Opcode{form: form{code: code}, imm: none, quad: true} }

// Conditions of jumps, by the flags of an instruction before.
const (
	Below          = 0x2 // unsigned
	Equal          = 0x4
	NotEqual       = 0x5
	Less           = 0xc
	GreaterOrEqual = 0xd
	Greater        = 0xf
)

// The general registers.
const (
	AX = iota
	CX
	DX
	BX
	SP
	BP
	SI
	DI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)
