package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
)

func (g *generator) load(s *step) {
	if o, ok := longWidenings[s.typ]; ok && g.Long {
		g.Vector32(o, g.dest(), 0, g.array(s, 4))
		return
	}
	switch s.typ {
	case dtype.F16:
		g.Vector(asm.HalfToFloat, g.dest(), 0, g.array(s, 2))
	case dtype.BF16:
		d := g.dest()
		g.Vector(asm.WidenWords, d, 0, g.array(s, 2))
		g.shift(asm.ShiftLeft, 16, d, d)
	case dtype.I8, dtype.U8, dtype.I16, dtype.U16:
		g.Vector(widenings[s.typ], g.dest(), 0, g.array(s, s.typ.Size()))
	case BoolWords:
		g.loadBoolWords(s)
	default:
		d := g.dest()
		at := g.array(s, s.typ.Size())
		g.Vector(asm.MoveIn, d, 0, at)
		if len(g.k.accumulators) > 0 {
			at.Disp += ahead
			g.Prefetch(at)
		}
	}
}

// ahead is the distance in bytes at which reductions prefetch. Each row of a reduction is a
// separate call, and hardware prefetchers stop at pages: on Zen 5 this saves a quarter of the time
// for sums of rows of 4 KB.
const ahead = 4096

func (g *generator) splat(s *step) {
	if s.typ == BoolWords {
		g.boolsFrom(func(r int) { g.Vector32(asm.Broadcast, r, 0, g.array(s, 0)) })
		return
	}
	d := g.dest()
	g.Vector(asm.Broadcast, d, 0, g.array(s, 0))
}

// boolsFrom makes booleans of words 0 or 1, which read loads into a register.
func (g *generator) boolsFrom(read func(r int)) {
	if g.Wide {
		r := g.temp()
		read(r)
		g.EVEX(asm.TestWords, g.dest(), r, asm.Register(r), asm.Masking{})
		return
	}
	d := g.dest()
	read(d)
	g.shift(asm.ShiftLeft, 31, d, d)
	g.shift(asm.ShiftSigned, 31, d, d)
}

// loadBoolWords loads booleans stored as words 0 or 1.
func (g *generator) loadBoolWords(s *step) {
	if g.Long && !g.Wide {
		t := g.temp()
		d := g.dest()
		g.Vector32(asm.WidenSigned, t, 0, g.array(s, 4))
		g.Vector32(asm.BitsXor, d, d, asm.Register(d))
		g.Vector(asm.SubtractInt, d, d, asm.Register(t))
		return
	}
	g.boolsFrom(func(r int) { g.Vector32(asm.MoveIn, r, 0, g.array(s, 4)) })
}

func (g *generator) rotate(s *step) {
	r := g.locations[s.args[0].value].reg
	d := g.dest()
	switch {
	case g.Wide:
		g.EVEX(g.Lanes(asm.AlignWords).Imm(s.lanes), d, r, asm.Register(r), asm.Masking{})
	case 2*s.lanes == g.width:
		g.VEX(asm.PermuteHalves.Imm(0x01), d, r, asm.Register(r), false)
	default:
		to := map[int]int{2: 0x4e, 1: 0x39}[s.lanes]
		if g.Long {
			to = 0x05
		}
		g.Vector(asm.PermuteFour.Imm(to), d, 0, asm.Register(r))
	}
}

// shift writes a shift of 32-bit lanes by a constant.
func (g *generator) shift(how, by, from, to int) { g.Shift(asm.ShiftByByte, how, by, from, to) }

// shiftLanes writes a shift of the kernel's lanes by a constant.
func (g *generator) shiftLanes(how, by, from, to int) {
	o := asm.ShiftByByte
	if g.Long && how != asm.ShiftSigned {
		o = asm.ShiftQuad
	}
	g.Shift(g.Lanes(o), how, by, from, to)
}

