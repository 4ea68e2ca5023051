package jit

import "github.com/rlx-go/rlx/internal/codegen/asm"

// HasPairs reports whether kernels have [Kernel.LoadPart] and [Kernel.StorePairs].
func HasPairs() bool { return true }

// middles swaps the second and the third of four elements.
const middles = 0xd8

// pairs returns the memory operand of the first of the two vectors that hold the pairs of a vector's lanes, and
// the bytes of each.
func (g *generator) pairs(s *step) (asm.Operand, int) {
	size := 2 * s.typ.Size()
	vector := g.width * s.typ.Size()
	if !g.Long {
		return g.array(s, size), vector
	}
	g.General(asm.Address, scratch, asm.At(index, s.skip*g.width+s.shift))
	g.MultiplyConst(scratch, size)
	if s.array < len(pointers) {
		g.General(asm.Add, scratch, asm.Register(pointers[s.array]))
	} else {
		g.General(asm.Add, scratch, asm.At(arguments, 8*(arrayArgument+g.first+s.array)))
	}
	return asm.At(scratch, 0), vector
}

// loadPart loads two vectors of pairs, and takes one part of each. The lanes are then those of quarters of both
// vectors in turn, which stays where the kernel is paired.
func (g *generator) loadPart(s *step) {
	d := g.dest()
	at, vector := g.pairs(s)
	pick := asm.ShuffleWords.Imm([]int{0x88, 0xdd}[s.lanes])
	if g.Long {
		pick = []asm.Opcode{asm.InterleaveLow, asm.InterleaveHigh}[s.lanes]
	}
	g.Vector(asm.MoveIn, d, 0, at)
	at.Disp += vector
	g.Vector(pick, d, d, at)
	if g.paired {
		return
	}
	g.Vector32(asm.PermuteQuad.Imm(middles), d, 0, asm.Register(d))
	if g.Wide {
		g.Vector32(asm.ShuffleQuarters.Imm(middles), d, d, asm.Register(d))
	}
}

// storePairs stores two vectors of pairs, in the order of lanes of loadPart.
func (g *generator) storePairs(s *step) {
	var parts [2]int
	for i, a := range s.args {
		from := g.in(a)
		if g.paired {
			parts[i] = from
			continue
		}
		t := g.temp()
		if g.Wide {
			g.Vector32(asm.ShuffleQuarters.Imm(middles), t, from, asm.Register(from))
			from = t
		}
		g.Vector32(asm.PermuteQuad.Imm(middles), t, 0, asm.Register(from))
		parts[i] = t
	}
	t := g.temp()
	at, vector := g.pairs(s)
	for _, join := range []asm.Opcode{asm.InterleaveLow, asm.InterleaveHigh} {
		g.Vector(join, t, parts[0], asm.Register(parts[1]))
		g.Vector(asm.MoveOut, t, 0, at)
		at.Disp += vector
	}
}
