package main

import "fmt"

// neon is the vectors of arm64, of 16 bytes. The assembler has no sums of vectors,
// which are written as words.
type neon struct {
	f      *file
	double bool
}

// size is that of an element in bytes, vec a register with its lanes.
func (n neon) size() int { return map[bool]int{false: 4, true: 8}[n.double] }

func (n neon) vec(r int) string {
	return fmt.Sprintf("V%d.%s", r, map[bool]string{false: "S4", true: "D2"}[n.double])
}

func (n neon) goType() string { return map[bool]string{false: "float32", true: "float64"}[n.double] }

func (n neon) suffix() string { return map[bool]string{false: "f32", true: "f64"}[n.double] }

// args loads arguments into registers, and converts the given ones from elements to bytes.
func (n neon) args(regs ...string) {
	for i, reg := range regs {
		name, scaled := reg, false
		var to string
		fmt.Sscan(name, &name, &to, &scaled)
		n.f.op("MOVD %s+%d(FP), %s", name, 8*i, to)
		if scaled {
			n.f.op("LSL $%d, %s, %s", map[int]int{4: 2, 8: 3}[n.size()], to, to)
		}
	}
}

// add writes to = to + from.
func (n neon) add(from, to int) {
	word := 0x4e20d400
	if n.double {
		word |= 1 << 22
	}
	n.f.op("WORD $%#x // FADD %s, %s, %s", word|from<<16|to<<5|to, n.vec(to), n.vec(to), n.vec(from))
}

// load loads contiguous vectors, at most four at a time, and advances the address.
func (n neon) load(at string, first, count int) { n.each("VLD1.P", at, first, count) }

func (n neon) store(at string, first, count int) { n.each("VST1.P", at, first, count) }

func (n neon) each(what, at string, first, count int) {
	for ; count > 0; first, count = first+4, count-4 {
		some := min(count, 4)
		list := ""
		for i := range some {
			if i > 0 {
				list += ", "
			}
			list += n.vec(first + i)
		}
		if what == "VLD1.P" {
			n.f.op("%s %d(%s), [%s]", what, 16*some, at, list)
		} else {
			n.f.op("%s [%s], %d(%s)", what, list, 16*some, at)
		}
	}
}

func (n neon) clear(first, count int) {
	for i := range count {
		n.f.op("VEOR V%[1]d.B16, V%[1]d.B16, V%[1]d.B16", first+i)
	}
}

// rowRegs are the addresses of rows of the left factor.
var rowRegs = []string{"R1", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R16", "R17", "R19"}

// neonProduct writes the kernel of product for NEON.
func neonProduct(f *file, double bool, rows, vectors int) {
	n := neon{f, double}
	name := fmt.Sprintf("productNEON%sx%dx%d", n.suffix(), rows, vectors)
	f.declare(name, "k int, a *%[1]s, aRow, aCol int, b *%[1]s, bRow int, c *%[1]s, cRow, last int, add bool", n.goType())
	f.line("TEXT ·%s(SB), NOSPLIT, $0-73", name)
	n.args("k R0", "a R1", "aRow R2 true", "aCol R3 true", "b R4", "bRow R5 true", "c R6", "cRow R7 true")
	for i := 1; i < rows; i++ {
		f.op("ADD R2, %s, %s", rowRegs[i-1], rowRegs[i])
	}
	splat, sum := vectors, vectors+2 // the registers of broadcast elements of a, and of accumulators
	n.clear(sum, rows*vectors)
	f.op("CBZ R0, done")
	f.label("loop")
	f.op("MOVD R4, R20")
	n.load("R20", 0, vectors)
	f.op("ADD R5, R4, R4")
	for i := range rows {
		f.op("VLD1R.P (%s)(R3), [%s]", rowRegs[i], n.vec(splat+i%2))
		for v := range vectors {
			f.op("VFMLA %s, %s, %s", n.vec(v), n.vec(splat+i%2), n.vec(sum+i*vectors+v))
		}
	}
	f.op("SUB $1, R0, R0")
	f.op("CBNZ R0, loop")
	f.label("done")
	f.op("MOVBU add+72(FP), R2")
	f.op("CBZ R2, store")
	f.op("MOVD R6, R4")
	for i := range rows {
		f.op("MOVD R4, R20")
		for v := range vectors {
			n.load("R20", v%2, 1)
			n.add(v%2, sum+i*vectors+v)
		}
		f.op("ADD R7, R4, R4")
	}
	f.label("store")
	for i := range rows {
		f.op("MOVD R6, R20")
		n.store("R20", sum+i*vectors, vectors)
		f.op("ADD R7, R6, R6")
	}
	f.op("RET")
}

// neonDots writes the kernel of dots for NEON.
func neonDots(f *file, double bool) {
	n := neon{f, double}
	name := "dotsNEON" + n.suffix()
	f.declare(name, "k int, a *%[1]s, aRow int, x, sums *%[1]s", n.goType())
	f.line("TEXT ·%s(SB), NOSPLIT, $0-40", name)
	n.args("k R0", "a R1", "aRow R2 true", "x R3", "sums R4")
	for i := 1; i < 4; i++ {
		f.op("ADD R2, %s, %s", rowRegs[i-1], rowRegs[i])
	}
	const x, row, sum = 0, 2, 4
	n.clear(sum, 8)
	f.label("loop")
	n.load("R3", x, 2)
	for i := range 4 {
		n.load(rowRegs[i], row, 2)
		for v := range 2 {
			f.op("VFMLA %s, %s, %s", n.vec(x+v), n.vec(row+v), n.vec(sum+2*i+v))
		}
	}
	f.op("SUB $%d, R0, R0", 2*16/n.size())
	f.op("CBNZ R0, loop")
	n.store("R4", sum, 8)
	f.op("RET")
}
