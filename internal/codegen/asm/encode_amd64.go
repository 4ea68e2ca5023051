package asm

import (
	"encoding/binary"
	"math/bits"
)

// Encoder writes x86-64 machine code (Intel® 64 and IA-32 Architectures Software Developer's
// Manual, volume 2, chapters 2.2 to 2.7).
type Encoder struct {
	Wide      bool // vectors have 512 bits and EVEX prefixes, else 256 bits and VEX prefixes
	Long      bool // lanes and constants have 64 bits
	text      []byte
	constants constants
}

// Operand is the last operand of an instruction: a register, memory, or a constant. In memory it
// is at Base + Index·Scale + Disp, in bytes; a Scale of 0 is no index.
type Operand struct {
	kind               operandKind
	Base, Index, Scale int
	Disp               int
	bits               uint64
}

type operandKind uint8

const (
	inMemory operandKind = iota
	inRegister
	inConstants
)

// Register returns a register as the last operand.
func Register(r int) Operand { return Operand{kind: inRegister, Base: r} }

// At returns memory at a distance in bytes from an address in a register.
func At(base, disp int) Operand { return Operand{Base: base, Disp: disp} }

// Constant returns a constant for all lanes, which the encoder stores after the code.
func Constant(bits uint64) Operand { return Operand{kind: inConstants, bits: bits} }

// IsConstant reports whether an operand is a constant.
func (o Operand) IsConstant() bool { return o.kind == inConstants }

// Stack returns memory at an offset in the 24 bytes of the stack that code may use. At 8 is the
// address of its arguments.
func Stack(offset int) Operand { return At(SP, 8+offset) }

// Masking is the part of an EVEX prefix that selects lanes.
type Masking struct {
	Mask      int  // the mask register, 0 for none
	Zero      bool // lanes outside the mask become 0, else they are unchanged
	Broadcast bool // the memory operand is one element for all lanes
}

// Lanes returns the form of an instruction for the width of the lanes.
func (e *Encoder) Lanes(o Opcode) Opcode {
	if e.Long {
		o.form, o.quad, o.quadVEX = o.doubled, true, o.doubledW
	}
	return o
}

// Vector writes a vector instruction for the width of the lanes, of register reg, first and rm,
// in the manual's order. Vector32 writes one for 32-bit lanes.
func (e *Encoder) Vector(o Opcode, reg, first int, rm Operand) {
	e.Vector32(e.Lanes(o), reg, first, rm)
}

// Vector32 is [Encoder.Vector] for 32-bit lanes.
func (e *Encoder) Vector32(o Opcode, reg, first int, rm Operand) {
	if e.Wide {
		e.EVEX(o, reg, first, rm, Masking{Broadcast: rm.IsConstant() && o.code&^1 != Broadcast.code})
		return
	}
	e.VEX(o, reg, first, rm, false)
}

// Shift writes a shift of lanes by a constant, where how is the register field of the
// instruction.
func (e *Encoder) Shift(o Opcode, how, by, from, to int) {
	e.Vector32(o.Imm(by), how, to, Register(from))
}

// VEX writes an instruction with a VEX prefix, of 256 bits, or of 128 where short is set.
func (e *Encoder) VEX(o Opcode, reg, first int, rm Operand, short bool) {
	r, x, b := extensions(reg, rm)
	last := ^byte(first<<3)&0x78 | o.prefix
	if !short {
		last |= 1 << 2
	}
	if x|b == 0 && o.space == m0F && !o.quadVEX {
		e.bytes(0xc5, ^(r<<7)&0x80|last, o.code)
	} else {
		e.bytes(0xc4, ^(r<<7|x<<6|b<<5)&0xe0|o.space, wBit(o.quadVEX)|last, o.code)
	}
	e.operands(o, reg, rm, 1)
}

// wBit returns the W bit of a prefix.
func wBit(quad bool) byte {
	if quad {
		return 1 << 7
	}
	return 0
}

