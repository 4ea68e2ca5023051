package main

// packed writes the kernel that multiplies a row of quantised blocks with a vector: an f16
// scale and 32 elements of 8 bits, or of 4 bits with a bias of 8. It has four accumulators.
func packed(f *file, s *set, bits int) {
	p := &packedRow{f: f, set: s, bits: bits, lanes: s.bytes / 4}
	name := map[int]string{8: "dotQ8", 4: "dotQ4"}[bits] + s.name
	f.declare(name, "blocks int, w *byte, x, sums *float32")
	f.line("TEXT ·%s(SB), NOSPLIT, $16-32", name)
	for i, reg := range []string{"AX", "SI", "DI", "DX"} {
		f.op("MOVQ %s+%d(FP), %s", []string{"blocks", "w", "x", "sums"}[i], 8*i, reg)
	}
	p.constants()
	for i := range sums {
		f.op("VXORPS %[1]s%[2]d, %[1]s%[2]d, %[1]s%[2]d", s.reg, i)
	}
	f.op("SUBQ $%d, AX", sums)
	f.op("JL rest")
	f.label("loop")
	p.scales()
	for b := range sums {
		p.block(b, func() { f.op("VBROADCASTSS scales-%d(SP), %s%d", 4*(sums-b), s.reg, p.scale()) })
	}
	p.next(sums)
	f.op("JGE loop")
	f.label("rest")
	f.op("ADDQ $%d, AX", sums)
	f.op("JZ done")
	f.label("one")
	p.block(0, p.oneScale)
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
	ahead         = 8192 // prefetch distance in bytes
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

// The registers after those of accumulators and elements.
func (p *packedRow) scale() int { return 9 }
func (p *packedRow) low() int   { return 10 }
func (p *packedRow) eight() int { return 11 }
func (p *packedRow) table() int { return 12 }

// usesTable reports whether elements of 4 bits are converted by a table in a register of 16
// lanes, which takes one instruction instead of three.
func (p *packedRow) usesTable() bool { return p.bits == 4 && p.set == avx512 }

// constants loads the constants.
func (p *packedRow) constants() {
	f := p.f
	switch {
	case p.usesTable(): // the floats -8 to 7
		f.op("MOVQ $0xfffefdfcfbfaf9f8, R8")
		f.op("VMOVQ R8, X%d", p.table())
		f.op("MOVQ $0x0706050403020100, R8")
		f.op("VPINSRQ $1, R8, X%[1]d, X%[1]d", p.table())
		f.op("VPMOVSXBD X%[1]d, Z%[1]d", p.table())
		f.op("VCVTDQ2PS Z%[1]d, Z%[1]d", p.table())
	case p.bits == 4:
		f.op("MOVL $15, R8")
		p.splat("VPBROADCASTD", p.low())
		f.op("MOVL $8, R8")
		p.splat("VPBROADCASTD", p.eight())
	}
}

// bytes returns the size of a block.
func (p *packedRow) bytes() int { return 2 + blockElements*p.bits/8 }

// splat broadcasts R8.
func (p *packedRow) splat(how string, reg int) {
	p.f.op("VMOVD R8, X%d", reg)
	p.f.op("%s X%d, %s%d", how, reg, p.set.reg, reg)
}

// block adds the products of a block: it sums those of the elements, and multiplies the sum
// by the scale, which scale loads.
func (p *packedRow) block(b int, scale func()) {
	f, reg, at := p.f, p.set.reg, b*p.bytes()
	product := sums + sums
	for v := range blockElements / p.lanes {
		t := sums + v%sums
		p.numbers(at+2, v, t)
		how := "VFMADD231PS"
		if v == 0 {
			how = "VMULPS"
		}
		f.op("%s %d(DI), %s%d, %s%d", how, 4*(b*blockElements+v*p.lanes), reg, t, reg, product)
	}
	scale()
	f.op("VFMADD231PS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", reg, product, p.scale(), b%sums)
}

// scales converts the scales of one block for each accumulator, and stores them: integer
// instructions pack them while the vector units are busy, and a load then broadcasts each at
// no cost.
func (p *packedRow) scales() {
	for b := range sums {
		p.f.op("MOVWLZX %d(SI), R%d", b*p.bytes(), 8+b)
		if b > 0 {
			p.f.op("SHLQ $%d, R%d", 16*b, 8+b)
			p.f.op("ORQ R%d, R8", 8+b)
		}
	}
	p.f.op("VMOVQ R8, X%d", p.scale())
	p.f.op("VCVTPH2PS X%[1]d, X%[1]d", p.scale())
	p.f.op("VMOVUPS X%d, scales-16(SP)", p.scale())
}

// oneScale converts the scale of the current block.
func (p *packedRow) oneScale() {
	p.f.op("VPBROADCASTW (SI), %s%d", p.half(), p.scale())
	p.f.op("VCVTPH2PS %s%d, %s%d", p.half(), p.scale(), p.set.reg, p.scale())
}

// half returns the prefix of registers of half the width.
func (p *packedRow) half() string { return map[*set]string{avx512: "Y", avx2: "X"}[p.set] }

// numbers loads vector v of a block as floats.
func (p *packedRow) numbers(at, v, t int) {
	f, reg := p.f, p.set.reg
	switch {
	case p.usesTable():
		p.lookUp(at, v, t)
		return
	case p.bits == 8:
		f.op("VPMOVSXBD %d(SI), %s%d", at+v*p.lanes, reg, t)
	default:
		p.nibbles(at, v*p.lanes, t)
	}
	f.op("VCVTDQ2PS %[1]s%[2]d, %[1]s%[2]d", reg, t)
}

// lookUp converts half a block by the table. The 16 bytes have the elements of the first half
// in their lower bits, the only ones that a lookup reads, and those of the second above.
func (p *packedRow) lookUp(at, v, t int) {
	const bytes = sums - 1 + sums // the last of the registers for numbers
	if v == 0 {
		p.f.op("VPMOVZXBD %d(SI), Z%d", at, bytes)
	} else {
		p.f.op("VPSRLD $4, Z%[1]d, Z%[1]d", bytes)
	}
	p.f.op("VPERMPS Z%d, Z%d, Z%d", p.table(), bytes, t)
}

// nibbles loads elements of 4 bits as integers.
func (p *packedRow) nibbles(at, first, t int) {
	const half = blockElements / 2
	p.f.op("VPMOVZXBD %d(SI), %s%d", at+first%half, p.set.reg, t)
	if first < half {
		p.f.op("VPAND %[1]s%[2]d, %[1]s%[3]d, %[1]s%[3]d", p.set.reg, p.low(), t)
	} else {
		p.f.op("VPSRLD $4, %[1]s%[2]d, %[1]s%[2]d", p.set.reg, t)
	}
	p.f.op("VPSUBD %[1]s%[2]d, %[1]s%[3]d, %[1]s%[3]d", p.set.reg, p.eight(), t)
}

// next advances by some blocks, and prefetches, as hardware prefetchers stop at pages.
func (p *packedRow) next(blocks int) {
	for at := 0; at < blocks*p.bytes(); at += cacheLine {
		p.f.op("PREFETCHT0 %d(SI)", ahead+at)
	}
	p.f.op("ADDQ $%d, SI", blocks*p.bytes())
	p.f.op("ADDQ $%d, DI", 4*blocks*blockElements)
	p.f.op("SUBQ $%d, AX", blocks)
}
