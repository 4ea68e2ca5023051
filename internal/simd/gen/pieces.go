package main

// pieces writes the kernel that fills a vector of each row from a list of pieces, of type
// piece.
func pieces(f *file, s *set) {
	f.declare("pieces"+s.name, "rows int, to *float32, toRow int, from *float32, rowAt *int32, list *piece, count int")
	f.line("TEXT ·pieces%s(SB), NOSPLIT, $0-56", s.name)
	for i, reg := range []string{"AX", "DI", "R8", "SI", "R9", "R10", "R11"} {
		f.op("MOVQ %s+%d(FP), %s", []string{"rows", "to", "toRow", "from", "rowAt", "list", "count"}[i], 8*i, reg)
	}
	f.op("SHLQ $2, R8")
	f.label("row")
	f.op("MOVLQSX (R9), R12")
	f.op("LEAQ (SI)(R12*4), R12")
	f.op("MOVQ R10, BX")
	f.op("MOVQ R11, CX")
	f.op("VXORPS %[1]s0, %[1]s0, %[1]s0", s.reg)
	f.label("piece")
	f.op("MOVQ (BX), R13")
	if s == avx512 {
		f.op("KMOVQ 8(BX), K1")
		f.op("VMOVUPS (R12)(R13*1), K1, Z0")
	} else {
		f.op("VMOVUPS 16(BX), Y1")
		f.op("VMASKMOVPS (R12)(R13*1), Y1, Y2")
		f.op("VORPS Y2, Y0, Y0")
	}
	f.op("ADDQ $48, BX")
	f.op("DECQ CX")
	f.op("JNZ piece")
	f.op("VMOVUPS %s0, (DI)", s.reg)
	f.op("ADDQ R8, DI")
	f.op("ADDQ $4, R9")
	f.op("DECQ AX")
	f.op("JNZ row")
	f.op("VZEROUPPER")
	f.op("RET")
}
