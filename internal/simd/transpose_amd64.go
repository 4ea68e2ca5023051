package simd

import (
	"unsafe"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// transposeWriter writes the kernel that transposes squares of elements. Rows are read at BX and
// written at CX.
type transposeWriter struct{ writer }

// transposeCode returns the code that transposes squares of size×size elements of 1, 2, 4 or 8 bytes,
// or nil where there is none. A column of sixteen fills a cache line: it is written at once,
// not in halves between which the line may be evicted.
func transposeCode(level Level, bytes, size int) []byte {
	if bytes <= 2 {
		return narrowCode(bytes)
	}
	fills := bytes*size == level.vectorBytes()
	if !fills && level == AVX512 { // a smaller square
		return transposeCode(AVX2, bytes, size)
	}
	if !fills && bytes == 8 {
		return nil
	}
	t := &transposeWriter{newWriter(level, bytes == 8)}
	square := t.words8
	switch {
	case !fills:
		square = t.quarters
	case t.Long && t.Wide:
		square = t.doubles8
	case t.Long:
		square = t.doubles4
	case t.Wide:
		square = t.words16
	}
	return t.squares(bytes, square)
}

// squares returns the code of a loop over squares of elements of a number of bytes.
func (t *transposeWriter) squares(bytes int, square func()) []byte {
	var x transposeArguments
	t.count()
	stride := func(reg int, offset uintptr) {
		t.argument(reg, offset)
		t.MultiplyConst(reg, bytes)
	}
	stride(asm.R8, unsafe.Offsetof(x.fromRow))
	stride(asm.R12, unsafe.Offsetof(x.fromStep))
	t.argument(asm.DI, unsafe.Offsetof(x.to))
	stride(asm.R9, unsafe.Offsetof(x.toRow))
	stride(asm.R13, unsafe.Offsetof(x.toStep))
	t.argument(asm.SI, unsafe.Offsetof(x.from))
	t.General(asm.Address, asm.R10, indexed(asm.R8, asm.R8, 2))
	t.General(asm.Address, asm.R11, indexed(asm.R9, asm.R9, 2))
	var loop asm.Label
	t.Bind(&loop)
	t.General(asm.Move, asm.BX, asm.Register(asm.SI))
	t.General(asm.Move, asm.CX, asm.Register(asm.DI))
	square()
	t.General(asm.Add, asm.SI, asm.Register(asm.R12))
	t.General(asm.Add, asm.DI, asm.Register(asm.R13))
	t.CountDown(asm.Register(asm.AX))
	t.JumpIf(asm.NotEqual, &loop)
	t.Return()
	return t.Finish()
}

// narrowCode returns the code for 8×8 elements of 1 or 2 bytes, with vectors of 128 bits.
func narrowCode(bytes int) []byte {
	t := &transposeWriter{newWriter(AVX2, false)}
	if bytes == 1 {
		return t.squares(1, t.bytes8)
	}
	return t.squares(2, t.halves8)
}

// bytes8 transposes 8×8 bytes: it interleaves pairs of rows, then the pairs of four, then those of eight rows, of which
// a register has two columns.
func (t *transposeWriter) bytes8() {
	vector := func(o asm.Opcode, to, a, b int) { t.VEX(o, to, a, asm.Register(b), true) }
	t.eachRow(asm.BX, asm.R8, asm.R10, func(i int, row asm.Operand) { t.VEX(asm.MoveInQuad, i, 0, row, true) })
	for i := range 4 {
		vector(asm.BytesLow, 8+i, 2*i, 2*i+1)
	}
	for i := range 2 { // columns 0 to 3 of four rows, then 4 to 7
		vector(asm.HalvesLow, i, 8+2*i, 9+2*i)
		vector(asm.HalvesHigh, 2+i, 8+2*i, 9+2*i)
	}
	for i := range 4 {
		vector([]asm.Opcode{asm.InterleaveLow, asm.InterleaveHigh}[i%2], 8+i, i/2*2, i/2*2+1)
	}
	t.eachRow(asm.CX, asm.R9, asm.R11, func(i int, row asm.Operand) {
		t.VEX([]asm.Opcode{asm.MoveOutQuad, asm.MoveOutHighQuad}[i%2], 8+i/2, 0, row, true)
	})
}

// halves8 transposes 8×8 elements of 16 bits: it interleaves pairs of rows, then the pairs of four, then those of
// eight rows.
func (t *transposeWriter) halves8() {
	vector := func(o asm.Opcode, to, a, b int) { t.VEX(o, to, a, asm.Register(b), true) }
	t.eachRow(asm.BX, asm.R8, asm.R10, func(i int, row asm.Operand) { t.VEX(asm.MoveIn, i, 0, row, true) })
	for i := range 4 { // columns 0 to 3 of rows 2i and 2i+1, then 4 to 7
		vector(asm.HalvesLow, 8+i, 2*i, 2*i+1)
		vector(asm.HalvesHigh, 12+i, 2*i, 2*i+1)
	}
	for i := range 4 { // columns 2i and 2i+1 of rows 0 to 3, then 4 to 7
		from := 8 + i/2*4
		o := []asm.Opcode{asm.InterleaveLow, asm.InterleaveHigh}[i%2]
		vector(o, i, from, from+1)
		vector(o, 4+i, from+2, from+3)
	}
	t.eachRow(asm.CX, asm.R9, asm.R11, func(i int, row asm.Operand) {
		vector(asm.ShuffleWords.Imm([]int{0x44, 0xee}[i%2]), 8, i/2, i/2+4)
		t.VEX(asm.MoveOut, 8, 0, row, true)
	})
}

// eachRow calls f with the operands of eight rows at a base, the last four of which are addressed from DX.
func (t *transposeWriter) eachRow(base, stride, thrice int, f func(i int, row asm.Operand)) {
	for i, row := range rows(base, stride, thrice) {
		f(i, row)
	}
	t.General(asm.Address, asm.DX, indexed(base, stride, 4))
	for i, row := range rows(asm.DX, stride, thrice) {
		f(4+i, row)
	}
}

// quarters transposes a square of 16×16 elements in quarters of 8×8: first the columns to the
// right, then the rows below.
func (t *transposeWriter) quarters() {
	t.General(asm.Address, asm.DX, asm.At(asm.DI, t.vector()))
	t.words8()
	t.General(asm.Exchange, asm.CX, asm.Register(asm.DX))
	t.words8()
	t.General(asm.Address, asm.BX, asm.At(asm.SI, t.vector()))
	t.General(asm.Move, asm.CX, asm.Register(asm.DX))
	t.General(asm.Address, asm.DX, asm.At(asm.DX, t.vector()))
	t.words8()
	t.General(asm.Move, asm.CX, asm.Register(asm.DX))
	t.words8()
}

// loadRows loads rows at BX into registers, and advances BX.
func (t *transposeWriter) loadRows(count int) {
	for i := 0; i < count; i += 4 {
		for k, row := range rows(asm.BX, asm.R8, asm.R10) {
			t.Vector32(asm.MoveIn, i+k, 0, row)
		}
		t.General(asm.Address, asm.BX, indexed(asm.BX, asm.R8, 4))
	}
}

// storeRows stores registers from first on as rows at CX, and advances CX.
func (t *transposeWriter) storeRows(first, count int) {
	for i := 0; i < count; i += 4 {
		for k, row := range rows(asm.CX, asm.R9, asm.R11) {
			t.Vector32(asm.MoveOut, first+i+k, 0, row)
		}
		t.General(asm.Address, asm.CX, indexed(asm.CX, asm.R9, 4))
	}
}

// lanes4 transposes 4×4 elements in each 128-bit lane of the registers from 0 on, through as
// many others: register 4i+j becomes column j of rows 4i to 4i+3.
func (t *transposeWriter) lanes4(count int) {
	t.interleave(count, count, count+1, 2)
	for i := range count {
		from := count + i/4*4 + i%4/2
		t.Vector(asm.ShuffleWords.Imm([]int{0x44, 0xee}[i%2]), i, from, asm.Register(from+2))
	}
}

// interleave interleaves pairs of registers from 0 on: their even columns go to registers from
// low on, the odd ones to those from high on, step apart.
func (t *transposeWriter) interleave(count, low, high, step int) {
	for i := range count / 2 {
		t.Vector(asm.InterleaveLow, low+i*step, 2*i, asm.Register(2*i+1))
		t.Vector(asm.InterleaveHigh, high+i*step, 2*i, asm.Register(2*i+1))
	}
}

// The lanes of 128 bits that a shuffle takes from two registers.
const evenLanes, oddLanes = 0x88, 0xdd

// quarterLanes writes a shuffle of lanes of 128 bits of two registers.
func (t *transposeWriter) quarterLanes(lanes, to, a, b int) {
	t.Vector(asm.ShuffleQuarters.Imm(lanes), to, a, asm.Register(b))
}

// words16 transposes 16×16 elements.
func (t *transposeWriter) words16() {
	t.loadRows(16)
	t.lanes4(16)
	for j := range 4 {
		for half := range 2 {
			t.quarterLanes(evenLanes, 16+8*half+j, 8*half+j, 8*half+4+j)
			t.quarterLanes(oddLanes, 20+8*half+j, 8*half+j, 8*half+4+j)
		}
	}
	for l := range 4 { // the columns of lane l
		for j := range 4 {
			from := 16 + 4*(l%2) + j
			t.quarterLanes([]int{evenLanes, oddLanes}[l/2], 4*l+j, from, from+8)
		}
	}
	t.storeRows(0, 16)
}

// words8 transposes 8×8 elements.
func (t *transposeWriter) words8() {
	t.loadRows(8)
	t.lanes4(8)
	for i := range 8 {
		t.Vector(asm.PermuteHalves.Imm([]int{0x20, 0x31}[i/4]), 8+i, i%4, asm.Register(i%4+4))
	}
	t.storeRows(8, 8)
}

// doubles8 transposes 8×8 elements of 64 bits.
func (t *transposeWriter) doubles8() {
	t.loadRows(8)
	t.interleave(8, 8, 12, 1)
	for i := range 2 {
		pairs, halves := 8+4*i, 16+4*i
		for j := range 2 {
			t.quarterLanes(evenLanes, halves+j, pairs+2*j, pairs+2*j+1)
			t.quarterLanes(oddLanes, halves+2+j, pairs+2*j, pairs+2*j+1)
		}
		for j, lanes := range []int{evenLanes, oddLanes} { // columns i, i+2, i+4 and i+6
			t.quarterLanes(lanes, 4*j+i, halves, halves+1)
			t.quarterLanes(lanes, 4*j+2+i, halves+2, halves+3)
		}
	}
	t.storeRows(0, 8)
}

// doubles4 transposes 4×4 elements of 64 bits.
func (t *transposeWriter) doubles4() {
	t.loadRows(4)
	t.interleave(4, 4, 6, 1)
	for i := range 4 {
		from := 4 + 2*(i%2)
		t.Vector(asm.PermuteHalves.Imm([]int{0x20, 0x31}[i/2]), i, from, asm.Register(from+1))
	}
	t.storeRows(0, 4)
}
