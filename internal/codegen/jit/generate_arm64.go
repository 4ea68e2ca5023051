package jit

import (
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
)

// laneMask is the register with the mask of active lanes.
const laneMask = 31

// at selects the lane width; there is one instruction set.
func (g *generator) at(_ simd.Level, long bool) { g.long = long }

// lanes returns the form of an instruction for the lane width of the kernel, which most encode
// in one bit.
func (g *generator) lanes(o opcode) opcode {
	if g.long {
		return o | 1<<22
	}
	return o
}

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
	g.two(loadAt, laneMask, scratch)
}

// splatBits loads a constant into all lanes of a register.
func (g *generator) splatBits(reg int, bits uint64) { g.constant(reg, bits) }

// moveMasked copies the active lanes.
func (g *generator) moveMasked(to, from int) { g.three(insertBits, to, from, laneMask) }

// spill stores a register to its slot, or loads it.
func (g *generator) spill(p *location, out bool) {
	o := loadAt
	if out {
		o = storeAt
	}
	g.two(o|opcode(p.slot*slotBytes/16)<<10, p.reg, spillBase)
}

// minMax writes x < y ? x : y, or x > y ? x : y.
func (g *generator) minMax(s *step) {
	x, y := g.in(s.args[0]), g.in(s.args[1])
	d := g.dest()
	if s.kind == minimum {
		g.three(g.lanes(greaterFloat), d, y, x)
	} else {
		g.three(g.lanes(greaterFloat), d, x, y)
	}
	g.three(chooseBits, d, x, y)
}

func (g *generator) roundHalf(s *step) {
	x := g.in(s.args[0])
	d := g.dest()
	g.two(floatToHalf, d, x)
	g.two(halfToFloat, d, d)
}

// shift writes a shift of 32-bit lanes by a constant.
func (g *generator) shift(o opcode, by, from, to int) { g.shiftOf(32, o, by, from, to) }

// shiftLanes writes a shift of the kernel's lanes by a constant.
func (g *generator) shiftLanes(o opcode, by, from, to int) {
	if g.long {
		g.shiftOf(64, o, by, from, to)
	} else {
		g.shift(o, by, from, to)
	}
}

// shiftOf writes a shift of lanes of the given bits. The immediate field is bits + by for left
// shifts and 2·bits - by for right shifts; o is the instruction for 32-bit lanes.
func (g *generator) shiftOf(bits int, o opcode, by, from, to int) {
	if o == leftBy {
		by += bits - 32
	} else {
		by = 2*(bits-32) - by
	}
	g.two(opcode(int(o)+by<<16), to, from)
}
