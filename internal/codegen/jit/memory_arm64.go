package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
)

func (m *memory) load(s *step) {
	d := m.dest()
	if o, ok := longWidenings[s.typ]; ok && m.Long {
		m.array(asm.LoadNarrow, s, d)
		m.Two(o, d, d)
		return
	}
	switch s.typ {
	case dtype.F16:
		m.array(asm.LoadNarrow, s, d)
		m.Two(asm.HalfToFloat, d, d)
	case dtype.BF16:
		m.array(asm.LoadNarrow, s, d)
		m.Two(asm.WidenUpper, d, d)
	case dtype.I8, dtype.U8:
		m.array(asm.LoadBytes, s, d)
		m.Two(widenings[s.typ], d, d)
		m.Two(widenings[dtype.I16]|widenings[s.typ]&asm.Unsigned, d, d)
	case dtype.I16, dtype.U16:
		m.array(asm.LoadNarrow, s, d)
		m.Two(widenings[s.typ], d, d)
	case BoolWords:
		if m.Long {
			m.array(asm.LoadNarrow, s, d)
			m.Two(asm.WidenWords|asm.Unsigned, d, d)
		} else {
			m.array(asm.LoadVector, s, d)
		}
		m.Two(m.Lanes(asm.NegateInt), d, d)
	default:
		m.array(asm.LoadVector, s, d)
	}
}

func (m *memory) splat(s *step) {
	d := m.dest()
	switch {
	case s.typ == BoolWords: // all ones in 32-bit lanes are all ones in 64-bit lanes
		m.Two(asm.SplatAt, d, m.pointer(s))
		m.Two(asm.NegateInt, d, d)
	case m.Long:
		m.Two(asm.SplatLong, d, m.pointer(s))
	default:
		m.Two(asm.SplatAt, d, m.pointer(s))
	}
}

func (m *memory) store(s *step) {
	r := m.locations[s.args[0].value].reg
	t := m.temp()
	if _, ok := longWidenings[s.typ]; ok && m.Long {
		m.Two(narrowing(s.typ), t, r)
		m.array(asm.StoreNarrow, s, t)
		return
	}
	switch s.typ {
	case BoolWords:
		m.shift(asm.RightUint, 31, r, t)
		if m.Long {
			m.Two(asm.NarrowLanes, t, t)
			m.array(asm.StoreNarrow, s, t)
		} else {
			m.array(asm.StoreVector, s, t)
		}
	case dtype.F16:
		m.Two(asm.FloatToHalf, t, r)
		m.array(asm.StoreNarrow, s, t)
	case dtype.I8, dtype.U8:
		m.Two(asm.NarrowWords, t, r)
		m.Two(asm.NarrowHalves, t, t)
		m.array(asm.StoreBytes, s, t)
	case dtype.I16, dtype.U16:
		m.Two(asm.NarrowWords, t, r)
		m.array(asm.StoreNarrow, s, t)
	case dtype.BF16: // already rounded
		m.Two(asm.UpperHalves, t, r)
		m.array(asm.StoreNarrow, s, t)
	default:
		m.array(asm.StoreVector, s, r)
	}
}

// narrowing returns the inverse of a widening.
func narrowing(t dtype.DType) asm.Opcode {
	if t.IsFloat() {
		return asm.NarrowDoubles
	}
	return asm.NarrowLanes
}

// storeFirst stores lane 0.
func (m *memory) storeFirst(s *step) {
	o := asm.StoreWord
	if m.Long {
		o = asm.StoreLong
	}
	m.Two(o, m.locations[s.args[0].value].reg, m.pointer(s))
}

// array loads or stores the elements of a step's array for the current vector.
func (m *memory) array(o asm.Opcode, s *step, reg int) {
	index := vectors
	if s.skip > 0 {
		index = scratch2
		m.AddConst(index, vectors, s.skip)
	}
	m.Three(o, reg, m.pointer(s), index)
}

// pointer returns the register with the address of a step's array.
func (m *memory) pointer(s *step) int {
	if s.array < len(pointers) {
		return pointers[s.array]
	}
	m.loadPointer(scratch, arrayArgument+m.first+s.array)
	return scratch
}
