package jit

import (
	"github.com/rlx-go/rlx/ir/dtype"
)

func (g *generator) store(s *step) {
	r := g.locations[s.args[0].value].reg
	if _, ok := longWidenings[s.typ]; ok && g.long {
		g.storeWords(r, s)
		return
	}
	switch s.typ {
	case BoolWords:
		g.storeBoolWords(r, s)
	case dtype.F16:
		g.vec(floatToHalf, r, 0, g.array(s, 2))
	case dtype.BF16:
		t := g.temp()
		g.shift(shiftRight, 16, r, t)
		g.storeNarrow(t, t, s)
	case dtype.I16, dtype.U16:
		g.storeNarrow(r, g.temp(), s)
	case dtype.I8, dtype.U8:
		g.storeBytes(r, s)
	default:
		g.vec(moveOut, r, 0, g.array(s, s.typ.Size()))
	}
}

// storeWords stores long lanes as numbers of 32 bits.
func (g *generator) storeWords(r int, s *step) {
	t := g.temp()
	switch {
	case s.typ != dtype.F32:
		g.lowerWords(r, t, s)
	case g.wide:
		g.words(narrowDoubles, t, 0, register(r))
		g.words(widenUnsigned, t, 0, register(t)) // what follows writes halves of registers
		g.lowerWords(t, t, s)
	default:
		g.words(narrowDoubles, t, 0, register(r))
		g.vex(moveOut, t, 0, g.array(s, 4), true)
	}
}

// lowerWords stores the lower words of long lanes, by way of t.
func (g *generator) lowerWords(r, t int, s *step) {
	if g.wide {
		g.evex(narrowQuads, r, 0, g.array(s, 4), masking{})
		return
	}
	g.vex(lowerWords, t, r, register(r), false)
	o := permuteQuad
	o.imm = 0x08
	g.vex(o, t, 0, register(t), false)
	g.vex(moveOut, t, 0, g.array(s, 4), true)
}

// storeBoolWords writes words, 0 or 1.
func (g *generator) storeBoolWords(r int, s *step) {
	t := g.temp()
	switch {
	case g.wide && g.long:
		g.evex(g.lanes(onesWhere), t, 0, g.word(1), masking{mask: r, zero: true})
		g.lowerWords(t, t, s)
		return
	case g.wide:
		g.evex(onesWhere, t, 0, g.word(1), masking{mask: r, zero: true})
	case g.long:
		g.shift(shiftRight, 31, r, t)
		g.lowerWords(t, t, s)
		return
	default:
		g.shift(shiftRight, 31, r, t)
	}
	g.words(moveOut, t, 0, g.array(s, 4))
}

// storeFirst stores the first lane of a value of 32 bits.
func (g *generator) storeFirst(s *step) {
	g.vec(moveOutFirst, g.locations[s.args[0].value].reg, 0, g.array(s, 0))
}

// storeNarrow stores the lower halves of words, by way of t.
func (g *generator) storeNarrow(r, t int, s *step) {
	if g.wide {
		g.evex(narrowWords, r, 0, g.array(s, 2), masking{})
		return
	}
	g.vec(bitsAnd, t, r, g.word(1<<16-1))
	g.vex(packWords, t, t, register(t), false)
	g.vex(permuteQuad, t, 0, register(t), false)
	g.vex(moveOut, t, 0, g.array(s, 2), true)
}

// storeBytes stores the lowest bytes of words.
func (g *generator) storeBytes(r int, s *step) {
	if g.wide {
		g.evex(narrowToBytes, r, 0, g.array(s, 1), masking{})
		return
	}
	t := g.temp()
	g.vec(bitsAnd, t, r, g.word(1<<8-1))
	g.vex(packWords, t, t, register(t), false)
	g.vex(packBytes, t, t, register(t), false) // four bytes of each half, four times
	g.vex(permuteQuad, t, 0, register(t), false)
	g.vex(pairWords, t, 0, register(t), true)
	g.vex(moveOutQuad, t, 0, g.array(s, 1), true)
}
