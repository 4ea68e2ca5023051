package jit

import (
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
)

// The register with the mask of active lanes: laneMask with AVX-512, lastVector with AVX2.
const (
	laneMask   = 7
	lastVector = 15
)

// at selects the instruction set and the lane width.
func (g *generator) at(level simd.Level, long bool) {
	g.wide, g.long = level == simd.AVX512, long
}

// registers frees all registers.
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

// masks reports whether values of a type are in mask registers.
func (g *generator) masks(t dtype.DType) bool { return t.IsBool() && g.wide }

// loadLaneMask loads the mask of active lanes.
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

// splatBits loads a constant into all lanes of a register.
func (g *generator) splatBits(reg int, bits uint64) { g.vec(broadcast, reg, 0, g.word(bits)) }

// moveMasked copies the active lanes.
func (g *generator) moveMasked(to, from int) {
	if g.wide {
		g.evex(g.lanes(moveAll), to, 0, register(from), masking{mask: laneMask})
		return
	}
	o := g.lanes(blendVector)
	o.imm = lastVector << 4
	g.vex(o, to, to, register(from), false)
}

// minMax writes a minimum or maximum, which is the second operand where either is NaN.
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

// spill stores a register to its slot, or loads it.
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

// last returns an argument as the last operand of an instruction.
func (g *generator) last(a argument) operand {
	if a.constant {
		return g.word(a.bits)
	}
	return register(g.locations[a.value].reg)
}

func (g *generator) word(bits uint64) operand { return operand{kind: inPool, bits: bits} }

// lanes returns the form of an instruction for the lane width of the kernel.
func (g *generator) lanes(o opcode) opcode {
	if g.long {
		return o.doubled()
	}
	return o
}

// sign returns the sign bit of a lane, ones a lane with all bits set.
func (g *generator) sign() uint64 {
	if g.long {
		return 1 << 63
	}
	return 1 << 31
}

func (g *generator) ones() uint64 { return 2*g.sign() - 1 }

// vec writes a vector instruction for the lane width of the kernel, vec32 one for 32-bit
// lanes.
func (g *generator) vec(o opcode, reg, first int, rm operand) { g.vec32(g.lanes(o), reg, first, rm) }

func (g *generator) vec32(o opcode, reg, first int, rm operand) {
	if g.wide {
		g.evex(o, reg, first, rm, masking{broadcast: rm.kind == inPool && o.code&^1 != broadcast.code})
		return
	}
	g.vex(o, reg, first, rm, false)
}

// array returns the operand for the elements of scale bytes that a step reads or writes; with
// scale 0, for the first element of the array. It may use RAX, as do spills: the step must
// have its registers before.
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
