package jit

import (
	"encoding/binary"
)

// encoder writes A64 machine code, with vectors of four lanes of 32 bits or two of 64
// (Arm Architecture Reference Manual for A-profile, section C4.1 and chapter C7).
type encoder struct {
	text []byte
	long bool // lanes and constants have 64 bits
	// pool holds the constants of the code, where the positions in text of the
	// instructions that load each.
	pool  []uint64
	where map[uint64][]int
}

// opcode is a vector instruction with all register fields 0.
type opcode uint32

const none = -1

// word writes an instruction.
func (e *encoder) word(w uint32) { e.text = binary.LittleEndian.AppendUint32(e.text, w) }

// three writes an instruction on three registers, two one on two.
func (e *encoder) three(o opcode, d, n, m int) {
	e.word(uint32(o) | uint32(m)<<16 | uint32(n)<<5 | uint32(d))
}

func (e *encoder) two(o opcode, d, n int) { e.three(o, d, n, 0) }

// copy copies a register.
func (e *encoder) copy(d, n int) { e.three(bitsOr, d, n, n) }

// constant loads a constant into all lanes of a register.
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

// finish appends the constants to the code, a whole vector each.
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

// patch inserts a branch or load distance into a field of an instruction.
func (e *encoder) patch(place, shift, bits, distance int) {
	field := e.text[place:]
	word := uint32(distance/4) & (1<<bits - 1)
	binary.LittleEndian.PutUint32(field, binary.LittleEndian.Uint32(field)|word<<shift)
}

// The general registers in use. Go and the system reserve X18 and X26 to X30.
const (
	arguments = 0
	lanesAll  = 1
	vectors   = 2 // the index of the first lane, in vectors
	spillBase = 3
	lanesLeft = 4
	scratch   = 16
	scratch2  = 17
)

// pointers are the registers with the addresses of the first arrays; those of the others are
// loaded when used.
var pointers = []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25}

// loadWord loads 64 bits at an offset from an address, storeWord stores them.
func (e *encoder) loadWord(reg, base, at int) {
	e.word(0xf9400000 | uint32(at/8)<<10 | uint32(base)<<5 | uint32(reg))
}

func (e *encoder) storeWord(reg, base, at int) {
	e.word(0xf9000000 | uint32(at/8)<<10 | uint32(base)<<5 | uint32(reg))
}

// loadPointer loads an argument into a general register.
func (e *encoder) loadPointer(reg, argument int) { e.loadWord(reg, arguments, 8*argument) }

// add adds a constant of up to 12 bits.
func (e *encoder) add(to, from, by int) {
	e.word(0x91000000 | uint32(by)<<10 | uint32(from)<<5 | uint32(to))
}

// number loads a signed 32-bit number into a general register.
func (e *encoder) number(reg, x int) {
	low, high := uint32(x)&0xffff, uint32(x)>>16
	if x < 0 {
		e.word(0x92800000 | (^low&0xffff)<<5 | uint32(reg)) // MOVN
	} else {
		e.word(0xd2800000 | low<<5 | uint32(reg)) // MOVZ
	}
	e.word(0xf2800000 | 1<<21 | high<<5 | uint32(reg)) // MOVK, LSL #16
}

// clearIndex sets the index to the first lane.
func (e *encoder) clearIndex() {
	e.word(0xd2800000 | vectors)
	e.word(0xaa0003e0 | lanesAll<<16 | lanesLeft) // MOV
	e.loadPointer(spillBase, spillArgument)
}

func (e *encoder) lanesOfVector() int {
	if e.long {
		return 2
	}
	return 4
}

// loopBack advances the index and jumps back while lanes remain.
func (e *encoder) loopBack(lanes, start int) {
	e.add(vectors, vectors, lanes/e.lanesOfVector())
	e.word(0xf1000000 | uint32(lanes)<<10 | lanesLeft<<5 | lanesLeft) // SUBS
	e.word(0x54000000 | 0xc)                                          // B.GT
	e.patch(len(e.text)-4, 5, 19, start-(len(e.text)-4))
}

// nextRow counts a row, and while rows remain advances the arrays and jumps back.
func (e *encoder) nextRow(r *Rows, start int) {
	e.loadPointer(scratch, rowsArgument)
	e.loadWord(scratch2, scratch, 0)
	e.word(0xf1000400 | scratch2<<5 | scratch2) // SUBS #1
	e.storeWord(scratch2, scratch, 0)
	last := len(e.text)
	e.word(0x54000000) // B.EQ
	for i, step := range r.Strides {
		if step != 0 {
			e.loadPointer(scratch, arrayArgument+i)
			e.number(scratch2, step)
			e.word(0x8b000000 | scratch2<<16 | scratch<<5 | scratch)
			e.storeWord(scratch, arguments, 8*(arrayArgument+i))
		}
	}
	if r.Counter >= 0 {
		e.loadPointer(scratch, arrayArgument+r.Counter)
		e.word(0xb9400000 | scratch<<5 | scratch2) // LDR W
		e.word(0x11000400 | scratch2<<5 | scratch2)
		e.word(0xb9000000 | scratch<<5 | scratch2) // STR W
	}
	e.word(0x14000000)
	e.patch(len(e.text)-4, 0, 26, start-(len(e.text)-4))
	e.patch(last, 5, 19, len(e.text)-last)
}

func (e *encoder) ret() { e.word(0xd65f03c0) } // RET
