package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
)

// laneMask is the register with the mask of active lanes.
const laneMask = 31

// at selects the lane width; there is one instruction set.
func (g *generator) at(_ simd.Level, long bool) { g.Long = long }

// registers frees all registers.
func (g *generator) registers() {
	g.vector, g.mask = file{holds: map[int]Value{}}, file{holds: map[int]Value{}}
	for r := laneMask - 1; r >= 0; r-- {
		g.vector.free = append(g.vector.free, r)
	}
}

// masks returns false: there are no mask registers.
func (g *generator) masks(dtype.DType) bool { return false }

// loadLaneMask loads the mask of active lanes.
func (g *generator) loadLaneMask() {
	g.loadPointer(scratch, maskArgument)
	g.Two(asm.LoadAt, laneMask, scratch)
}

// splatBits loads a constant into all lanes of a register.
func (g *generator) splatBits(reg int, bits uint64) { g.Constant(reg, bits) }

// moveMasked copies the active lanes.
func (g *generator) moveMasked(to, from int) { g.Three(asm.InsertBits, to, from, laneMask) }

// spill stores a register to its slot, or loads it.
func (g *generator) spill(p *location, out bool) {
	o := asm.LoadAt
	if out {
		o = asm.StoreAt
	}
	g.Two(o|asm.Opcode(p.slot*slotBytes/16)<<10, p.reg, spillBase)
}

// minMax writes x < y ? x : y, or x > y ? x : y.
func (g *generator) minMax(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	d := g.dest()
	if s.kind == minimum {
		g.Three(g.Lanes(asm.GreaterFloat), d, y, x)
	} else {
		g.Three(g.Lanes(asm.GreaterFloat), d, x, y)
	}
	g.Three(asm.ChooseBits, d, x, y)
}

func (g *generator) roundHalf(s *step) {
	x := g.in(s.args[0])
	d := g.dest()
	g.Two(asm.FloatToHalf, d, x)
	g.Two(asm.HalfToFloat, d, d)
}

// shift writes a shift of 32-bit lanes by a constant.
func (g *generator) shift(o asm.Opcode, by, from, to int) { g.Shift(32, o, by, from, to) }

// shiftLanes writes a shift of the kernel's lanes by a constant.
func (g *generator) shiftLanes(o asm.Opcode, by, from, to int) {
	bits := 32
	if g.Long {
		bits = 64
	}
	g.Shift(bits, o, by, from, to)
}

// jumpIfNone jumps where a boolean is false in all lanes.
func (g *generator) jumpIfNone(condition int, to *asm.Label) {
	t := g.temp()
	g.Three(asm.MaxPairs, t, condition, condition)
	g.Two(asm.MoveOut, scratch, t)
	g.JumpIfZero(scratch, to)
}

func (g *generator) copyVector(to, from int) { g.Copy(to, from) }
