package main

// neonPacked writes the kernel of packed for NEON: it widens the elements of a block to
// integers and floats, and scales the sum of their products with x. Instructions that the
// assembler lacks are written as words (Arm Architecture Reference Manual, C7.2).
func neonPacked(f *file, bits int) {
	p := neonBlock{f: f, bits: bits}
	name := map[int]string{8: "dotQ8", 4: "dotQ4"}[bits] + "NEON"
	f.declare(name, "blocks int, w *byte, x, sums *float32")
	f.line("TEXT ·%s(SB), NOSPLIT, $0-32", name)
	neon{f, false}.args("blocks R0", "w R1", "x R2", "sums R3")
	neon{f, false}.clear(neonSum, 1)
	if bits == 4 {
		f.op("VMOVI $15, V%d.B16", neonLow)
		f.op("VMOVI $8, V%d.B16", neonEight)
	}
	f.label("loop")
	p.scale()
	p.bytes()
	for half := range 2 {
		p.products(half)
	}
	f.op("VFMLA V%d.S4, V%d.S4, V%d.S4", neonScale, neonProducts, neonSum)
	f.op("SUB $1, R0, R0")
	f.op("CBNZ R0, loop")
	f.op("VST1 [V%d.S4], (R3)", neonSum)
	f.op("RET")
}

// The registers of the kernel.
const (
	neonSum = iota
	neonProducts
	neonScale
	neonLow
	neonEight
	neonX        = 8  // 4 of them
	neonBytes    = 16 // 2
	neonShorts   = 18 // 2
	neonIntegers = 20 // 4
)

// neonBlock writes the parts of a block.
type neonBlock struct {
	f    *file
	bits int
}

// word writes an instruction with a source and a destination.
func (p neonBlock) word(code, from, to int, text string) {
	p.f.op("WORD $%#x // %s V%d, V%d", code|from<<5|to, text, to, from)
}

// scale broadcasts the scale, and advances to the elements.
func (p neonBlock) scale() {
	p.f.op("WORD $%#x // LDR H%d, (R1)", 0x7d400000|1<<5|neonScale, neonScale)
	p.word(0x1ee24000, neonScale, neonScale, "FCVT S, H:")
	p.f.op("VDUP V%[1]d.S[0], V%[1]d.S4", neonScale)
	p.f.op("ADD $2, R1, R1")
}

// bytes loads the elements as signed bytes.
func (p neonBlock) bytes() {
	low, high := neonBytes, neonBytes+1
	if p.bits == 8 {
		p.f.op("VLD1.P 32(R1), [V%d.B16, V%d.B16]", low, high)
		return
	}
	p.f.op("VLD1.P 16(R1), [V%d.B16]", low)
	p.f.op("VUSHR $4, V%d.B16, V%d.B16", low, high)
	p.f.op("VAND V%[1]d.B16, V%[2]d.B16, V%[2]d.B16", neonLow, low)
	for _, reg := range []int{low, high} {
		p.f.op("VSUB V%[1]d.B16, V%[2]d.B16, V%[2]d.B16", neonEight, reg)
	}
}

// products multiplies half a block with x and accumulates.
func (p neonBlock) products(half int) {
	neon{p.f, false}.load("R2", neonX, 4)
	const toShorts, toIntegers, upper = 0x0f08a400, 0x0f10a400, 1 << 30 // SSHLL, of the upper half
	for i := range 2 {
		p.word(toShorts|i*upper, neonBytes+half, neonShorts+i, "SSHLL")
	}
	for i := range 4 {
		to := neonIntegers + i
		p.word(toIntegers|i%2*upper, neonShorts+i/2, to, "SSHLL")
		p.word(0x4e21d800, to, to, "SCVTF")
		if half == 0 && i == 0 {
			p.f.op("WORD $%#x // FMUL V%d, V%d, V%d", 0x6e20dc00|to<<16|neonX<<5|neonProducts, neonProducts, neonX, to)
			continue
		}
		p.f.op("VFMLA V%d.S4, V%d.S4, V%d.S4", neonX+i, to, neonProducts)
	}
}
