package main

import (
	"fmt"
	"strings"
)

// transpose writes the kernel that transposes squares of size×size elements of 32 or 64 bits.
// A column of sixteen fills a cache line: it is written at once, not in halves between which
// the line may be evicted.
func transpose(f *file, s *set, bits, size int) {
	name := fmt.Sprintf("transpose%sb%dx%d", s.name, bits, size)
	f.declare(name, "squares int, from unsafe.Pointer, fromRow, fromStep int, to unsafe.Pointer, toRow, toStep int")
	f.line("TEXT ·%s(SB), NOSPLIT, $0-56", name)
	for i, arg := range []string{"squares AX", "from SI", "fromRow R8", "fromStep R12", "to DI", "toRow R9", "toStep R13"} {
		var from, to string
		fmt.Sscan(arg, &from, &to)
		f.op("MOVQ %s+%d(FP), %s", from, 8*i, to)
		if strings.HasSuffix(from, "Row") || strings.HasSuffix(from, "Step") {
			f.op("SHLQ $%d, %s", map[int]int{32: 2, 64: 3}[bits], to)
		}
	}
	f.op("LEAQ (R8)(R8*2), R10")
	f.op("LEAQ (R9)(R9*2), R11")
	f.label("loop")
	f.op("MOVQ SI, BX")
	f.op("MOVQ DI, CX")
	switch {
	case bits == 64 && s == avx512:
		transpose8Doubles(f)
	case bits == 64:
		transpose4Doubles(f)
	case s == avx512:
		transpose16(f)
	case size == 8:
		transpose8(f)
	default:
		f.op("LEAQ %d(DI), DX", s.bytes)
		transpose8(f)
		f.op("XCHGQ CX, DX") // first the columns to the right, then the rows below
		transpose8(f)
		f.op("LEAQ %d(SI), BX", s.bytes)
		f.op("MOVQ DX, CX")
		f.op("LEAQ %d(DX), DX", s.bytes)
		transpose8(f)
		f.op("MOVQ DX, CX")
		transpose8(f)
	}
	f.op("ADDQ R12, SI")
	f.op("ADDQ R13, DI")
	f.op("DECQ AX")
	f.op("JNZ loop")
	f.op("VZEROUPPER")
	f.op("RET")
}

// loadRows loads rows at BX into registers, and advances BX.
func loadRows(f *file, reg string, count int) {
	for i := 0; i < count; i += 4 {
		for k, row := range []string{"(BX)", "(BX)(R8*1)", "(BX)(R8*2)", "(BX)(R10*1)"} {
			f.op("VMOVUPS %s, %s%d", row, reg, i+k)
		}
		f.op("LEAQ (BX)(R8*4), BX")
	}
}

// storeRows stores registers from first on as rows at CX, and advances CX.
func storeRows(f *file, reg string, first, count int) {
	for i := 0; i < count; i += 4 {
		for k, row := range []string{"(CX)", "(CX)(R9*1)", "(CX)(R9*2)", "(CX)(R11*1)"} {
			f.op("VMOVUPS %s%d, %s", reg, first+i+k, row)
		}
		f.op("LEAQ (CX)(R9*4), CX")
	}
}

// transposeLanes4 transposes 4×4 elements in each 128-bit lane of the registers from 0 on, through
// as many others: register 4i+j becomes column j of rows 4i to 4i+3.
func transposeLanes4(f *file, reg string, count int) {
	for i := 0; i < count; i += 2 {
		f.op("VUNPCKLPS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", reg, i+1, i, count+i)
		f.op("VUNPCKHPS %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", reg, i+1, i, count+1+i)
	}
	for i := range count {
		from := count + i/4*4 + i%4/2
		f.op("VSHUFPS $%#[5]x, %[1]s%[2]d, %[1]s%[3]d, %[1]s%[4]d", reg, from+2, from, i, []int{0x44, 0xee}[i%2])
	}
}

// transpose16 transposes 16×16 elements.
func transpose16(f *file) {
	loadRows(f, "Z", 16)
	transposeLanes4(f, "Z", 16)
	const even, odd = 0x88, 0xdd // lanes of two registers
	for j := range 4 {
		for half := range 2 {
			f.op("VSHUFF32X4 $%#x, Z%d, Z%d, Z%d", even, 8*half+4+j, 8*half+j, 16+8*half+j)
			f.op("VSHUFF32X4 $%#x, Z%d, Z%d, Z%d", odd, 8*half+4+j, 8*half+j, 20+8*half+j)
		}
	}
	for l := range 4 { // the columns of lane l
		for j := range 4 {
			from := 16 + 4*(l%2) + j
			f.op("VSHUFF32X4 $%#x, Z%d, Z%d, Z%d", []int{even, odd}[l/2], from+8, from, 4*l+j)
		}
	}
	storeRows(f, "Z", 0, 16)
}

// transpose8 transposes 8×8 elements.
func transpose8(f *file) {
	loadRows(f, "Y", 8)
	transposeLanes4(f, "Y", 8)
	for i := range 8 {
		f.op("VPERM2F128 $%#x, Y%d, Y%d, Y%d", []int{0x20, 0x31}[i/4], i%4+4, i%4, 8+i)
	}
	storeRows(f, "Y", 8, 8)
}

// transpose8Doubles transposes 8×8 elements of 64 bits.
func transpose8Doubles(f *file) {
	loadRows(f, "Z", 8)
	for i := range 4 { // even columns of two rows from 8 on, odd ones from 12 on
		f.op("VUNPCKLPD Z%d, Z%d, Z%d", 2*i+1, 2*i, 8+i)
		f.op("VUNPCKHPD Z%d, Z%d, Z%d", 2*i+1, 2*i, 12+i)
	}
	const even, odd = 0x88, 0xdd // lanes of two registers
	for i := range 2 {
		pairs, halves := 8+4*i, 16+4*i
		for j := range 2 {
			f.op("VSHUFF64X2 $%#x, Z%d, Z%d, Z%d", even, pairs+2*j+1, pairs+2*j, halves+j)
			f.op("VSHUFF64X2 $%#x, Z%d, Z%d, Z%d", odd, pairs+2*j+1, pairs+2*j, halves+2+j)
		}
		for j, lanes := range []int{even, odd} { // columns i, i+2, i+4 and i+6
			f.op("VSHUFF64X2 $%#x, Z%d, Z%d, Z%d", lanes, halves+1, halves, 4*j+i)
			f.op("VSHUFF64X2 $%#x, Z%d, Z%d, Z%d", lanes, halves+3, halves+2, 4*j+2+i)
		}
	}
	storeRows(f, "Z", 0, 8)
}

// transpose4Doubles transposes 4×4 elements of 64 bits.
func transpose4Doubles(f *file) {
	loadRows(f, "Y", 4)
	for i := range 2 {
		f.op("VUNPCKLPD Y%d, Y%d, Y%d", 2*i+1, 2*i, 4+i)
		f.op("VUNPCKHPD Y%d, Y%d, Y%d", 2*i+1, 2*i, 6+i)
	}
	for i := range 4 {
		from := 4 + 2*(i%2)
		f.op("VPERM2F128 $%#x, Y%d, Y%d, Y%d", []int{0x20, 0x31}[i/2], from+1, from, i)
	}
	storeRows(f, "Y", 0, 4)
}
