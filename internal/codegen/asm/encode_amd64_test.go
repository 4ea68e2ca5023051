package asm

import (
	"encoding/hex"
	"testing"
)

// encodings are instructions and their bytes as llvm-mc of LLVM 14.0.6 writes them.
var encodings = []struct {
	text, bytes string
	write       func(e *Encoder)
}{
	{"vmovups zmm17, [rax]", "62e17c481008", func(e *Encoder) { e.Wide = true; e.Vector(MoveIn, 17, 0, At(AX, 0)) }},
	{"vmovups [r9 + 64], zmm3", "62d17c48115901", func(e *Encoder) { e.Wide = true; e.Vector(MoveOut, 3, 0, At(R9, 64)) }},
	{"vmovups zmm3, [r12]", "62d17c48101c24", func(e *Encoder) { e.Wide = true; e.Vector(MoveIn, 3, 0, At(R12, 0)) }},
	{"vmovups zmm3, [r13]", "62d17c48105d00", func(e *Encoder) { e.Wide = true; e.Vector(MoveIn, 3, 0, At(R13, 0)) }},
	{"vmovups zmm3, [rbp + 100]", "62f17c48109d64000000", func(e *Encoder) { e.Wide = true; e.Vector(MoveIn, 3, 0, At(BP, 100)) }},
	{"vmovupd zmm8 {k1}, [rbx + r15]", "6231fd4910043b", func(e *Encoder) {
		e.Wide = true
		e.Long = true
		e.EVEX(e.Lanes(MoveIn), 8, 0, Operand{Base: BX, Index: R15, Scale: 1}, Masking{Mask: 1})
	}},
	{"vbroadcastss zmm2, dword ptr [rsi + r8*2]", "62b27d48181446", func(e *Encoder) { e.Wide = true; e.Vector(Broadcast, 2, 0, Operand{Base: SI, Index: R8, Scale: 2}) }},
	{"vbroadcastsd zmm2, qword ptr [rsi + 8]", "62f2fd48195601", func(e *Encoder) { e.Wide = true; e.Long = true; e.Vector(Broadcast, 2, 0, At(SI, 8)) }},
	{"vfmadd231ps zmm31, zmm1, zmm20", "62227548b8fc", func(e *Encoder) { e.Wide = true; e.Vector(Fused231, 31, 1, Register(20)) }},
	{"vfmadd231pd zmm31, zmm1, [rdi + 128]", "6262f548b87f02", func(e *Encoder) { e.Wide = true; e.Long = true; e.Vector(Fused231, 31, 1, At(DI, 128)) }},
	{"vdpbf16ps zmm3, zmm1, zmm2", "62f2764852da", func(e *Encoder) { e.Wide = true; e.Vector(PairDots, 3, 1, Register(2)) }},
	{"vpdpbusd zmm1, zmm2, [rdi + 64]", "62f26d48504f01", func(e *Encoder) { e.Wide = true; e.Vector(ByteDots, 1, 2, At(DI, 64)) }},
	{"vaddps zmm4 {k1}, zmm4, [rdi - 64]", "62f15c495867ff", func(e *Encoder) { e.Wide = true; e.EVEX(AddFloat, 4, 4, At(DI, -64), Masking{Mask: 1}) }},
	{"vpmovsxbd zmm5, [rsi + 32]", "62f27d48216e02", func(e *Encoder) { e.Wide = true; e.Vector(WidenInt8, 5, 0, At(SI, 32)) }},
	{"vcvtph2ps zmm9, ymm9", "62527d4813c9", func(e *Encoder) { e.Wide = true; e.Vector(HalfToFloat, 9, 0, Register(9)) }},
	{"vpermps zmm5, zmm7, zmm12", "62d2454816ec", func(e *Encoder) { e.Wide = true; e.Vector(PermuteWords, 5, 7, Register(12)) }},
	{"vshuff64x2 zmm16, zmm8, zmm9, 0x88", "62c3bd4823c188", func(e *Encoder) {
		e.Wide = true
		e.Long = true
		e.Vector(ShuffleQuarters.Imm(0x88), 16, 8, Register(9))
	}},
	{"vunpckhps zmm17, zmm0, zmm1", "62e17c4815c9", func(e *Encoder) { e.Wide = true; e.Vector(InterleaveHigh, 17, 0, Register(1)) }},
	{"vptestmd k1, zmm0, zmm0", "62f27d4827c8", func(e *Encoder) { e.Wide = true; e.EVEX(TestWords, 1, 0, Register(0), Masking{}) }},
	{"vpsrld zmm7, zmm7, 4", "62f1454872d704", func(e *Encoder) { e.Wide = true; e.Shift(ShiftByByte, ShiftRight, 4, 7, 7) }},
	{"vpmaddubsw ymm2, ymm2, [rdi + 64]", "c4e26d045740", func(e *Encoder) { e.Vector(BytePairs, 2, 2, At(DI, 64)) }},
	{"vpmaddwd ymm9, ymm3, ymm15", "c44165f5cf", func(e *Encoder) { e.Vector(ShortPairs, 9, 3, Register(15)) }},
	{"vpaddw ymm2, ymm2, ymm3", "c5edfdd3", func(e *Encoder) { e.Vector(AddShort, 2, 2, Register(3)) }},
	{"vpsignb ymm1, ymm3, ymm2", "c4e26508ca", func(e *Encoder) { e.Vector(ByteSigns, 1, 3, Register(2)) }},
	{"vpabsb ymm2, ymm10", "c4c27d1cd2", func(e *Encoder) { e.Vector(ByteMagnitudes, 2, 0, Register(10)) }},
	{"vmovups ymm3, [rax + 4096]", "c5fc109800100000", func(e *Encoder) { e.Vector(MoveIn, 3, 0, At(AX, 4096)) }},
	{"vmovups ymm9, [rcx + r11]", "c4217c100c19", func(e *Encoder) { e.Vector(MoveIn, 9, 0, Operand{Base: CX, Index: R11, Scale: 1}) }},
	{"vmovups [rsp + 8], xmm9", "c578114c2408", func(e *Encoder) { e.VEX(MoveOut, 9, 0, Stack(0), true) }},
	{"vfmadd231pd ymm12, ymm3, ymm0", "c462e5b8e0", func(e *Encoder) { e.Long = true; e.Vector(Fused231, 12, 3, Register(0)) }},
	{"vmaskmovps ymm1, ymm0, [rdi + 32]", "c4e27d2c4f20", func(e *Encoder) { e.Vector(MaskedIn, 1, 0, At(DI, 32)) }},
	{"vmaskmovpd [rdx], ymm0, ymm5", "c4e27d2f2a", func(e *Encoder) { e.Long = true; e.Vector(MaskedOut, 5, 0, At(DX, 0)) }},
	{"vpshufb ymm1, ymm2, ymm3", "c4e26d00cb", func(e *Encoder) { e.Vector(ShuffleBytes, 1, 2, Register(3)) }},
	{"vpunpcklbw xmm3, xmm0, xmm1", "c5f960d9", func(e *Encoder) { e.VEX(BytesLow, 3, 0, Register(1), true) }},
	{"vmovq xmm0, [rbx]", "c5fa7e03", func(e *Encoder) { e.VEX(MoveInQuad, 0, 0, At(BX, 0), true) }},
	{"vmovhps [rcx], xmm2", "c5f81711", func(e *Encoder) { e.VEX(MoveOutHighQuad, 2, 0, At(CX, 0), true) }},
	{"vperm2f128 ymm8, ymm1, ymm5, 0x31", "c4637506c531", func(e *Encoder) { e.Vector(PermuteHalves.Imm(0x31), 8, 1, Register(5)) }},
	{"vpbroadcastw ymm9, word ptr [rsi]", "c4627d790e", func(e *Encoder) { e.VEX(BroadcastHalf, 9, 0, At(SI, 0), false) }},
	{"vmovq xmm9, r8", "c441f96ec8", func(e *Encoder) { e.VEX(MoveQuad, 9, 0, Register(R8), true) }},
	{"kmovw k1, word ptr [rbx + 8]", "c5f8904b08", func(e *Encoder) { e.VEX(MaskIn, 1, 0, At(BX, 8), true) }},
	{"kortestw k1, k2", "c5f898ca", func(e *Encoder) { e.VEX(MaskTest, 1, 0, Register(2), true) }},
	{"vptest ymm3, ymm4", "c4e27d17dc", func(e *Encoder) { e.Vector(BitsTest, 3, 0, Register(4)) }},
	{"mov rax, [rsi + 8]", "488b4608", func(e *Encoder) { e.General(Move, AX, At(SI, 8)) }},
	{"mov [rsp + 24], r15", "4c897c2418", func(e *Encoder) { e.General(MoveTo, R15, Stack(16)) }},
	{"movsxd r15, dword ptr [r10]", "4d633a", func(e *Encoder) { e.General(LoadInt32, R15, At(R10, 0)) }},
	{"movzx r9d, word ptr [rsi + 34]", "440fb74e22", func(e *Encoder) { e.General(LoadUint16, R9, At(SI, 34)) }},
	{"lea r12, [r8 + 2*r8]", "4f8d2440", func(e *Encoder) { e.General(Address, R12, Operand{Base: R8, Index: R8, Scale: 2}) }},
	{"add rdi, [rsp + 24]", "48037c2418", func(e *Encoder) { e.General(Add, DI, Stack(16)) }},
	{"add rsi, 1000", "4881c6e8030000", func(e *Encoder) { e.AddConst(Register(SI), 1000) }},
	{"sub rax, 4", "4883e804", func(e *Encoder) { e.SubConst(Register(AX), 4) }},
	{"cmp qword ptr [rsi + 96], 0", "48837e6000", func(e *Encoder) { e.CompareConst(At(SI, 96), 0) }},
	{"shl r11, 3", "49c1e303", func(e *Encoder) { e.ShiftLeft(R11, 3) }},
	{"dec rax", "48ffc8", func(e *Encoder) { e.CountDown(Register(AX)) }},
	{"inc dword ptr [rax]", "ff00", func(e *Encoder) { e.CountUp32(At(AX, 0)) }},
	{"vbroadcastf32x4 zmm18, [rax]", "62e27d481a10", func(e *Encoder) { e.Wide = true; e.Vector32(SpreadQuarter, 18, 0, At(AX, 0)) }},
	{"vbroadcastf64x4 zmm3, [rax]", "62f2fd481b18", func(e *Encoder) { e.Wide = true; e.Vector32(SpreadHalf, 3, 0, At(AX, 0)) }},
	{"vinsertf32x4 zmm19, zmm19, [rax + 48], 2", "62e3654018580302", func(e *Encoder) { e.Wide = true; e.Vector32(InsertQuarter.Imm(2), 19, 19, At(AX, 48)) }},
	{"vinsertf64x4 zmm4, zmm4, ymm21, 1", "62b3dd481ae501", func(e *Encoder) { e.Wide = true; e.Vector32(InsertHalf.Imm(1), 4, 4, Register(21)) }},
	{"vextractf32x4 [rax + 16], zmm20, 3", "62e37d4819600103", func(e *Encoder) { e.Wide = true; e.Vector32(ExtractQuarter.Imm(3), 20, 0, At(AX, 16)) }},
	{"vextractf64x4 [rax + 100], zmm6, 1", "62f3fd481bb06400000001", func(e *Encoder) { e.Wide = true; e.Vector32(ExtractHalf.Imm(1), 6, 0, At(AX, 100)) }},
	{"vbroadcastf128 ymm9, [rax]", "c4627d1a08", func(e *Encoder) { e.Vector32(SpreadQuarter, 9, 0, At(AX, 0)) }},
	{"vinsertf128 ymm9, ymm9, [rax + 100], 1", "c4633518486401", func(e *Encoder) { e.Vector32(InsertQuarter.Imm(1), 9, 9, At(AX, 100)) }},
	{"vextractf128 [rax], ymm10, 1", "c4637d191001", func(e *Encoder) { e.Vector32(ExtractQuarter.Imm(1), 10, 0, At(AX, 0)) }},
	{"shr rax, 3", "48c1e803", func(e *Encoder) { e.ShiftRight(AX, 3) }},
	{"imul rax, rax, 4096", "4869c000100000", func(e *Encoder) { e.MultiplyConst(AX, 4096) }},
	{"lea rax, [rdx + 32]", "488d4220", func(e *Encoder) { e.General(Address, AX, At(DX, 32)) }},
	{"vpgatherdd zmm17 {k3}, [r9 + 4*zmm20]", "62c27d43900ca1", func(e *Encoder) { e.Wide = true; e.Gather(17, R9, 20, 4, 3) }},
	{"vpgatherdd zmm31 {k6}, [rbx + 4*zmm12]", "62227d4e903ca3", func(e *Encoder) { e.Wide = true; e.Gather(31, BX, 12, 4, 6) }},
	{"vpgatherqq zmm17 {k3}, [r9 + 8*zmm20]", "62c2fd43910ce1", func(e *Encoder) { e.Wide = true; e.Long = true; e.Gather(17, R9, 20, 8, 3) }},
	{"vpgatherqq ymm8, [r12 + 8*ymm10], ymm13", "c402959104d4", func(e *Encoder) { e.Long = true; e.Gather(8, R12, 10, 8, 13) }},
	{"vpgatherdd ymm8, [r12 + 4*ymm10], ymm13", "c40215900494", func(e *Encoder) { e.Gather(8, R12, 10, 4, 13) }},
	{"kxnorw k3, k3, k3", "c5e446db", func(e *Encoder) { e.VEX(MaskEqual, 3, 3, Register(3), false) }},
	{"prefetcht0 [rdx + 64]", "0f184a40", func(e *Encoder) { e.Prefetch(At(DX, 64)) }},
}

func TestEncodings(t *testing.T) {
	for _, x := range encodings {
		var e Encoder
		x.write(&e)
		if got := hex.EncodeToString(e.text); got != x.bytes {
			t.Errorf("%s is %s, not %s", x.text, got, x.bytes)
		}
	}
}
