package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
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
	g.Wide, g.Long = level == simd.AVX512, long
}

// registers frees all registers.
func (g *generator) registers() {
	g.vector, g.mask = file{holds: map[int]Value{}}, file{holds: map[int]Value{}}
	count := lastVector
	if g.Wide {
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
func (g *generator) masks(t dtype.DType) bool { return t.IsBool() && g.Wide }

// loadLaneMask loads the mask of active lanes.
func (g *generator) loadLaneMask() {
	g.loadPointer(scratch, maskArgument)
	at := asm.At(scratch, 0)
	if g.Wide {
		t, _ := g.vector.take()
		g.Vector(asm.MoveIn, t, 0, at)
		g.EVEX(g.Lanes(asm.TestWords), laneMask, t, asm.Register(t), asm.Masking{})
		g.vector.free = append(g.vector.free, t)
	} else {
		g.Vector(asm.MoveIn, lastVector, 0, at)
	}
}

// loadOverlapMask loads the mask of the lanes of the last vector that the one before does not have.
func (g *generator) loadOverlapMask() {
	g.loadPointer(scratch, overlapArgument)
	if at := asm.At(scratch, 0); g.Wide {
		g.VEX(asm.MaskIn, laneMask, 0, at, true)
	} else {
		g.Vector(asm.MoveIn, lastVector, 0, at)
	}
}

// splatBits loads a constant into all lanes of a register.
func (g *generator) splatBits(reg int, bits uint64) {
	g.Vector(asm.Broadcast, reg, 0, asm.Constant(bits))
}

// moveMasked copies the active lanes.
func (g *generator) moveMasked(to, from int) {
	if g.Wide {
		g.EVEX(g.Lanes(asm.MoveAll), to, 0, asm.Register(from), asm.Masking{Mask: laneMask})
		return
	}
	g.VEX(g.Lanes(asm.BlendVector).Imm(lastVector<<4), to, to, asm.Register(from), false)
}

// minMax writes a minimum or maximum, which is the second operand where either is NaN.
func (g *generator) minMax(s *step) {
	o := asm.MinFloat
	if s.kind == maximum {
		o = asm.MaxFloat
	}
	g.binary(o, s.args[0], s.args[1])
}

func (g *generator) roundHalf(s *step) {
	x, t := g.in(s.args[0]), g.temp()
	g.Vector(asm.FloatToHalf, x, 0, asm.Register(t))
	g.Vector(asm.HalfToFloat, g.dest(), 0, asm.Register(t))
}

// spill stores a register to its slot, or loads it.
func (g *generator) spill(p *location, out bool) {
	g.loadPointer(scratch, spillArgument)
	at := asm.At(scratch, slotBytes*p.slot)
	switch {
	case p.masked && out:
		g.VEX(asm.MaskOut, p.reg, 0, at, true)
	case p.masked:
		g.VEX(asm.MaskIn, p.reg, 0, at, true)
	case out:
		g.Vector(asm.MoveOut, p.reg, 0, at)
	default:
		g.Vector(asm.MoveIn, p.reg, 0, at)
	}
}

// last returns an argument as the last operand of an instruction.
func (g *generator) last(a argument) asm.Operand {
	if a.constant {
		return asm.Constant(a.bits)
	}
	return asm.Register(g.locations[a.value].reg)
}

// sign returns the sign bit of a lane, ones a lane with all bits set.
func (g *generator) sign() uint64 {
	if g.Long {
		return 1 << 63
	}
	return 1 << 31
}

func (g *generator) ones() uint64 { return 2*g.sign() - 1 }

// array returns the operand for the elements of scale bytes that a step reads or writes; with
// scale 0, for the first element of the array. It may use scratch, as do spills: the step must
// have its registers before.
func (g *generator) array(s *step, scale int) asm.Operand {
	at := asm.Operand{Index: index, Scale: scale, Disp: (s.skip*g.width + s.shift) * scale}
	if s.array < len(pointers) {
		at.Base = pointers[s.array]
		return at
	}
	g.loadPointer(scratch, arrayArgument+g.first+s.array)
	at.Base = scratch
	return at
}

// jumpIfNone jumps where a boolean is false in all lanes.
func (g *generator) jumpIfNone(condition int, to *asm.Label) {
	if g.Wide {
		g.VEX(asm.MaskTest, condition, 0, asm.Register(condition), true)
	} else {
		g.Vector(asm.BitsTest, condition, 0, asm.Register(condition))
	}
	g.JumpIf(asm.Equal, to)
}

func (g *generator) copyVector(to, from int) { g.Vector(asm.MoveAll, to, 0, asm.Register(from)) }