// EVEX writes an instruction with an EVEX prefix, of 512 bits.
func (e *Encoder) EVEX(o Opcode, reg, first int, rm Operand, m Masking) {
	r, x, b := extensions(reg, rm)
	if rm.kind == inRegister {
		x = byte(rm.Base >> 4 & 1)
	}
	high := byte(reg >> 4 & 1)
	p2 := byte(2<<5) | ^byte(first>>4<<3)&8 | byte(m.Mask)
	if m.Zero {
		p2 |= 1 << 7
	}
	if m.Broadcast {
		p2 |= 1 << 4
	}
	e.bytes(0x62, ^(r<<7|x<<6|b<<5|high<<4)&0xf0|o.space, wBit(o.quad)|^byte(first<<3)&0x78|1<<2|o.prefix, p2, o.code)
	e.operands(o, reg, rm, o.unit(m.Broadcast))
}

// Gather writes a load of a lane each at base plus scale bytes times the lanes of a register. Lanes of the mask, a mask
// register or one of vectors, become zero where they are loaded.
func (e *Encoder) Gather(reg, base, places, scale, mask int) {
	o, at := e.Lanes(GatherWords), Operand{Base: base, Index: places & 15, Scale: scale}
	if e.Wide {
		e.EVEX(o, reg, places&16, at, Masking{Mask: mask}) // the field of the other operand has the upper bit
		return
	}
	e.VEX(o, reg, mask, at, false)
}

// General writes an instruction on general registers: reg = o(reg, rm).
func (e *Encoder) General(o Opcode, reg int, rm Operand) {
	r, x, b := extensions(reg, rm)
	if rex := wBit(o.quad)>>4 | r<<2 | x<<1 | b; rex != 0 {
		e.bytes(0x40 | rex)
	}
	if o.space == m0F {
		e.bytes(0x0f)
	}
	e.bytes(o.code)
	e.operands(o, reg, rm, 1)
}

// AddConst, SubConst and CompareConst write an operation with a constant of 32 bits.
func (e *Encoder) AddConst(to Operand, x int) { e.general32(0, to, x) }

// SubConst subtracts a constant.
func (e *Encoder) SubConst(from Operand, x int) { e.general32(5, from, x) }

// CompareConst compares with a constant.
func (e *Encoder) CompareConst(a Operand, x int) { e.general32(7, a, x) }

func (e *Encoder) general32(how int, rm Operand, x int) {
	if int(int8(x)) == x {
		e.General(byByte.Imm(x), how, rm)
		return
	}
	e.General(byConstant, how, rm)
	e.int32(x)
}

// ShiftLeft shifts a general register to the left.
func (e *Encoder) ShiftLeft(reg, by int) { e.General(shiftGeneral.Imm(by), 4, Register(reg)) }

// ShiftRight shifts a general register to the right, without its sign.
func (e *Encoder) ShiftRight(reg, by int) { e.General(shiftGeneral.Imm(by), 5, Register(reg)) }

// MultiplyConst multiplies a general register by a constant of 32 bits.
func (e *Encoder) MultiplyConst(reg, x int) {
	e.General(multiply, reg, Register(reg))
	e.int32(x)
}

// ClearGeneral sets a general register to 0.
func (e *Encoder) ClearGeneral(reg int) {
	e.General(Opcode{form: form{code: 0x33}, imm: none}, reg, Register(reg)) // XORL
}

// CountDown decrements a general register or memory.
func (e *Encoder) CountDown(x Operand) { e.General(countDown, 1, x) }

// CountUp32 increments 32 bits in memory.
func (e *Encoder) CountUp32(x Operand) {
	e.General(Opcode{form: form{code: countDown.code}, imm: none}, 0, x)
}

// Prefetch writes PREFETCHT0, which may address unmapped memory.
func (e *Encoder) Prefetch(at Operand) {
	e.General(Opcode{form: form{space: m0F, code: 0x18}, imm: none}, 1, at)
}

// Bind sets a label to the position in the code.
func (e *Encoder) Bind(l *Label) {
	l.bound, l.at = true, len(e.text)
	for _, at := range l.places {
		binary.LittleEndian.PutUint32(e.text[at:], uint32(l.at-at-4))
	}
}

