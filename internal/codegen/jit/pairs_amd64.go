package jit

import "github.com/rlx-go/rlx/internal/codegen/asm"

// HasPairs reports whether kernels have [Kernel.LoadPart] and [Kernel.StorePairs].
func HasPairs() bool { return true }

// middles swaps the second and the third of four elements.
const middles = 0xd8

// pairs returns the memory operand of the first of the two vectors that hold the pairs of a vector's lanes, and
// the bytes of each.
func (m *memory) pairs(s *step) (asm.Operand, int) {
	size := 2 * s.typ.Size()
	vector := m.width * s.typ.Size()
	if !m.Long {
		return m.array(s, size), vector
	}
	m.General(asm.Address, scratch, asm.At(index, s.skip*m.width+s.shift))
	m.MultiplyConst(scratch, size)
	if s.array < len(pointers) {
		m.General(asm.Add, scratch, asm.Register(pointers[s.array]))
	} else {
		m.General(asm.Add, scratch, asm.At(arguments, 8*(arrayArgument+m.first+s.array)))
	}
	return asm.At(scratch, 0), vector
}

// loadPart loads two vectors of pairs, and takes one part of each. The lanes are then those of quarters of both
// vectors in turn, which stays where the kernel is paired.
func (m *memory) loadPart(s *step) {
	d := m.dest()
	at, vector := m.pairs(s)
	pick := asm.ShuffleWords.Imm([]int{0x88, 0xdd}[s.lanes])
	if m.Long {
		pick = []asm.Opcode{asm.InterleaveLow, asm.InterleaveHigh}[s.lanes]
	}
	m.Vector(asm.MoveIn, d, 0, at)
	at.Disp += vector
	m.Vector(pick, d, d, at)
	if m.paired {
		return
	}
	m.Vector32(asm.PermuteQuad.Imm(middles), d, 0, asm.Register(d))
	if m.Wide {
		m.Vector32(asm.ShuffleQuarters.Imm(middles), d, d, asm.Register(d))
	}
}

// storePairs stores two vectors of pairs, in the order of lanes of loadPart.
func (m *memory) storePairs(s *step) {
	var parts [2]int
	for i, a := range s.args {
		from := m.in(a)
		if m.paired {
			parts[i] = from
			continue
		}
		t := m.temp()
		if m.Wide {
			m.Vector32(asm.ShuffleQuarters.Imm(middles), t, from, asm.Register(from))
			from = t
		}
		m.Vector32(asm.PermuteQuad.Imm(middles), t, 0, asm.Register(from))
		parts[i] = t
	}
	t := m.temp()
	at, vector := m.pairs(s)
	for _, join := range []asm.Opcode{asm.InterleaveLow, asm.InterleaveHigh} {
		m.Vector(join, t, parts[0], asm.Register(parts[1]))
		m.Vector(asm.MoveOut, t, 0, at)
		at.Disp += vector
	}
}