func (g *generator) store(s *step) {
	r := g.locations[s.args[0].value].reg
	if _, ok := longWidenings[s.typ]; ok && g.Long {
		g.storeWords(r, s)
		return
	}
	switch s.typ {
	case BoolWords:
		g.storeBoolWords(r, s)
	case dtype.F16:
		g.Vector(asm.FloatToHalf, r, 0, g.array(s, 2))
	case dtype.BF16:
		t := g.temp()
		g.shift(asm.ShiftRight, 16, r, t)
		g.storeNarrow(t, t, s)
	case dtype.I16, dtype.U16:
		g.storeNarrow(r, g.temp(), s)
	case dtype.I8, dtype.U8:
		g.storeBytes(r, s)
	default:
		g.Vector(asm.MoveOut, r, 0, g.array(s, s.typ.Size()))
	}
}

// storeWords stores 64-bit lanes as 32-bit numbers.
func (g *generator) storeWords(r int, s *step) {
	t := g.temp()
	switch {
	case s.typ != dtype.F32:
		g.lowerWords(r, t, s)
	case g.Wide:
		g.Vector32(asm.NarrowDoubles, t, 0, asm.Register(r))
		g.Vector32(asm.WidenUnsigned, t, 0, asm.Register(t)) // lowerWords stores the lower halves of lanes
		g.lowerWords(t, t, s)
	default:
		g.Vector32(asm.NarrowDoubles, t, 0, asm.Register(r))
		g.VEX(asm.MoveOut, t, 0, g.array(s, 4), true)
	}
}

// lowerWords stores the lower halves of 64-bit lanes, through register t.
func (g *generator) lowerWords(r, t int, s *step) {
	if g.Wide {
		g.EVEX(asm.NarrowQuads, r, 0, g.array(s, 4), asm.Masking{})
		return
	}
	g.VEX(asm.ShuffleWords.Imm(0x88), t, r, asm.Register(r), false)
	g.VEX(asm.PermuteQuad.Imm(0x08), t, 0, asm.Register(t), false)
	g.VEX(asm.MoveOut, t, 0, g.array(s, 4), true)
}

// storeBoolWords stores booleans as words 0 or 1.
func (g *generator) storeBoolWords(r int, s *step) {
	t := g.temp()
	switch {
	case g.Wide && g.Long:
		g.EVEX(g.Lanes(asm.OnesWhere), t, 0, asm.Constant(1), asm.Masking{Mask: r, Zero: true})
		g.lowerWords(t, t, s)
		return
	case g.Wide:
		g.EVEX(asm.OnesWhere, t, 0, asm.Constant(1), asm.Masking{Mask: r, Zero: true})
	case g.Long:
		g.shift(asm.ShiftRight, 31, r, t)
		g.lowerWords(t, t, s)
		return
	default:
		g.shift(asm.ShiftRight, 31, r, t)
	}
	g.Vector32(asm.MoveOut, t, 0, g.array(s, 4))
}

// storeFirst stores lane 0.
func (g *generator) storeFirst(s *step) {
	g.Vector(asm.MoveOutFirst, g.locations[s.args[0].value].reg, 0, g.array(s, 0))
}

// storeNarrow stores the lower halves of 32-bit lanes, through register t.
func (g *generator) storeNarrow(r, t int, s *step) {
	if g.Wide {
		g.EVEX(asm.NarrowWords, r, 0, g.array(s, 2), asm.Masking{})
		return
	}
	g.Vector(asm.BitsAnd, t, r, asm.Constant(1<<16-1))
	g.VEX(asm.PackWords, t, t, asm.Register(t), false)
	g.VEX(asm.PermuteQuad.Imm(0xd8), t, 0, asm.Register(t), false)
	g.VEX(asm.MoveOut, t, 0, g.array(s, 2), true)
}

// storeBytes stores the lowest bytes of 32-bit lanes.
func (g *generator) storeBytes(r int, s *step) {
	if g.Wide {
		g.EVEX(asm.NarrowToBytes, r, 0, g.array(s, 1), asm.Masking{})
		return
	}
	t := g.temp()
	g.Vector(asm.BitsAnd, t, r, asm.Constant(1<<8-1))
	g.VEX(asm.PackWords, t, t, asm.Register(t), false)
	g.VEX(asm.PackBytes, t, t, asm.Register(t), false) // four bytes, four times in each half
	g.VEX(asm.PermuteQuad.Imm(0xd8), t, 0, asm.Register(t), false)
	g.VEX(asm.ShuffleInts.Imm(0x08), t, 0, asm.Register(t), true)
	g.VEX(asm.MoveOutQuad, t, 0, g.array(s, 1), true)
}
