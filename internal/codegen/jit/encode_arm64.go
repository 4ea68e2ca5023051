package jit

import "encoding/binary"

// encoder writes A64 machine code, with vectors of four lanes of 32 bits or two of 64
// (Arm Architecture Reference Manual for A-profile, section C4.1 and chapter C7).
type encoder struct {
	text []byte
	long bool // whether lanes, and constants, have 64 bits
	// pool are the constants of the code, each with the places in text of the
	// instructions that read it.
	pool  []uint64
	where map[uint64][]int
}

// opcode is an instruction on vectors, with all registers 0.
type opcode uint32

const none = -1

// word writes an instruction.
func (e *encoder) word(w uint32) { e.text = binary.LittleEndian.AppendUint32(e.text, w) }

// three writes an instruction with three registers, two one with two.
func (e *encoder) three(o opcode, d, n, m int) {
	e.word(uint32(o) | uint32(m)<<16 | uint32(n)<<5 | uint32(d))
}

func (e *encoder) two(o opcode, d, n int) { e.three(o, d, n, 0) }

// copy copies a register.
func (e *encoder) copy(d, n int) { e.three(bitsOr, d, n, n) }

// constant reads a constant into all lanes of a register.
func (e *encoder) constant(d int, bits uint64) {
	if _, ok := e.where[bits]; !ok {
		if e.where == nil {
			e.where = map[uint64][]int{}
		}
		e.pool = append(e.pool, bits)
	}
	e.where[bits] = append(e.where[bits], len(e.text))
	e.word(0x9c000000 | uint32(d)) // LDR (literal)
}

// finish puts the constants behind the code, a register each.
func (e *encoder) finish() []byte {
	const register = 16
	for len(e.text)%register != 0 {
		e.word(0)
	}
	for _, bits := range e.pool {
		for _, place := range e.where[bits] {
			e.patch(place, 5, 19, len(e.text)-place)
		}
		if !e.long {
			bits |= bits << 32
		}
		for range register / 8 {
			e.text = binary.LittleEndian.AppendUint64(e.text, bits)
		}
	}
	return e.text
}

// patch puts a distance, in instructions, into a field of an instruction.
func (e *encoder) patch(place, shift, bits, distance int) {
	field := e.text[place:]
	word := uint32(distance/4) & (1<<bits - 1)
	binary.LittleEndian.PutUint32(field, binary.LittleEndian.Uint32(field)|word<<shift)
}
