package main

import "fmt"

// product is a kernel that computes a tile of rows×(vectors·lanes) elements of
// a product.
type product struct {
	set           *set
	double        bool
	rows, vectors int
	// table makes a kernel whose rows of b are at the offsets of a table.
	table bool
}

func (p product) name() string {
	t := "f32"
	if p.double {
		t = "f64"
	}
	name := "product"
	if p.table {
		name = "tabled"
	}
	return fmt.Sprintf("%s%s%sx%dx%d", name, p.set.name, t, p.rows, p.vectors)
}

// write prints the kernel. Sums stay in registers; an element of a is spread
// over one register and multiplied with the vectors of b, which are in others.
func (p product) write(f *file) {
	suffix, size := "S", 4
	if p.double {
		suffix, size = "D", 8
	}
	reg, spread := p.set.reg, p.vectors // the registers that elements of a are spread over
	sum := func(i, v int) string { return fmt.Sprint(reg, p.vectors+2+i*p.vectors+v) }
	rows := "bRow int"
	if p.table {
		rows = "bRow *int32"
	}
	f.declare(p.name(), "k int, a *%[1]s, aRow, aCol int, b *%[1]s, "+rows+", c *%[1]s, cRow int, add bool",
		map[bool]string{false: "float32", true: "float64"}[p.double])
	f.line("TEXT ·%s(SB), NOSPLIT, $0-65", p.name())
	for i, arg := range []string{"k+0 AX", "a+8 SI", "aRow+16 R8", "aCol+24 R9", "b+32 DI", "bRow+40 R10", "c+48 DX", "cRow+56 R11"} {
		var from, to string
		fmt.Sscan(arg, &from, &to)
		f.op("MOVQ %s(FP), %s", from, to)
		if i == 2 || i == 3 || i == 5 && !p.table || i == 7 {
			f.op("SHLQ $%d, %s", map[int]int{4: 2, 8: 3}[size], to)
		}
	}
	f.op("LEAQ (R8)(R8*2), R12")
	bases := []string{"SI", "R13", "BX", "CX"}[:(p.rows+3)/4]
	for i := 1; i < len(bases); i++ {
		f.op("LEAQ (%s)(R8*4), %s", bases[i-1], bases[i])
	}
	for i := range p.rows {
		for v := range p.vectors {
			f.op("VXORPS %[1]s, %[1]s, %[1]s", sum(i, v))
		}
	}
	for i := range p.rows { // what is added to, which else comes late
		for v := range p.vectors {
			f.op("PREFETCHT0 %d(DX)", v*p.set.bytes)
		}
		if i < p.rows-1 {
			f.op("ADDQ R11, DX")
		}
	}
	f.op("MOVQ c+48(FP), DX")
	f.op("TESTQ AX, AX")
	f.op("JZ done")
	f.label("loop")
	from := "(DI)"
	if p.table {
		f.op("MOVLQSX (R10), R15")
		from = fmt.Sprintf("(DI)(R15*%d)", size)
	}
	for v := range p.vectors {
		f.op("VMOVUP%s %d%s, %s%d", suffix, v*p.set.bytes, from, reg, v)
	}
	if p.table {
		f.op("ADDQ $4, R10")
	} else {
		f.op("ADDQ R10, DI")
	}
	for i := range p.rows {
		at := bases[i/4]
		place := []string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R12*1)"}[i%4]
		f.op("VBROADCASTS%s %s, %s%d", suffix, fmt.Sprintf(place, at), reg, spread+i%2)
		for v := range p.vectors {
			f.op("VFMADD231P%s %s%d, %s%d, %s", suffix, reg, v, reg, spread+i%2, sum(i, v))
		}
	}
	for _, b := range bases {
		f.op("ADDQ R9, %s", b)
	}
	f.op("DECQ AX")
	f.op("JNZ loop")
	f.label("done")
	f.op("CMPB add+64(FP), $0")
	f.op("JEQ store")
	f.op("MOVQ DX, DI")
	for i := range p.rows {
		for v := range p.vectors {
			f.op("VADDP%s %d(DI), %s, %s", suffix, v*p.set.bytes, sum(i, v), sum(i, v))
		}
		f.op("ADDQ R11, DI")
	}
	f.label("store")
	for i := range p.rows {
		for v := range p.vectors {
			f.op("VMOVUP%s %s, %d(DX)", suffix, sum(i, v), v*p.set.bytes)
		}
		f.op("ADDQ R11, DX")
	}
	f.op("VZEROUPPER")
	f.op("RET")
}
