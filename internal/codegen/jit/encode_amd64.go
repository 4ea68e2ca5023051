package jit

import (
	"encoding/binary"
)

// encoder writes x86-64 machine code. Vector instructions are encoded with the
// EVEX prefix and 512 bits where wide is set, else with the VEX prefix and 256
// bits (Intel® 64 and IA-32 Architectures Software Developer's Manual, volume
// 2, sections 2.3 and 2.7).
type encoder struct {
	text []byte
	wide bool
	long bool // lanes and constants have 64 bits
	// pool holds the constants of the code, where the positions in text of the
	// displacements to each.
	pool  []uint64
	where map[uint64][]int
}

// The prefixes and maps of opcodes.
const (
	pNone = 0
	p66   = 1
	pF3   = 2
	pF2   = 3

	m0F   = 1
	m0F38 = 2
	m0F3A = 3
)

// opcode is an instruction without its operands.
type opcode struct {
	prefix, space, code byte
	imm                 int  // the byte after the operands, or none
	quad, quadVEX       bool // the W bit of its EVEX and of its VEX prefix
}

const none = -1

// operand is the last operand of an instruction: a register, an element in memory, or a
// constant of the pool.
type operand struct {
	kind  operandKind
	reg   int    // the register, or the base register
	scale int    // of the index register, 0 for none
	disp  int32  // added to the address
	bits  uint64 // of a constant
}

type operandKind uint8

const (
	inRegister operandKind = iota
	inMemory
	inPool
)

func register(r int) operand { return operand{kind: inRegister, reg: r} }

// masking is the last byte of an EVEX prefix.
type masking struct {
	mask      int  // the mask register, 0 for none
	zero      bool // lanes outside the mask become 0, else they are unchanged
	broadcast bool // the memory operand is one element for all lanes
}

func (e *encoder) bytes(b ...byte) { e.text = append(e.text, b...) }

func (e *encoder) int32(x int32) { e.text = binary.LittleEndian.AppendUint32(e.text, uint32(x)) }

// vex writes an instruction with a VEX prefix, of 256 bits, or of 128 where short is set.
func (e *encoder) vex(o opcode, reg, first int, rm operand, short bool) {
	r, x, b := rexBits(reg, rm)
	length := byte(1 << 2)
	if short {
		length = 0
	}
	e.bytes(0xc4, ^(r<<7|x<<6|b<<5)&0xe0|o.space, wBit(o.quadVEX)|^byte(first<<3)&0x78|length|o.prefix, o.code)
	e.operands(o, reg, rm)
}

// wBit returns the W bit of a prefix.
func wBit(quad bool) byte {
	if quad {
		return 1 << 7
	}
	return 0
}

// evex writes an instruction with an EVEX prefix, of 512 bits.
func (e *encoder) evex(o opcode, reg, first int, rm operand, m masking) {
	r, x, b := rexBits(reg, rm)
	if rm.kind == inRegister {
		x = byte(rm.reg >> 4 & 1)
	}
	high := byte(reg >> 4 & 1)
	p2 := byte(2<<5) | ^byte(first>>4<<3)&8 | byte(m.mask)
	if m.zero {
		p2 |= 1 << 7
	}
	if m.broadcast {
		p2 |= 1 << 4
	}
	e.bytes(0x62, ^(r<<7|x<<6|b<<5|high<<4)&0xf0|o.space, wBit(o.quad)|^byte(first<<3)&0x78|1<<2|o.prefix, p2, o.code)
	e.operands(o, reg, rm)
}

// rexBits returns the upper bits of the registers. The index is always RDX, whose upper bit is
// 0.
func rexBits(reg int, rm operand) (r, x, b byte) {
	r = byte(reg >> 3 & 1)
	if rm.kind != inPool {
		b = byte(rm.reg >> 3 & 1)
	}
	return r, 0, b
}

// operands writes what follows an opcode. Displacements always take four bytes, as EVEX scales
// short ones.
func (e *encoder) operands(o opcode, reg int, rm operand) {
	mod := byte(reg&7) << 3
	after := 0
	if o.imm != none {
		after = 1
	}
	switch rm.kind {
	case inRegister:
		e.bytes(0xc0 | mod | byte(rm.reg&7))
	case inMemory:
		index := byte(rdx)
		scale := map[int]byte{1: 0, 2: 1, 4: 2, 8: 3}[rm.scale]
		if rm.scale == 0 {
			index = 4 // none
		}
		e.bytes(0x80|mod|4, scale<<6|index<<3|byte(rm.reg&7))
		e.int32(rm.disp)
	case inPool:
		e.bytes(mod | 5)
		e.constant(rm.bits, after)
	}
	if after > 0 {
		e.bytes(byte(o.imm))
	}
}

// constant writes the displacement of a constant, which counts from the end of the
// instruction, after bytes later.
func (e *encoder) constant(bits uint64, after int) {
	if _, ok := e.where[bits]; !ok {
		if e.where == nil {
			e.where = map[uint64][]int{}
		}
		e.pool = append(e.pool, bits)
	}
	e.where[bits] = append(e.where[bits], len(e.text))
	e.int32(-int32(len(e.text) + 4 + after)) // finish adds the position of the constant
}

// finish appends the constants to the code: one element each, or a whole vector where
// instructions cannot broadcast.
func (e *encoder) finish() []byte {
	for len(e.text)%cacheLine != 0 {
		e.bytes(0xcc)
	}
	size, copies := 4, 8
	if e.long {
		size, copies = 8, 4
	}
	if e.wide {
		copies = 1
	}
	for _, bits := range e.pool {
		at := len(e.text)
		for _, place := range e.where[bits] {
			field := e.text[place:]
			binary.LittleEndian.PutUint32(field, binary.LittleEndian.Uint32(field)+uint32(at))
		}
		for range copies {
			e.text = append(e.text, binary.LittleEndian.AppendUint64(nil, bits)[:size]...)
		}
	}
	for len(e.text)%cacheLine != 0 {
		e.bytes(0xcc)
	}
	return e.text
}

const cacheLine = 64

// The general registers in use.
const (
	rax = 0
	rcx = 1
	rdx = 2 // the index of the first lane
	rbx = 3
	rsi = 6 // the arguments
	rdi = 7
	r13 = 13 // the number of lanes
)

// pointers are the registers with the addresses of the first arrays; those of the others are
// loaded when used.
var pointers = []int{rbx, rcx, rdi, 8, 9, 10, 11, 12}

// loadPointer loads an argument into a general register.
func (e *encoder) loadPointer(reg, argument int) {
	e.bytes(0x48|byte(reg>>3)<<2, 0x8b, 0x80|byte(reg&7)<<3|rsi)
	e.int32(int32(8 * argument))
}

// prefetch writes PREFETCHT0, which may address unmapped memory.
func (e *encoder) prefetch(at operand) {
	r, x, b := rexBits(1, at)
	e.bytes(0x40|r<<2|x<<1|b, 0x0f, 0x18)
	e.operands(opcode{imm: none}, 1, at)
}

func (e *encoder) clearIndex() { e.bytes(0x31, 0xd2) }

// loopBack advances the index and jumps back while lanes remain.
func (e *encoder) loopBack(lanes, start int) {
	e.bytes(0x48, 0x81, 0xc2)
	e.int32(int32(lanes))
	e.bytes(0x4c, 0x39, 0xea) // CMPQ RDX, R13
	e.bytes(0x0f, 0x8c)
	e.int32(int32(start - len(e.text) - 4))
}

// nextRow counts a row, and while rows remain advances the arrays and jumps back.
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
