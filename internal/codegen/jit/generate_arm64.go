package jit

import (
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
)

// laneMask is the register that has the lanes that count.
const laneMask = 31

// at makes the encoder one for lanes of 32 bits or of 64; there is one level.
func (g *generator) at(_ simd.Level, long bool) { g.long = long }

// lanes returns an instruction for the lanes of the kernel: one bit of most of them, on
// floats or integers, says that these have 64 bits.
func (g *generator) lanes(o opcode) opcode {
	if g.long {
		return o | 1<<22
	}
	return o
}

// registers makes all registers free.
func (g *generator) registers() {
	g.vector, g.mask = file{holds: map[int]Value{}}, file{holds: map[int]Value{}}
	for r := laneMask - 1; r >= 0; r-- {
		g.vector.free = append(g.vector.free, r)
	}
}

// masks reports whether values of a type lie in mask registers: there are none.
func (g *generator) masks(dtype.DType) bool { return false }

// loadLaneMask reads which lanes count.
func (g *generator) loadLaneMask() {
	g.loadPointer(scratch, maskArgument)
	g.two(loadAt, laneMask, scratch)
}

// splatBits puts a word into all lanes of a register.
func (g *generator) splatBits(reg int, bits uint64) { g.constant(reg, bits) }

// moveMasked copies the lanes that count.
func (g *generator) moveMasked(to, from int) { g.three(insertBits, to, from, laneMask) }

// spill moves a register to its slot or back.
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

// shift writes a shift of words by a constant, one of the instructions for that.
func (g *generator) shift(o opcode, by, from, to int) { g.shiftOf(32, o, by, from, to) }

// shiftLanes writes a shift of lanes by a constant.
func (g *generator) shiftLanes(o opcode, by, from, to int) {
	if g.long {
		g.shiftOf(64, o, by, from, to)
	} else {
		g.shift(o, by, from, to)
	}
}

// shiftOf writes a shift of lanes of so many bits: to the left their number and by how
// many, to the right twice their number without them; instructions have those of 32.
func (g *generator) shiftOf(bits int, o opcode, by, from, to int) {
	if o == leftBy {
		by += bits - 32
	} else {
		by = 2*(bits-32) - by
	}
	g.two(opcode(int(o)+by<<16), to, from)
}
