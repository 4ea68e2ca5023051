package main

// transpose writes the kernel that turns eight rows of 32-bit elements into
// columns, eight elements of each at a time.
func transpose(f *file) {
	f.declare("transposeAVX2", "blocks int, from unsafe.Pointer, fromRow int, to unsafe.Pointer, toRow int")
	f.line("TEXT ·transposeAVX2(SB), NOSPLIT, $0-40")
	for i, reg := range []string{"AX", "SI", "R8", "DI", "R9"} {
		f.op("MOVQ %s+%d(FP), %s", []string{"blocks", "from", "fromRow", "to", "toRow"}[i], 8*i, reg)
	}
	f.op("SHLQ $2, R8")
	f.op("SHLQ $2, R9")
	f.op("LEAQ (R8)(R8*2), R10")
	f.op("LEAQ (R9)(R9*2), R11")
	rows := func(base, next, stride, triple string) []string {
		var out []string
		for _, b := range []string{base, next} {
			out = append(out, "("+b+")", "("+b+")("+stride+"*1)", "("+b+")("+stride+"*2)", "("+b+")("+triple+"*1)")
		}
		return out
	}
	f.label("loop")
	f.op("LEAQ (SI)(R8*4), BX")
	for i, row := range rows("SI", "BX", "R8", "R10") {
		f.op("VMOVUPS %s, Y%d", row, i)
	}
	for i := range 4 { // pairs of rows
		f.op("VUNPCKLPS Y%d, Y%d, Y%d", 2*i+1, 2*i, 8+2*i)
		f.op("VUNPCKHPS Y%d, Y%d, Y%d", 2*i+1, 2*i, 9+2*i)
	}
	for i := range 8 { // four rows
		from := 8 + i/4*4 + i%4/2
		f.op("VSHUFPS $%#x, Y%d, Y%d, Y%d", []int{0x44, 0xee}[i%2], from+2, from, i)
	}
	for i := range 8 {
		f.op("VPERM2F128 $%#x, Y%d, Y%d, Y%d", []int{0x20, 0x31}[i/4], i%4+4, i%4, 8+i)
	}
	f.op("LEAQ (DI)(R9*4), BX")
	for i, row := range rows("DI", "BX", "R9", "R11") {
		f.op("VMOVUPS Y%d, %s", 8+i, row)
	}
	f.op("ADDQ $32, SI")
	f.op("LEAQ (DI)(R9*8), DI")
	f.op("DECQ AX")
	f.op("JNZ loop")
	f.op("VZEROUPPER")
	f.op("RET")
}
