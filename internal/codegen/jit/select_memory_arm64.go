package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
)

func (g *generator) load(s *step) {
	d := g.dest()
	if o, ok := longWidenings[s.typ]; ok && g.Long {
		g.array(asm.LoadNarrow, s, d)
		g.Two(o, d, d)
		return
	}
	switch s.typ {
	case dtype.F16:
		g.array(asm.LoadNarrow, s, d)
		g.Two(asm.HalfToFloat, d, d)
	case dtype.BF16:
		g.array(asm.LoadNarrow, s, d)
		g.Two(asm.WidenUpper, d, d)
	case dtype.I8, dtype.U8:
		g.array(asm.LoadBytes, s, d)
		g.Two(widenings[s.typ], d, d)
		g.Two(widenings[dtype.I16]|widenings[s.typ]&asm.Unsigned, d, d)
	case dtype.I16, dtype.U16:
		g.array(asm.LoadNarrow, s, d)
		g.Two(widenings[s.typ], d, d)
	case BoolWords:
		if g.Long {
			g.array(asm.LoadNarrow, s, d)
			g.Two(asm.WidenWords|asm.Unsigned, d, d)
		} else {
			g.array(asm.LoadVector, s, d)
		}
		g.Two(g.Lanes(asm.NegateInt), d, d)
	default:
		g.array(asm.LoadVector, s, d)
	}
}

func (g *generator) splat(s *step) {
	d := g.dest()
	switch {
	case s.typ == BoolWords: // all ones in 32-bit lanes are all ones in 64-bit lanes
		g.Two(asm.SplatAt, d, g.pointer(s))
		g.Two(asm.NegateInt, d, d)
	case g.Long:
		g.Two(asm.SplatLong, d, g.pointer(s))
	default:
		g.Two(asm.SplatAt, d, g.pointer(s))
	}
}

func (g *generator) store(s *step) {
	r := g.locations[s.args[0].value].reg
	t := g.temp()
	if _, ok := longWidenings[s.typ]; ok && g.Long {
		g.Two(g.narrowing(s.typ), t, r)
		g.array(asm.StoreNarrow, s, t)
		return
	}
	switch s.typ {
	case BoolWords:
		g.shift(asm.RightUint, 31, r, t)
		if g.Long {
			g.Two(asm.NarrowLanes, t, t)
			g.array(asm.StoreNarrow, s, t)
		} else {
			g.array(asm.StoreVector, s, t)
		}
	case dtype.F16:
		g.Two(asm.FloatToHalf, t, r)
		g.array(asm.StoreNarrow, s, t)
	case dtype.I8, dtype.U8:
		g.Two(asm.NarrowWords, t, r)
		g.Two(asm.NarrowHalves, t, t)
		g.array(asm.StoreBytes, s, t)
	case dtype.I16, dtype.U16:
		g.Two(asm.NarrowWords, t, r)
		g.array(asm.StoreNarrow, s, t)
	case dtype.BF16: // already rounded
		g.Two(asm.UpperHalves, t, r)
		g.array(asm.StoreNarrow, s, t)
	default:
		g.array(asm.StoreVector, s, r)
	}
}

// narrowing returns the inverse of a widening.
func (g *generator) narrowing(t dtype.DType) asm.Opcode {
	if t.IsFloat() {
		return asm.NarrowDoubles
	}
	return asm.NarrowLanes
}

// storeFirst stores lane 0.
func (g *generator) storeFirst(s *step) {
	o := asm.StoreWord
	if g.Long {
		o = asm.StoreLong
	}
	g.Two(o, g.locations[s.args[0].value].reg, g.pointer(s))
}

func (g *generator) rotate(s *step) {
	r := g.locations[s.args[0].value].reg
	g.Three(asm.Extract|asm.Opcode(16/g.width*s.lanes)<<11, g.dest(), r, r)
}

// array loads or stores the elements of a step's array for the current vector.
func (g *generator) array(o asm.Opcode, s *step, reg int) {
	index := vectors
	if s.skip > 0 {
		index = scratch2
		g.AddConst(index, vectors, s.skip)
	}
	g.Three(o, reg, g.pointer(s), index)
}

// pointer returns the register with the address of a step's array.
func (g *generator) pointer(s *step) int {
	if s.array < len(pointers) {
		return pointers[s.array]
	}
	g.loadPointer(scratch, arrayArgument+g.first+s.array)
	return scratch
}
