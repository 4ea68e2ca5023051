package jit

import (
	"github.com/rlx-go/rlx/internal/codegen/asm"
	"github.com/rlx-go/rlx/ir/dtype"
)

func (m *memory) load(s *step) {
	if o, ok := longWidenings[s.typ]; ok && m.Long {
		m.Vector32(o, m.dest(), 0, m.array(s, 4))
		return
	}
	switch s.typ {
	case dtype.F16:
		m.Vector(asm.HalfToFloat, m.dest(), 0, m.array(s, 2))
	case dtype.BF16:
		d := m.dest()
		m.Vector(asm.WidenWords, d, 0, m.array(s, 2))
		m.shift(asm.ShiftLeft, 16, d, d)
	case dtype.I8, dtype.U8, dtype.I16, dtype.U16:
		m.Vector(widenings[s.typ], m.dest(), 0, m.array(s, s.typ.Size()))
	case BoolWords:
		m.loadBoolWords(s)
	default:
		d := m.dest()
		at := m.array(s, s.typ.Size())
		m.Vector(asm.MoveIn, d, 0, at)
		if m.prefetches {
			at.Disp += ahead
			m.Prefetch(at)
		}
	}
}

// ahead is the distance in bytes at which reductions prefetch. Each row of a reduction is a
// separate call, and hardware prefetchers stop at pages: on Zen 5 this saves a quarter of the time
// for sums of rows of 4 KB.
const ahead = 4096

func (m *memory) splat(s *step) {
	if s.typ == BoolWords {
		m.boolsFrom(func(r int) { m.Vector32(asm.Broadcast, r, 0, m.array(s, 0)) })
		return
	}
	d := m.dest()
	m.Vector(asm.Broadcast, d, 0, m.array(s, 0))
}

// boolsFrom makes booleans of words 0 or 1, which read loads into a register.
func (m *memory) boolsFrom(read func(r int)) {
	if m.Wide {
		r := m.temp()
		read(r)
		m.EVEX(asm.TestWords, m.dest(), r, asm.Register(r), asm.Masking{})
		return
	}
	d := m.dest()
	read(d)
	m.shift(asm.ShiftLeft, 31, d, d)
	m.shift(asm.ShiftSigned, 31, d, d)
}

// loadBoolWords loads booleans stored as words 0 or 1.
func (m *memory) loadBoolWords(s *step) {
	if m.Long && !m.Wide {
		t := m.temp()
		d := m.dest()
		m.Vector32(asm.WidenSigned, t, 0, m.array(s, 4))
		m.Vector32(asm.BitsXor, d, d, asm.Register(d))
		m.Vector(asm.SubtractInt, d, d, asm.Register(t))
		return
	}
	m.boolsFrom(func(r int) { m.Vector32(asm.MoveIn, r, 0, m.array(s, 4)) })
}

func (m *memory) store(s *step) {
	r := m.locations[s.args[0].value].reg
	if _, ok := longWidenings[s.typ]; ok && m.Long {
		m.storeWords(r, s)
		return
	}
	switch s.typ {
	case BoolWords:
		m.storeBoolWords(r, s)
	case dtype.F16:
		m.Vector(asm.FloatToHalf, r, 0, m.array(s, 2))
	case dtype.BF16:
		t := m.temp()
		m.shift(asm.ShiftRight, 16, r, t)
		m.storeNarrow(t, t, s)
	case dtype.I16, dtype.U16:
		m.storeNarrow(r, m.temp(), s)
	case dtype.I8, dtype.U8:
		m.storeBytes(r, s)
	default:
		m.storeLanes(r, s)
	}
}

// storeLanes stores lanes as they are.
func (m *memory) storeLanes(r int, s *step) {
	switch {
	case !m.once:
		m.Vector(asm.MoveOut, r, 0, m.array(s, s.typ.Size()))
	case m.Wide:
		m.EVEX(m.Lanes(asm.MoveOut), r, 0, m.array(s, s.typ.Size()), asm.Masking{Mask: laneMask})
	default:
		t := m.temp()
		at := m.array(s, s.typ.Size())
		m.Vector(asm.MoveIn, t, 0, at)
		m.VEX(m.Lanes(asm.BlendVector).Imm(lastVector<<4), t, t, asm.Register(r), false)
		m.Vector(asm.MoveOut, t, 0, at)
	}
}

