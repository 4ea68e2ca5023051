package jit

import "encoding/binary"

// The general registers that code refers to.
const (
	rax = 0
	rcx = 1
	rdx = 2 // the index of the first lane
	rbx = 3
	rsi = 6 // the arguments
	rdi = 7
	r13 = 13 // the number of lanes
)

// pointers are the registers that keep the addresses of the first arrays; those
// of more are read when they are needed.
var pointers = []int{rbx, rcx, rdi, 8, 9, 10, 11, 12}

// loadPointer reads an argument into a general register.
func (e *encoder) loadPointer(reg, argument int) {
	e.bytes(0x48|byte(reg>>3)<<2, 0x8b, 0x80|byte(reg&7)<<3|rsi)
	e.int32(int32(8 * argument))
}

// prefetch asks for a line of memory, which need not be there: PREFETCHT0.
func (e *encoder) prefetch(at operand) {
	r, x, b := rexBits(1, at)
	e.bytes(0x40|r<<2|x<<1|b, 0x0f, 0x18)
	e.operands(opcode{imm: none}, 1, at)
}

func (e *encoder) clearIndex() { e.bytes(0x31, 0xd2) }

// loopBack adds to the index and jumps back while lanes are left.
func (e *encoder) loopBack(lanes, start int) {
	e.bytes(0x48, 0x81, 0xc2)
	e.int32(int32(lanes))
	e.bytes(0x4c, 0x39, 0xea) // CMPQ RDX, R13
	e.bytes(0x0f, 0x8c)
	e.int32(int32(start - len(e.text) - 4))
}

// nextRow counts a row, and where one is left takes the arrays to it and jumps
// back.
func (e *encoder) nextRow(r *Rows, start int) {
	e.loadPointer(rax, rowsArgument)
	e.bytes(0x48, 0xff, 0x08) // DECQ (RAX)
	e.bytes(0x0f, 0x84)       // JZ
	last := len(e.text)
	e.int32(0)
	for i, step := range r.Strides {
		if step != 0 {
			e.bytes(0x48, 0x81, 0x80|rsi) // ADDQ $step, (RSI)
			e.int32(int32(8 * (arrayArgument + i)))
			e.int32(int32(step))
		}
	}
	if r.Counter >= 0 {
		e.loadPointer(rax, arrayArgument+r.Counter)
		e.bytes(0xff, 0x00) // INCL (RAX)
	}
	e.bytes(0xe9)
	e.int32(int32(start - len(e.text) - 4))
	binary.LittleEndian.PutUint32(e.text[last:], uint32(len(e.text)-last-4))
}

func (e *encoder) ret() {
	e.bytes(0xc5, 0xf8, 0x77) // VZEROUPPER
	e.bytes(0xc3)
}
