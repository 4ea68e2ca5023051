package jit

import (
	"math/bits"

	"github.com/rlx-go/rlx/internal/codegen/asm"
)

// HasShifts reports whether kernels have [Kernel.Shift].
func HasShifts() bool { return true }

func hasRuns() bool { return true }

// runWord is the size in bytes of elements in runs.
const runWord = 4

// runStart loads the address of a vector's first run into scratch. Where runs at least as long as a
// vector have contiguous elements, the address lacks the bytes before the index.
func (m *memory) runStart(s *step) {
	r := s.runs
	step := r.Jump
	if r.Length >= m.width {
		step -= r.Length * r.Stride
	}
	m.General(asm.Address, scratch, asm.At(index, s.skip*m.width))
	m.ShiftRight(scratch, bits.TrailingZeros(uint(r.Length)))
	m.MultiplyConst(scratch, step*runWord)
	if s.array < len(pointers) {
		m.General(asm.Add, scratch, asm.Register(pointers[s.array]))
		return
	}
	m.General(asm.Add, scratch, asm.At(arguments, 8*(arrayArgument+m.first+s.array)))
}

// wholeRun returns the memory operand of a vector within one run, or of its only element.
func (m *memory) wholeRun(s *step) asm.Operand {
	if s.runs.Stride == 0 {
		return asm.At(scratch, 0)
	}
	return asm.Operand{Base: scratch, Index: index, Scale: runWord, Disp: s.skip * m.width * runWord}
}

// loadRuns loads a vector from one run, or from several in pieces.
func (m *memory) loadRuns(s *step) {
	r := s.runs
	if r.Length >= m.width {
		d, o := m.dest(), asm.MoveIn
		if r.Stride == 0 {
			o = asm.Broadcast
		}
		m.runStart(s)
		m.Vector(o, d, 0, m.wholeRun(s))
		return
	}
	spread, insert := m.pieceMoves(r.Length)
	t := none
	if r.Stride == 0 {
		spread, t = asm.Broadcast, m.temp()
	}
	d := m.dest()
	m.runStart(s)
	m.Vector32(spread, d, 0, asm.At(scratch, 0))
	for i := 1; i < m.width/r.Length; i++ {
		from := asm.At(scratch, i*r.Jump*runWord)
		if r.Stride == 0 {
			m.Vector32(asm.Broadcast, t, 0, from)
			from = asm.Register(t)
		}
		m.Vector32(insert.Imm(i), d, d, from)
	}
}

// storeRuns stores a vector to one run, or to several in pieces.
func (m *memory) storeRuns(s *step) {
	r := s.runs
	from := m.locations[s.args[0].value].reg
	m.runStart(s)
	if r.Length >= m.width {
		m.Vector(asm.MoveOut, from, 0, m.wholeRun(s))
		return
	}
	extract := asm.ExtractQuarter
	if 2*r.Length == m.width {
		extract = m.half(asm.ExtractHalf, asm.ExtractQuarter)
	}
	for i := range m.width / r.Length {
		m.Vector32(extract.Imm(i), from, 0, asm.At(scratch, i*r.Jump*runWord))
	}
}

// pieceMoves returns the instructions that load a piece of a vector to all places, and to one.
func (m *memory) pieceMoves(length int) (spread, insert asm.Opcode) {
	if 2*length == m.width {
		return m.half(asm.SpreadHalf, asm.SpreadQuarter), m.half(asm.InsertHalf, asm.InsertQuarter)
	}
	return asm.SpreadQuarter, asm.InsertQuarter
}

// half returns the instruction on a half of a vector, which with AVX2 is that on 128 bits.
func (m *memory) half(wide, narrow asm.Opcode) asm.Opcode {
	if m.Wide {
		return wide
	}
	return narrow
}
