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
func (g *generator) runStart(s *step) {
	r := s.runs
	step := r.Jump
	if r.Length >= g.width {
		step -= r.Length * r.Stride
	}
	g.General(asm.Address, scratch, asm.At(index, s.skip*g.width))
	g.ShiftRight(scratch, bits.TrailingZeros(uint(r.Length)))
	g.MultiplyConst(scratch, step*runWord)
	if s.array < len(pointers) {
		g.General(asm.Add, scratch, asm.Register(pointers[s.array]))
		return
	}
	g.General(asm.Add, scratch, asm.At(arguments, 8*(arrayArgument+g.first+s.array)))
}

// wholeRun returns the memory operand of a vector within one run, or of its only element.
func (g *generator) wholeRun(s *step) asm.Operand {
	if s.runs.Stride == 0 {
		return asm.At(scratch, 0)
	}
	return asm.Operand{Base: scratch, Index: index, Scale: runWord, Disp: s.skip * g.width * runWord}
}

// loadRuns loads a vector from one run, or from several in pieces.
func (g *generator) loadRuns(s *step) {
	r := s.runs
	if r.Length >= g.width {
		d, o := g.dest(), asm.MoveIn
		if r.Stride == 0 {
			o = asm.Broadcast
		}
		g.runStart(s)
		g.Vector(o, d, 0, g.wholeRun(s))
		return
	}
	spread, insert := g.pieceMoves(r.Length)
	t := none
	if r.Stride == 0 {
		spread, t = asm.Broadcast, g.temp()
	}
	d := g.dest()
	g.runStart(s)
	g.Vector32(spread, d, 0, asm.At(scratch, 0))
	for i := 1; i < g.width/r.Length; i++ {
		from := asm.At(scratch, i*r.Jump*runWord)
		if r.Stride == 0 {
			g.Vector32(asm.Broadcast, t, 0, from)
			from = asm.Register(t)
		}
		g.Vector32(insert.Imm(i), d, d, from)
	}
}

// storeRuns stores a vector to one run, or to several in pieces.
func (g *generator) storeRuns(s *step) {
	r := s.runs
	from := g.locations[s.args[0].value].reg
	g.runStart(s)
	if r.Length >= g.width {
		g.Vector(asm.MoveOut, from, 0, g.wholeRun(s))
		return
	}
	extract := asm.ExtractQuarter
	if 2*r.Length == g.width {
		extract = g.half(asm.ExtractHalf, asm.ExtractQuarter)
	}
	for i := range g.width / r.Length {
		g.Vector32(extract.Imm(i), from, 0, asm.At(scratch, i*r.Jump*runWord))
	}
}

// pieceMoves returns the instructions that load a piece of a vector to all places, and to one.
func (g *generator) pieceMoves(length int) (spread, insert asm.Opcode) {
	if 2*length == g.width {
		return g.half(asm.SpreadHalf, asm.SpreadQuarter), g.half(asm.InsertHalf, asm.InsertQuarter)
	}
	return asm.SpreadQuarter, asm.InsertQuarter
}

// half returns the instruction on a half of a vector, which with AVX2 is that on 128 bits.
func (g *generator) half(wide, narrow asm.Opcode) asm.Opcode {
	if g.Wide {
		return wide
	}
	return narrow
}
