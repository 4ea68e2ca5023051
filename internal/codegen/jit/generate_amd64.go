package jit

import (
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir/dtype"
)

// lastMask is the register that has the lanes that count.
const (
	lastMask   = 7
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
		for r := lastMask - 1; r > 0; r-- {
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
		g.evex(g.lanes(testWords), lastMask, t, register(t), masking{})
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
		g.evex(g.lanes(moveAll), to, 0, register(from), masking{mask: lastMask})
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
