package main

// dots writes the kernel that multiplies four rows with a vector: each row has two
// accumulators.
func dots(f *file, s *set, double bool) {
	suffix, size, t := "S", 4, "float32"
	if double {
		suffix, size, t = "D", 8, "float64"
	}
	name := "dots" + s.name + map[bool]string{false: "f32", true: "f64"}[double]
	f.declare(name, "k int, a *%[1]s, aRow int, x, sums *%[1]s", t)
	f.line("TEXT ·%s(SB), NOSPLIT, $0-40", name)
	f.op("MOVQ k+0(FP), AX")
	f.op("MOVQ a+8(FP), SI")
	f.op("MOVQ aRow+16(FP), R8")
	f.op("MOVQ x+24(FP), DI")
	f.op("MOVQ sums+32(FP), DX")
	f.op("SHLQ $%d, R8", map[int]int{4: 2, 8: 3}[size])
	f.op("LEAQ (R8)(R8*2), R12")
	for i := range 8 {
		f.op("VXORPS %[1]s%[2]d, %[1]s%[2]d, %[1]s%[2]d", s.reg, i)
	}
	f.label("loop")
	for v := range 2 {
		f.op("VMOVUP%s %d(DI), %s%d", suffix, v*s.bytes, s.reg, 8+v)
	}
	for i, row := range []string{"(SI)", "(SI)(R8*1)", "(SI)(R8*2)", "(SI)(R12*1)"} {
		for v := range 2 {
			f.op("VFMADD231P%s %d%s, %s%d, %s%d", suffix, v*s.bytes, row, s.reg, 8+v, s.reg, 2*i+v)
		}
	}
	f.op("ADDQ $%d, SI", 2*s.bytes)
	f.op("ADDQ $%d, DI", 2*s.bytes)
	f.op("SUBQ $%d, AX", 2*s.bytes/size)
	f.op("JNZ loop")
	for i := range 8 {
		f.op("VMOVUP%s %s%d, %d(DX)", suffix, s.reg, i, i*s.bytes)
	}
	f.op("VZEROUPPER")
	f.op("RET")
}
