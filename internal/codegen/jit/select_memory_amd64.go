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

// ahead is the distance in bytes at which reductions prefetch. Each row of a reduction is a
// call of its own, and hardware prefetchers stop at pages: on Zen 5 this saves a quarter of
// the time for sums of rows of 4 KB.
const ahead = 4096

func (g *generator) splat(s *step) {
	if s.typ == BoolWords {
		g.boolsFrom(func(r int) { g.vec32(broadcast, r, 0, g.array(s, 0)) })
		return
	}
	d := g.dest()
	g.vec(broadcast, d, 0, g.array(s, 0))
}

// boolsFrom makes booleans of words 0 or 1, which read loads into a register.
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

// loadBoolWords loads booleans stored as words 0 or 1.
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

// longWidenings load 32-bit numbers as 64-bit lanes.
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

// shift writes a shift of 32-bit lanes by a constant.
func (g *generator) shift(how, by, from, to int) {
	o := shiftByByte
	o.imm = by
	g.shiftBy(o, how, from, to)
}

// shiftLanes writes a shift of the kernel's lanes by a constant.
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

// storeWords stores 64-bit lanes as 32-bit numbers.
func (g *generator) storeWords(r int, s *step) {
	t := g.temp()
	switch {
	case s.typ != dtype.F32:
		g.lowerWords(r, t, s)
	case g.wide:
		g.vec32(narrowDoubles, t, 0, register(r))
		g.vec32(widenUnsigned, t, 0, register(t)) // lowerWords stores the lower halves of lanes
		g.lowerWords(t, t, s)
	default:
		g.vec32(narrowDoubles, t, 0, register(r))
		g.vex(moveOut, t, 0, g.array(s, 4), true)
	}
}

// lowerWords stores the lower halves of 64-bit lanes, through register t.
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

// storeBoolWords stores booleans as words 0 or 1.
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

// storeFirst stores lane 0.
func (g *generator) storeFirst(s *step) {
	g.vec(moveOutFirst, g.locations[s.args[0].value].reg, 0, g.array(s, 0))
}

// storeNarrow stores the lower halves of 32-bit lanes, through register t.
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

// storeBytes stores the lowest bytes of 32-bit lanes.
func (g *generator) storeBytes(r int, s *step) {
	if g.wide {
		g.evex(narrowToBytes, r, 0, g.array(s, 1), masking{})
		return
	}
	t := g.temp()
	g.vec(bitsAnd, t, r, g.word(1<<8-1))
	g.vex(packWords, t, t, register(t), false)
	g.vex(packBytes, t, t, register(t), false) // four bytes, four times in each half
	g.vex(permuteQuad, t, 0, register(t), false)
	g.vex(pairWords, t, 0, register(t), true)
	g.vex(moveOutQuad, t, 0, g.array(s, 1), true)
}