// Jump writes a jump to a label, JumpIf one under a condition.
func (e *Encoder) Jump(l *Label) {
	e.bytes(0xe9)
	e.distance(l)
}

// JumpIf writes a jump under a condition.
func (e *Encoder) JumpIf(condition int, l *Label) {
	e.bytes(0x0f, 0x80|byte(condition))
	e.distance(l)
}

func (e *Encoder) distance(l *Label) {
	if !l.bound {
		l.places = append(l.places, len(e.text))
	}
	e.int32(l.at - len(e.text) - 4)
}

// Return ends a function.
func (e *Encoder) Return() {
	e.bytes(0xc5, 0xf8, 0x77) // VZEROUPPER
	e.bytes(0xc3)
}

func (e *Encoder) bytes(b ...byte) { e.text = append(e.text, b...) }

func (e *Encoder) int32(x int) { e.text = binary.LittleEndian.AppendUint32(e.text, uint32(x)) }

// extensions returns the upper bits of the registers.
func extensions(reg int, rm Operand) (r, x, b byte) {
	r = byte(reg >> 3 & 1)
	if rm.kind != inConstants {
		b = byte(rm.Base >> 3 & 1)
	}
	if rm.Scale != 0 {
		x = byte(rm.Index >> 3 & 1)
	}
	return r, x, b
}

// operands writes what follows an opcode. A displacement of a byte counts units of bytes.
func (e *Encoder) operands(o Opcode, reg int, rm Operand, unit int) {
	field := byte(reg&7) << 3
	after := 0
	if o.imm != none {
		after = 1
	}
	switch rm.kind {
	case inRegister:
		e.bytes(0xc0 | field | byte(rm.Base&7))
	case inMemory:
		e.memory(field, rm, unit)
	case inConstants: // the displacement counts from the end of the instruction
		e.bytes(field | 5)
		e.constants.add(rm.bits, len(e.text))
		e.int32(-len(e.text) - 4 - after) // Finish adds the position of the constant
	}
	if after > 0 {
		e.bytes(byte(o.imm))
	}
}

// memory writes an operand in memory. A base alone needs no second byte, unless it is SP or R12;
// BP and R13 need a displacement.
func (e *Encoder) memory(field byte, rm Operand, unit int) {
	base := byte(rm.Base & 7)
	mod, size := byte(0x80), 4
	switch {
	case rm.Disp == 0 && base != BP:
		mod, size = 0, 0
	case int(int8(rm.Disp/unit))*unit == rm.Disp:
		mod, size = 0x40, 1
	}
	if rm.Scale == 0 && base != SP {
		e.bytes(mod | field | base)
	} else {
		scale, index := byte(0), byte(4) // none
		if rm.Scale != 0 {
			scale, index = byte(bits.TrailingZeros8(uint8(rm.Scale))), byte(rm.Index&7)
		}
		e.bytes(mod|field|4, scale<<6|index<<3|base)
	}
	switch size {
	case 1:
		e.bytes(byte(rm.Disp / unit))
	case 4:
		e.int32(rm.Disp)
	}
}

// cacheLine is the alignment of functions in bytes.
const cacheLine = 64

// Finish returns the function. The constants follow it: one element each, or a whole vector
// where instructions cannot broadcast.
func (e *Encoder) Finish() []byte {
	e.align()
	size, copies := 4, 8
	if e.Long {
		size, copies = 8, 4
	}
	if e.Wide {
		copies = 1
	}
	for _, bits := range e.constants.list {
		for _, place := range e.constants.where[bits] {
			field := e.text[place:]
			binary.LittleEndian.PutUint32(field, binary.LittleEndian.Uint32(field)+uint32(len(e.text)))
		}
		for range copies {
			e.text = append(e.text, binary.LittleEndian.AppendUint64(nil, bits)[:size]...)
		}
	}
	e.align()
	return e.text
}

func (e *Encoder) align() {
	for len(e.text)%cacheLine != 0 {
		e.bytes(0xcc)
	}
}
