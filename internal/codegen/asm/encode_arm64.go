package asm

import "encoding/binary"

// Encoder writes A64 machine code, with vectors of four lanes of 32 bits or two of 64 (Arm
// Architecture Reference Manual for A-profile, section C4.1 and chapters C6 and C7).
type Encoder struct {
	Long      bool // lanes and constants have 64 bits
	text      []byte
	constants constants
}

// Opcode is an instruction with all register fields 0.
type Opcode uint32

// Lanes returns the form of an instruction for the width of the lanes, which most vector
// instructions encode in one bit.
func (e *Encoder) Lanes(o Opcode) Opcode {
	if e.Long {
		return o | 1<<22
	}
	return o
}

// Three writes an instruction on three registers, with the result first.
func (e *Encoder) Three(o Opcode, d, n, m int) {
	e.word(uint32(o) | uint32(m)<<16 | uint32(n)<<5 | uint32(d))
}

// Two writes an instruction on two registers.
func (e *Encoder) Two(o Opcode, d, n int) { e.Three(o, d, n, 0) }

// Copy copies a vector register.
func (e *Encoder) Copy(d, n int) { e.Three(BitsOr, d, n, n) }

// Shift writes a shift of lanes of the given bits by a constant. The immediate field is bits + by
// for left shifts and 2·bits - by for right shifts; o is the instruction for 32-bit lanes.
func (e *Encoder) Shift(bits int, o Opcode, by, from, to int) {
	if o == LeftBy {
		by += bits - 32
	} else {
		by = 2*(bits-32) - by
	}
	e.Two(Opcode(int(o)+by<<16), to, from)
}

// Constant loads a constant into all lanes of a register.
func (e *Encoder) Constant(d int, bits uint64) {
	e.constants.add(bits, len(e.text))
	e.word(0x9c000000 | uint32(d)) // LDR (literal)
}

// LoadVectors loads registers from consecutive memory and advances the address, StoreVectors
// stores them.
func (e *Encoder) LoadVectors(first, count, address int) {
	e.vectors(0x4cdf0800, first, count, address)
}

// StoreVectors stores registers to consecutive memory and advances the address.
func (e *Encoder) StoreVectors(first, count, address int) {
	e.vectors(0x4c9f0800, first, count, address)
}

func (e *Encoder) vectors(o Opcode, first, count, address int) { // LD1, ST1 of up to four registers
	for ; count > 0; first, count = first+4, count-4 {
		e.Two(o|[...]Opcode{0x7000, 0xa000, 0x6000, 0x2000}[min(count, 4)-1], first, address)
	}
}

// Splat loads an element into all lanes of a register, and adds another register to the
// address.
func (e *Encoder) Splat(d, address, step int) {
	o := Opcode(0x4dc0c800) // LD1R
	if e.Long {
		o |= 1 << 10
	}
	e.Three(o, d, address, step)
}

// Load loads 64 bits at a distance from an address into a general register.
func (e *Encoder) Load(reg, address, distance int) {
	e.Two(0xf9400000|Opcode(distance/8)<<10, reg, address)
}

// Store stores the 64 bits of a general register.
func (e *Encoder) Store(reg, address, distance int) {
	e.Two(0xf9000000|Opcode(distance/8)<<10, reg, address)
}

// Move copies a general register.
func (e *Encoder) Move(to, from int) { e.Three(0xaa0003e0, to, 0, from) }

// Add adds general registers.
func (e *Encoder) Add(to, a, b int) { e.Three(0x8b000000, to, a, b) }

// AddConst adds a constant of up to 12 bits.
func (e *Encoder) AddConst(to, from, by int) { e.Two(0x91000000|Opcode(by)<<10, to, from) }

// SubConst subtracts a constant of up to 12 bits, and sets the flags.
func (e *Encoder) SubConst(to, from, by int) { e.Two(0xf1000000|Opcode(by)<<10, to, from) }

// ShiftLeft shifts a general register to the left.
func (e *Encoder) ShiftLeft(reg, by int) {
	e.Two(0xd3400000|Opcode(64-by)<<16|Opcode(63-by)<<10, reg, reg)
}

// CountUp32 increments 32 bits in memory, through another general register.
func (e *Encoder) CountUp32(address, through int) {
	e.Two(0xb9400000, through, address)
	e.Two(0x11000400, through, through)
	e.Two(0xb9000000, through, address)
}

// Number loads a signed 32-bit number into a general register.
func (e *Encoder) Number(reg, x int) {
	low, high := Opcode(x&0xffff), Opcode(x>>16&0xffff)
	if x < 0 {
		e.Two(0x92800000|(^low&0xffff)<<5, reg, 0) // MOVN
	} else {
		e.Two(0xd2800000|low<<5, reg, 0) // MOVZ
	}
	e.Two(0xf2800000|1<<21|high<<5, reg, 0) // MOVK, LSL #16
}

// Bind sets a label to the position in the code.
func (e *Encoder) Bind(l *Label) {
	l.bound, l.at = true, len(e.text)
	for _, at := range l.places {
		e.patch(at, l.at)
	}
}

// Jump writes a jump to a label.
func (e *Encoder) Jump(l *Label) { e.jump(0x14000000, l) }

// JumpIf writes a jump under a condition.
func (e *Encoder) JumpIf(condition int, l *Label) { e.jump(0x54000000|uint32(condition), l) }

// JumpIfZero writes a jump where a general register is 0.
func (e *Encoder) JumpIfZero(reg int, l *Label) { e.jump(0xb4000000|uint32(reg), l) }

// JumpIfNotZero writes a jump where a general register is not 0.
func (e *Encoder) JumpIfNotZero(reg int, l *Label) { e.jump(0xb5000000|uint32(reg), l) }

func (e *Encoder) jump(word uint32, l *Label) {
	at := len(e.text)
	e.word(word)
	if l.bound {
		e.patch(at, l.at)
	} else {
		l.places = append(l.places, at)
	}
}

// patch inserts the distance to a target into the jump or load at a position: B has a field of
// 26 bits, others have one of 19.
func (e *Encoder) patch(at, target int) {
	field := e.text[at:]
	word, distance := binary.LittleEndian.Uint32(field), uint32((target-at)/4)
	if word>>26 == 0x14000000>>26 {
		word |= distance & (1<<26 - 1)
	} else {
		word |= distance & (1<<19 - 1) << 5
	}
	binary.LittleEndian.PutUint32(field, word)
}

// Return ends a function.
func (e *Encoder) Return() { e.word(0xd65f03c0) } // RET

func (e *Encoder) word(w uint32) { e.text = binary.LittleEndian.AppendUint32(e.text, w) }

// Finish returns the function. The constants follow it, a whole vector each.
func (e *Encoder) Finish() []byte {
	const register = 16
	e.align(register)
	for _, bits := range e.constants.list {
		for _, place := range e.constants.where[bits] {
			e.patch(place, len(e.text))
		}
		if !e.Long {
			bits |= bits << 32
		}
		for range register / 8 {
			e.text = binary.LittleEndian.AppendUint64(e.text, bits)
		}
	}
	const cacheLine = 64
	e.align(cacheLine)
	return e.text
}

func (e *Encoder) align(bytes int) {
	for len(e.text)%bytes != 0 {
		e.word(0)
	}
}
