package jit

import (
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
)

// laneMask is the register that has the lanes that count.
const (
	laneMask   = 7
	lastVector = 15
)

// at makes the encoder one of a level, for lanes of 32 bits or of 64.
func (g *generator) at(level simd.Level, long bool) {
	g.wide, g.long = level == simd.AVX512, long
}

// registers makes all registers free.
func (g *generator) registers() {
	g.vector, g.mask = file{holds: map[int]Value{}}, file{holds: map[int]Value{}}
	count := lastVector
	if g.wide {
		count = 32
		for r := laneMask - 1; r > 0; r-- {
			g.mask.free = append(g.mask.free, r)
		}
	}
	for r := count - 1; r >= 0; r-- {
		g.vector.free = append(g.vector.free, r)
	}
}

// masks reports whether values of a type lie in mask registers.
func (g *generator) masks(t dtype.DType) bool { return t.IsBool() && g.wide }

// loadLaneMask reads which lanes count.
func (g *generator) loadLaneMask() {
	g.loadPointer(rax, maskArgument)
	at := operand{kind: inMemory, reg: rax}
	if g.wide {
		t, _ := g.vector.take()
		g.vec(moveIn, t, 0, at)
		g.evex(g.lanes(testWords), laneMask, t, register(t), masking{})
		g.vector.free = append(g.vector.free, t)
	} else {
		g.vec(moveIn, lastVector, 0, at)
	}
}

// splatBits puts a word into all lanes of a register.
func (g *generator) splatBits(reg int, bits uint64) { g.vec(broadcast, reg, 0, g.word(bits)) }

// moveMasked copies the lanes that count.
func (g *generator) moveMasked(to, from int) {
	if g.wide {
		g.evex(g.lanes(moveAll), to, 0, register(from), masking{mask: laneMask})
		return
	}
	o := g.lanes(blendVector)
	o.imm = lastVector << 4
	g.vex(o, to, to, register(from), false)
}

// minMax writes the lesser or the greater of two numbers, as processors choose.
func (g *generator) minMax(s *step) {
	o := minFloat
	if s.kind == maximum {
		o = maxFloat
	}
	g.binary(o, s.args[0], s.args[1])
}

func (g *generator) roundHalf(s *step) {
	x, t := g.in(s.args[0]), g.temp()
	g.vec(floatToHalf, x, 0, register(t))
	g.vec(halfToFloat, g.dest(), 0, register(t))
}

// spill moves a register to its slot or back.
func (g *generator) spill(p *location, out bool) {
	g.loadPointer(rax, spillArgument)
	at := operand{kind: inMemory, reg: rax, disp: int32(slotBytes * p.slot)}
	switch {
	case p.masked && out:
		g.vex(maskOut, p.reg, 0, at, true)
	case p.masked:
		g.vex(maskIn, p.reg, 0, at, true)
	case out:
		g.vec(moveOut, p.reg, 0, at)
	default:
		g.vec(moveIn, p.reg, 0, at)
	}
}

// last returns an argument where an instruction has its last operand.
func (g *generator) last(a argument) operand {
	if a.constant {
		return g.word(a.bits)
	}
	return register(g.locations[a.value].reg)
}

func (g *generator) word(bits uint64) operand { return operand{kind: inPool, bits: bits} }

// lanes returns an instruction for the lanes of the kernel.
func (g *generator) lanes(o opcode) opcode {
	if g.long {
		return o.doubled()
	}
	return o
}

// sign is the constant with the sign of a number alone, ones that of all bits.
func (g *generator) sign() uint64 {
	if g.long {
		return 1 << 63
	}
	return 1 << 31
}

func (g *generator) ones() uint64 { return 2*g.sign() - 1 }

// vec writes a vector instruction for the lanes of the kernel, words one for lanes of
// 32 bits.
func (g *generator) vec(o opcode, reg, first int, rm operand) { g.vec32(g.lanes(o), reg, first, rm) }

func (g *generator) vec32(o opcode, reg, first int, rm operand) {
	if g.wide {
		g.evex(o, reg, first, rm, masking{broadcast: rm.kind == inPool && o.code&^1 != broadcast.code})
		return
	}
	g.vex(o, reg, first, rm, false)
}

// array returns the place of the elements that a step reads or writes, of scale
// bytes; with 0 that of the first element of all. It may use RAX, as does what
// gives registers out: the step must have its registers before.
func (g *generator) array(s *step, scale int) operand {
	at := operand{kind: inMemory, scale: scale, disp: int32(s.skip * g.width * scale)}
	if s.array < len(pointers) {
		at.reg = pointers[s.array]
		return at
	}
	g.loadPointer(rax, arrayArgument+g.first+s.array)
	at.reg = rax
	return at
}
