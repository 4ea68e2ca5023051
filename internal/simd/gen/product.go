package main

import "fmt"

// reading is how a kernel addresses the elements of its factors.
type reading uint8

const (
	dense    reading = iota // both by strides
	tabled                  // rows of b by a table of offsets
	gathered                // rows and columns of a by tables of offsets
)

// product is a micro-kernel: it computes a tile of rows×(vectors·lanes) elements of a product.
type product struct {
	set           *set
	double        bool
	rows, vectors int
	reads         reading
}

func (p product) name() string {
	t := "f32"
	if p.double {
		t = "f64"
	}
	return fmt.Sprintf("%s%s%sx%dx%d", []string{"product", "tabled", "gathered"}[p.reads], p.set.name, t, p.rows, p.vectors)
}

// suffix is the last letter of instructions, size the bytes of an element, shift its
// logarithm.
func (p product) suffix() string { return map[bool]string{false: "S", true: "D"}[p.double] }
func (p product) size() int      { return map[bool]int{false: 4, true: 8}[p.double] }
func (p product) shift() int     { return map[bool]int{false: 2, true: 3}[p.double] }

// splat returns the first of two registers with broadcast elements of a. The registers before
// hold vectors of b, except in a kernel of one row, which uses them from memory.
func (p product) splat() int {
	if p.rows == 1 {
		return 0
	}
	return p.vectors
}

// sum returns the accumulator of a vector of a row.
func (p product) sum(i, v int) string {
	return fmt.Sprint(p.set.reg, p.splat()+2+i*p.vectors+v)
}

// write writes the kernel. The accumulators stay in registers; each element of a is broadcast
// and multiplied with the vectors of b.
func (p product) write(f *file) {
	p.begin(f)
	for i := range p.rows {
		for v := range p.vectors {
			f.op("VXORPS %[1]s, %[1]s, %[1]s", p.sum(i, v))
		}
	}
	p.prefetch(f)
	if p.reads == gathered {
		p.gatheredLoop(f)
	} else {
		p.loop(f)
	}
	f.label("done")
	p.finish(f)
}

// begin declares the kernel and loads the address of b.
func (p product) begin(f *file) {
	frame, of := 0, "aRow, aCol int, b *%[1]s, bRow int"
	switch p.reads {
	case tabled:
		of = "aRow, aCol int, b *%[1]s, bRow *int32"
	case gathered:
		frame, of = 16, "aRow, aCol *int32, b *%[1]s, bRow int"
	}
	f.declare(p.name(), "k int, a *%[1]s, "+of+", c *%[1]s, cRow, last int, add bool", map[bool]string{false: "float32", true: "float64"}[p.double])
	f.line("TEXT ·%s(SB), NOSPLIT, $%d-73", p.name(), frame)
	f.op("MOVQ b+32(FP), DI")
}

// result loads the address and the stride of the tile.
func (p product) result(f *file) {
	f.op("MOVQ c+48(FP), DX")
	f.op("MOVQ cRow+56(FP), R11")
	f.op("SHLQ $%d, R11", p.shift())
}

// prefetch prefetches the tile, to which finish may add.
func (p product) prefetch(f *file) {
	p.result(f)
	for i := range p.rows {
		for v := range p.vectors {
			f.op("PREFETCHT0 %d(DX)", v*p.set.bytes)
		}
		if i < p.rows-1 {
			f.op("ADDQ R11, DX")
		}
	}
}

// loop writes the loop over k for strided a.
func (p product) loop(f *file) {
	for i, arg := range []string{"k AX", "a SI", "aRow R8", "aCol R9"} {
		var from, to string
		fmt.Sscan(arg, &from, &to)
		f.op("MOVQ %s+%d(FP), %s", from, 8*i, to)
	}
	f.op("MOVQ bRow+40(FP), R10")
	f.op("SHLQ $%d, R8", p.shift())
	f.op("SHLQ $%d, R9", p.shift())
	if p.reads == dense {
		f.op("SHLQ $%d, R10", p.shift())
	}
	f.op("LEAQ (R8)(R8*2), R12")
	bases := []string{"SI", "R13", "BX", "CX"}[:(p.rows+3)/4]
	for i := 1; i < len(bases); i++ {
		f.op("LEAQ (%s)(R8*4), %s", bases[i-1], bases[i])
	}
	f.op("TESTQ AX, AX")
	f.op("JZ done")
	f.label("loop")
	b, step, of := "(DI)", "R10", "DI"
	if p.reads == tabled {
		f.op("MOVLQSX (R10), R15")
		b, step, of = fmt.Sprintf("(DI)(R15*%d)", p.size()), "$4", "R10"
	}
	p.step(f, b, func(i int) string {
		return fmt.Sprintf([]string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R12*1)"}[i%4], bases[i/4])
	})
	f.op("ADDQ %s, %s", step, of)
	for _, b := range bases {
		f.op("ADDQ R9, %s", b)
	}
	f.op("DECQ AX")
	f.op("JNZ loop")
}

// gatheredRows are the registers with the addresses of the rows of a; the last ones also hold
// what these are computed from.
var gatheredRows = []string{"BX", "CX", "DX", "R9", "R10", "R11", "R12", "R13", "R14", "BP", "R8", "SI"}

