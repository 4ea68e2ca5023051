package jit

import "github.com/rlx-go/rlx/ir/dtype"

func (g *generator) load(s *step) {
	d := g.dest()
	if o, ok := longWidenings[s.typ]; ok && g.long {
		g.array(loadNarrow, s, d)
		g.two(o, d, d)
		return
	}
	switch s.typ {
	case dtype.F16:
		g.array(loadNarrow, s, d)
		g.two(halfToFloat, d, d)
	case dtype.BF16:
		g.array(loadNarrow, s, d)
		g.two(widenUpper, d, d)
	case dtype.I8, dtype.U8:
		g.array(loadBytes, s, d)
		g.two(widenings[s.typ], d, d)
		g.two(widenings[dtype.I16]|widenings[s.typ]&unsigned, d, d)
	case dtype.I16, dtype.U16:
		g.array(loadNarrow, s, d)
		g.two(widenings[s.typ], d, d)
	case BoolWords:
		if g.long {
			g.array(loadNarrow, s, d)
			g.two(widenWords|unsigned, d, d)
		} else {
			g.array(loadVector, s, d)
		}
		g.two(g.lanes(negateInt), d, d)
	default:
		g.array(loadVector, s, d)
	}
}

func (g *generator) splat(s *step) {
	d := g.dest()
	switch {
	case s.typ == BoolWords: // all ones in 32-bit lanes are all ones in 64-bit lanes
		g.two(splatAt, d, g.pointer(s))
		g.two(negateInt, d, d)
	case g.long:
		g.two(splatLong, d, g.pointer(s))
	default:
		g.two(splatAt, d, g.pointer(s))
	}
}

func (g *generator) store(s *step) {
	r := g.locations[s.args[0].value].reg
	t := g.temp()
	if _, ok := longWidenings[s.typ]; ok && g.long {
		g.two(g.narrowing(s.typ), t, r)
		g.array(storeNarrow, s, t)
		return
	}
	switch s.typ {
	case BoolWords:
		g.shift(rightUint, 31, r, t)
		if g.long {
			g.two(narrowLanes, t, t)
			g.array(storeNarrow, s, t)
		} else {
			g.array(storeVector, s, t)
		}
	case dtype.F16:
		g.two(floatToHalf, t, r)
		g.array(storeNarrow, s, t)
	case dtype.I8, dtype.U8:
		g.two(narrowWords, t, r)
		g.two(narrowHalves, t, t)
		g.array(storeBytes, s, t)
	case dtype.I16, dtype.U16:
		g.two(narrowWords, t, r)
		g.array(storeNarrow, s, t)
	case dtype.BF16: // already rounded
		g.two(upperHalves, t, r)
		g.array(storeNarrow, s, t)
	default:
		g.array(storeVector, s, r)
	}
}

// longWidenings widen 32-bit numbers to 64-bit lanes.
var longWidenings = map[dtype.DType]opcode{dtype.F32: widenFloats, dtype.I32: widenWords, dtype.U32: widenWords | unsigned}

// narrowing returns the inverse of a widening.
func (g *generator) narrowing(t dtype.DType) opcode {
	if t.IsFloat() {
		return narrowDoubles
	}
	return narrowLanes
}

// storeFirst stores lane 0.
func (g *generator) storeFirst(s *step) {
	o := storeWord
	if g.long {
		o = storeLong
	}
	g.two(o, g.locations[s.args[0].value].reg, g.pointer(s))
}

func (g *generator) rotate(s *step) {
	r := g.locations[s.args[0].value].reg
	g.three(extract|opcode(16/g.width*s.lanes)<<11, g.dest(), r, r)
}

// array loads or stores the elements of a step's array for the current vector.
func (g *generator) array(o opcode, s *step, reg int) {
	index := vectors
	if s.skip > 0 {
		index = scratch2
		g.add(index, vectors, s.skip)
	}
	g.three(o, reg, g.pointer(s), index)
}

// pointer returns the register with the address of a step's array.
func (g *generator) pointer(s *step) int {
	if s.array < len(pointers) {
		return pointers[s.array]
	}
	g.loadPointer(scratch, arrayArgument+g.first+s.array)
	return scratch
}
