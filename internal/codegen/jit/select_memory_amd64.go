package jit

import (
	"github.com/rlx-go/rlx/ir/dtype"
)

func (g *generator) load(s *step) {
	if o, ok := longWidenings[s.typ]; ok && g.long {
		g.vec32(o, g.dest(), 0, g.array(s, 4))
		return
	}
	switch s.typ {
	case dtype.F16:
		g.vec(halfToFloat, g.dest(), 0, g.array(s, 2))
	case dtype.BF16:
		d := g.dest()
		g.vec(widenWords, d, 0, g.array(s, 2))
		g.shift(shiftLeft, 16, d, d)
	case dtype.I8, dtype.U8, dtype.I16, dtype.U16:
		g.vec(widenings[s.typ], g.dest(), 0, g.array(s, s.typ.Size()))
	case BoolWords:
		g.loadBoolWords(s)
	default:
		d := g.dest()
		at := g.array(s, s.typ.Size())
		g.vec(moveIn, d, 0, at)
		if len(g.k.accumulators) > 0 {
			at.disp += ahead
			g.prefetch(at)
		}
	}
}

// ahead is how many bytes before its use memory is asked for. What goes through a
// row first, a reduction, is called for each anew, and processors do not guess
// what comes in the next page: on Zen 5 sums of rows of 4 KB take a quarter less
// time by it.
const ahead = 4096

func (g *generator) splat(s *step) {
	if s.typ == BoolWords {
		g.boolsFrom(func(r int) { g.vec32(broadcast, r, 0, g.array(s, 0)) })
		return
	}
	d := g.dest()
	g.vec(broadcast, d, 0, g.array(s, 0))
}

// boolsFrom makes truths of words, 0 or 1, that read puts into a register.
func (g *generator) boolsFrom(read func(r int)) {
	if g.wide {
		r := g.temp()
		read(r)
		g.evex(testWords, g.dest(), r, register(r), masking{})
		return
	}
	d := g.dest()
	read(d)
	g.shift(shiftLeft, 31, d, d)
	g.shift(shiftSigned, 31, d, d)
}

// loadBoolWords reads words, 0 or 1.
func (g *generator) loadBoolWords(s *step) {
	if g.long && !g.wide {
		t := g.temp()
		d := g.dest()
		g.vec32(widenSigned, t, 0, g.array(s, 4))
		g.vec32(bitsXor, d, d, register(d))
		g.vec(subtractInt, d, d, register(t))
		return
	}
	g.boolsFrom(func(r int) { g.vec32(moveIn, r, 0, g.array(s, 4)) })
}

// longWidenings read numbers of 32 bits as long lanes.
var longWidenings = map[dtype.DType]opcode{dtype.F32: widenFloats, dtype.I32: widenSigned, dtype.U32: widenUnsigned}

func (g *generator) rotate(s *step) {
	r := g.locations[s.args[0].value].reg
	d := g.dest()
	switch {
	case g.wide:
		o := g.lanes(alignWords)
		o.imm = s.lanes
		g.evex(o, d, r, register(r), masking{})
	case 2*s.lanes == g.width:
		g.vex(swapHalves, d, r, register(r), false)
	default:
		o := permuteFour
		o.imm = map[int]int{2: 0x4e, 1: 0x39}[s.lanes]
		if g.long {
			o.imm = 0x05
		}
		g.vec(o, d, 0, register(r))
	}
}

// shift writes a shift of words by a constant.
func (g *generator) shift(how, by, from, to int) {
	o := shiftByByte
	o.imm = by
	g.shiftBy(o, how, from, to)
}

// shiftLanes writes a shift of lanes by a constant.
func (g *generator) shiftLanes(how, by, from, to int) {
	o := shiftByByte
	if g.long {
		if o = g.lanes(o); how != shiftSigned {
			o.code = shiftQuad.code
		}
	}
	o.imm = by
	g.shiftBy(o, how, from, to)
}

func (g *generator) shiftBy(o opcode, how, from, to int) {
	if g.wide {
		g.evex(o, how, to, register(from), masking{})
	} else {
		g.vex(o, how, to, register(from), false)
	}
}

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
		g.vec32(narrowDoubles, t, 0, register(r))
		g.vec32(widenUnsigned, t, 0, register(t)) // what follows writes halves of registers
		g.lowerWords(t, t, s)
	default:
		g.vec32(narrowDoubles, t, 0, register(r))
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
	g.vec32(moveOut, t, 0, g.array(s, 4))
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