// gatheredLoop writes the loop over k for a with tables. The row addresses take all registers:
// the end of the columns and the stride of b are in the frame.
func (p product) gatheredLoop(f *file) {
	f.op("MOVQ k+0(FP), R15")
	f.op("MOVQ aCol+24(FP), AX")
	f.op("LEAQ (AX)(R15*4), R15")
	f.op("MOVQ R15, end-8(SP)")
	f.op("MOVQ bRow+40(FP), R15")
	f.op("SHLQ $%d, R15", p.shift())
	f.op("MOVQ R15, step-16(SP)")
	f.op("MOVQ a+8(FP), SI")
	f.op("MOVQ aRow+16(FP), R8")
	const own = 10 // rows whose registers have no other use
	for i, reg := range gatheredRows[:min(p.rows, own)] {
		f.op("MOVLQSX %d(R8), %s", 4*i, reg)
		f.op("LEAQ (SI)(%s*%d), %s", reg, p.size(), reg)
	}
	if p.rows > own {
		f.op("MOVLQSX %d(R8), R15", 4*own+4)
		f.op("MOVLQSX %d(R8), R8", 4*own)
		f.op("LEAQ (SI)(R8*%d), R8", p.size())
		f.op("LEAQ (SI)(R15*%d), SI", p.size())
	}
	f.op("CMPQ AX, end-8(SP)")
	f.op("JEQ done")
	f.label("loop")
	f.op("MOVLQSX (AX), R15")
	p.step(f, "(DI)", func(i int) string { return fmt.Sprintf("(%s)(R15*%d)", gatheredRows[i], p.size()) })
	f.op("ADDQ step-16(SP), DI")
	f.op("ADDQ $4, AX")
	f.op("CMPQ AX, end-8(SP)")
	f.op("JNE loop")
}

// step multiplies the elements of a column of a with a row of b.
func (p product) step(f *file, b string, a func(row int) string) {
	of := func(v int) string { return fmt.Sprint(p.set.reg, v) }
	if p.rows == 1 {
		of = func(v int) string { return fmt.Sprint(v*p.set.bytes, b) }
	}
	for v := 0; p.rows > 1 && v < p.vectors; v++ {
		f.op("VMOVUP%s %d%s, %s", p.suffix(), v*p.set.bytes, b, of(v))
	}
	for i := range p.rows {
		splat := fmt.Sprint(p.set.reg, p.splat()+i%2)
		f.op("VBROADCASTS%s %s, %s", p.suffix(), a(i), splat)
		for v := range p.vectors {
			f.op("VFMADD231P%s %s, %s, %s", p.suffix(), of(v), splat, p.sum(i, v))
		}
	}
}

// finish stores the tile with the last vectors masked. With AVX2, where masked stores are
// slower, tiles of whole vectors have code of their own.
func (p product) finish(f *file) {
	p.result(f)
	f.op("MOVQ last+64(FP), CX")
	if p.set == avx512 {
		f.op("MOVL $1, AX")
		f.op("SHLL CX, AX")
		f.op("DECL AX")
		f.op("KMOVW AX, K1")
		p.store(f, "", true)
		return
	}
	f.op("CMPQ CX, $%d", p.set.bytes/p.size())
	f.op("JNE partly")
	p.store(f, "", false)
	f.label("partly")
	f.op("SHLQ $%d, CX", p.shift())
	f.op("LEAQ %s+%d(SB), AX", laneMasks, p.set.bytes)
	f.op("SUBQ CX, AX")
	f.op("VMOVUPS (AX), Y0")
	p.store(f, "Partly", true)
}

// store stores the accumulators or adds them to c; with masked, the last vectors under mask K1
// or Y0.
func (p product) store(f *file, label string, masked bool) {
	f.op("CMPB add+72(FP), $0")
	f.op("JEQ store%s", label)
	f.op("MOVQ DX, DI")
	for i := range p.rows {
		for v := range p.vectors {
			at, sum := fmt.Sprintf("%d(DI)", v*p.set.bytes), p.sum(i, v)
			switch {
			case !masked || v < p.vectors-1:
				f.op("VADDP%s %s, %s, %s", p.suffix(), at, sum, sum)
			case p.set == avx512:
				f.op("VADDP%s %s, %s, K1, %s", p.suffix(), at, sum, sum)
			default:
				f.op("VMASKMOVP%s %s, Y0, Y1", p.suffix(), at)
				f.op("VADDP%s Y1, %s, %s", p.suffix(), sum, sum)
			}
		}
		f.op("ADDQ R11, DI")
	}
	f.label("store%s", label)
	for i := range p.rows {
		for v := range p.vectors {
			mask := ""
			if masked && v == p.vectors-1 {
				mask = map[bool]string{true: "K1, ", false: "Y0, "}[p.set == avx512]
			}
			move := "VMOVUP"
			if mask == "Y0, " {
				move = "VMASKMOVP"
			}
			f.op("%s%s %s, %s%d(DX)", move, p.suffix(), p.sum(i, v), mask, v*p.set.bytes)
		}
		f.op("ADDQ R11, DX")
	}
	f.op("VZEROUPPER")
	f.op("RET")
}

// laneMasks is a vector of ones followed by one of zeros.
const laneMasks = "laneMasks<>"

func writeLaneMasks(f *file) {
	f.line("")
	for i := range 8 {
		f.line("DATA %s+%d(SB)/8, $%d", laneMasks, 8*i, []int{-1, 0}[i/4])
	}
	f.line("GLOBL %s(SB), RODATA|NOPTR, $64", laneMasks)
}
