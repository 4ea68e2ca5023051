package jit

import "github.com/rlx-go/rlx/ir/dtype"

func (g *generator) load(s *step) {
	switch s.typ {
	case dtype.F16:
		g.vec(halfToFloat, g.dest(), 0, g.array(s, 2))
	case dtype.BF16:
		d := g.dest()
		g.vec(widenWords, d, 0, g.array(s, 2))
		g.shift(shiftLeft, 16, d, d)
	case Truths:
		g.truthsFrom(func(r int) { g.vec(moveIn, r, 0, g.array(s, 4)) })
	default:
		d := g.dest()
		at := g.array(s, 4)
		g.vec(moveIn, d, 0, at)
		if len(g.k.running) > 0 {
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

func (g *generator) spread(s *step) {
	if s.typ == Truths {
		g.truthsFrom(func(r int) { g.vec(broadcast, r, 0, g.array(s, 0)) })
		return
	}
	d := g.dest()
	g.vec(broadcast, d, 0, g.array(s, 0))
}

// truthsFrom makes truths of words, 0 or 1, that read puts into a register.
func (g *generator) truthsFrom(read func(r int)) {
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

func (g *generator) store(s *step) {
	r := g.places[s.args[0].value].reg
	switch s.typ {
	case Truths:
		t := g.temp()
		if g.wide {
			g.evex(onesWhere, t, 0, g.word(1), masking{mask: r, zero: true})
		} else {
			g.shift(shiftRight, 31, r, t)
		}
		g.vec(moveOut, t, 0, g.array(s, 4))
	case dtype.F16:
		g.vec(floatToHalf, r, 0, g.array(s, 2))
	case dtype.BF16:
		g.storeUpperHalves(r, s)
	default:
		g.vec(moveOut, r, 0, g.array(s, 4))
	}
}

// storeFirst stores the first lane of a value of 32 bits.
func (g *generator) storeFirst(s *step) {
	g.vec(moveOutFirst, g.places[s.args[0].value].reg, 0, g.array(s, 0))
}

// storeUpperHalves stores numbers that have been rounded to bf16.
func (g *generator) storeUpperHalves(r int, s *step) {
	t := g.temp()
	g.shift(shiftRight, 16, r, t)
	if g.wide {
		g.evex(narrowWords, t, 0, g.array(s, 2), masking{})
		return
	}
	g.vex(packWords, t, t, register(t), false)
	g.vexQuad(permuteQuad, t, register(t))
	g.vex(moveOut, t, 0, g.array(s, 2), true)
}

func (g *generator) rotate(s *step) {
	r := g.places[s.args[0].value].reg
	d := g.dest()
	if g.wide {
		o := alignWords
		o.imm = s.lanes
		g.evex(o, d, r, register(r), masking{})
		return
	}
	switch s.lanes {
	case 4:
		g.vex(swapHalves, d, r, register(r), false)
	default:
		o := permuteFour
		o.imm = map[int]int{2: 0x4e, 1: 0x39}[s.lanes]
		g.vex(o, d, 0, register(r), false)
	}
}

// shift writes a shift by a constant.
func (g *generator) shift(how, by, from, to int) {
	o := shiftByByte
	o.imm = by
	if g.wide {
		g.evex(o, how, to, register(from), masking{})
	} else {
		g.vex(o, how, to, register(from), false)
	}
}