// storeWords stores 64-bit lanes as 32-bit numbers.
func (m *memory) storeWords(r int, s *step) {
	t := m.temp()
	switch {
	case s.typ != dtype.F32:
		m.lowerWords(r, t, s)
	case m.Wide:
		m.Vector32(asm.NarrowDoubles, t, 0, asm.Register(r))
		m.Vector32(asm.WidenUnsigned, t, 0, asm.Register(t)) // lowerWords stores the lower halves of lanes
		m.lowerWords(t, t, s)
	default:
		m.Vector32(asm.NarrowDoubles, t, 0, asm.Register(r))
		m.VEX(asm.MoveOut, t, 0, m.array(s, 4), true)
	}
}

// lowerWords stores the lower halves of 64-bit lanes, through register t.
func (m *memory) lowerWords(r, t int, s *step) {
	if m.Wide {
		m.EVEX(asm.NarrowQuads, r, 0, m.array(s, 4), asm.Masking{})
		return
	}
	m.VEX(asm.ShuffleWords.Imm(0x88), t, r, asm.Register(r), false)
	m.VEX(asm.PermuteQuad.Imm(0x08), t, 0, asm.Register(t), false)
	m.VEX(asm.MoveOut, t, 0, m.array(s, 4), true)
}

// storeBoolWords stores booleans as words 0 or 1.
func (m *memory) storeBoolWords(r int, s *step) {
	t := m.temp()
	switch {
	case m.Wide && m.Long:
		m.EVEX(m.Lanes(asm.OnesWhere), t, 0, asm.Constant(1), asm.Masking{Mask: r, Zero: true})
		m.lowerWords(t, t, s)
		return
	case m.Wide:
		m.EVEX(asm.OnesWhere, t, 0, asm.Constant(1), asm.Masking{Mask: r, Zero: true})
	case m.Long:
		m.shift(asm.ShiftRight, 31, r, t)
		m.lowerWords(t, t, s)
		return
	default:
		m.shift(asm.ShiftRight, 31, r, t)
	}
	m.Vector32(asm.MoveOut, t, 0, m.array(s, 4))
}

// storeFirst stores lane 0.
func (m *memory) storeFirst(s *step) {
	m.Vector(asm.MoveOutFirst, m.locations[s.args[0].value].reg, 0, m.array(s, 0))
}

// storeNarrow stores the lower halves of 32-bit lanes, through register t.
func (m *memory) storeNarrow(r, t int, s *step) {
	if m.Wide {
		m.EVEX(asm.NarrowWords, r, 0, m.array(s, 2), asm.Masking{})
		return
	}
	m.Vector(asm.BitsAnd, t, r, asm.Constant(1<<16-1))
	m.VEX(asm.PackWords, t, t, asm.Register(t), false)
	m.VEX(asm.PermuteQuad.Imm(0xd8), t, 0, asm.Register(t), false)
	m.VEX(asm.MoveOut, t, 0, m.array(s, 2), true)
}

// storeBytes stores the lowest bytes of 32-bit lanes.
func (m *memory) storeBytes(r int, s *step) {
	if m.Wide {
		m.EVEX(asm.NarrowToBytes, r, 0, m.array(s, 1), asm.Masking{})
		return
	}
	t := m.temp()
	m.Vector(asm.BitsAnd, t, r, asm.Constant(1<<8-1))
	m.VEX(asm.PackWords, t, t, asm.Register(t), false)
	m.VEX(asm.PackBytes, t, t, asm.Register(t), false) // four bytes, four times in each half
	m.VEX(asm.PermuteQuad.Imm(0xd8), t, 0, asm.Register(t), false)
	m.VEX(asm.ShuffleInts.Imm(0x08), t, 0, asm.Register(t), true)
	m.VEX(asm.MoveOutQuad, t, 0, m.array(s, 1), true)
}

// array returns the operand for the elements of scale bytes that a step reads or writes; with
// scale 0, for the first element of the array. It may use scratch, as do spills: the step must
// have its registers before.
func (m *memory) array(s *step, scale int) asm.Operand {
	at := asm.Operand{Index: index, Scale: scale, Disp: (s.skip*m.width + s.shift) * scale}
	if s.array < len(pointers) {
		at.Base = pointers[s.array]
		return at
	}
	m.loadPointer(scratch, arrayArgument+m.first+s.array)
	at.Base = scratch
	return at
}
