package main

// packed writes the kernel that multiplies a row of blocks with a vector: 32 numbers
// of 8 bits, or of 4 bits and 8 too large, after their scale, an f16. Sums stay in
// four registers, which are added up at the end.
func packed(f *file, s *set, bits int) {
	p := &packedRow{f: f, set: s, bits: bits, lanes: s.bytes / 4}
	name := map[int]string{8: "dotQ8", 4: "dotQ4"}[bits] + s.name
	f.declare(name, "blocks int, w *byte, x, sums *float32")
	f.line("TEXT ·%s(SB), NOSPLIT, $0-32", name)
	for i, reg := range []string{"AX", "SI", "DI", "DX"} {
		f.op("MOVQ %s+%d(FP), %s", []string{"blocks", "w", "x", "sums"}[i], 8*i, reg)
	}
	if bits == 4 {
		f.op("MOVL $15, R8")
		p.spread("VPBROADCASTD", p.low())
		f.op("MOVL $8, R8")
		p.spread("VPBROADCASTD", p.eight())
	}
	for i := range sums {
		f.op("VXORPS %[1]s%[2]d, %[1]s%[2]d, %[1]s%[2]d", s.reg, i)
	}
	f.op("SUBQ $%d, AX", sums)
	f.op("JL rest")
	f.label("loop")
	for b := range sums {
		p.block(b)
	}
	p.next(sums)
	f.op("JGE loop")
	f.label("rest")
	f.op("ADDQ $%d, AX", sums)
	f.op("JZ done")
	f.label("one")
	p.block(0)
	p.next(1)
	f.op("JG one")
	f.label("done")
	for _, pair := range [][2]int{{1, 0}, {3, 2}, {2, 0}} {
		f.op("VADDPS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[3]d", s.reg, pair[0], pair[1])
	}
	f.op("VMOVUPS %s0, (DX)", s.reg)
	f.op("VZEROUPPER")
	f.op("RET")
}

const (
	cacheLine     = 64
	ahead         = 8192 // bytes that memory is asked for before it is needed
	sums          = 4
	blockElements = 32
)

// packedRow writes the parts of the kernel.
type packedRow struct {
	f     *file
	set   *set
	bits  int
	lanes int
}

// The registers after those of sums and numbers.
func (p *packedRow) scale() int { return 9 }
func (p *packedRow) low() int   { return 10 }
func (p *packedRow) eight() int { return 11 }

// bytes is the size of a block.
func (p *packedRow) bytes() int { return 2 + blockElements*p.bits/8 }

// spread moves R8 to all lanes of a register.
func (p *packedRow) spread(how string, reg int) {
	p.f.op("VMOVD R8, X%d", reg)
	p.f.op("%s X%d, %s%d", how, reg, p.set.reg, reg)
}

// block adds the products of a block: those of the numbers first, which are scaled
// together.
func (p *packedRow) block(b int) {
	f, reg, at := p.f, p.set.reg, b*p.bytes()
	f.op("VPBROADCASTW %d(SI), %s%d", at, p.half(), p.scale())
	f.op("VCVTPH2PS %s%d, %s%d", p.half(), p.scale(), reg, p.scale())
	product := sums + sums
	for v := range blockElements / p.lanes {
		t := sums + v%sums
		p.numbers(at+2, v, t)
		f.op("VCVTDQ2PS %[1]s%[2]d, %[1]s%[2]d", reg, t)
		how := "VFMADD231PS"
		if v == 0 {
			how = "VMULPS"
		}
		f.op("%s %d(DI), %s%d, %s%d", how, 4*(b*blockElements+v*p.lanes), reg, t, reg, product)
	}
	f.op("VFMADD231PS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", reg, product, p.scale(), b%sums)
}

// half is the name of registers of half the width.
func (p *packedRow) half() string { return map[*set]string{avx512: "Y", avx2: "X"}[p.set] }

// numbers reads vector v of a block as integers.
func (p *packedRow) numbers(at, v, t int) {
	f, reg := p.f, p.set.reg
	if p.bits == 8 {
		f.op("VPMOVSXBD %d(SI), %s%d", at+v*p.lanes, reg, t)
		return
	}
	const half = blockElements / 2
	first := v * p.lanes
	f.op("VPMOVZXBD %d(SI), %s%d", at+first%half, reg, t)
	if first < half {
		and := map[*set]string{avx512: "VPANDD", avx2: "VPAND"}[p.set]
		f.op("%[1]s %[2]s%[3]d, %[2]s%[4]d, %[2]s%[4]d", and, reg, p.low(), t)
	} else {
		f.op("VPSRLD $4, %[1]s%[2]d, %[1]s%[2]d", reg, t)
	}
	f.op("VPSUBD %[1]s%[2]d, %[1]s%[3]d, %[1]s%[3]d", reg, p.eight(), t)
}

// next goes on by some blocks, and asks for memory that processors do not foresee
// at the end of a page.
func (p *packedRow) next(blocks int) {
	for at := 0; at < blocks*p.bytes(); at += cacheLine {
		p.f.op("PREFETCHT0 %d(SI)", ahead+at)
	}
	p.f.op("ADDQ $%d, SI", blocks*p.bytes())
	p.f.op("ADDQ $%d, DI", 4*blocks*blockElements)
	p.f.op("SUBQ $%d, AX", blocks)
}
