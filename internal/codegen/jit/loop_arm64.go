package jit

import "github.com/rlx-go/rlx/internal/codegen/asm"

// The general registers in use; [asm.Call] sets arguments and lanesAll. Go and the system reserve
// X18 and X26 to X30.
const (
	arguments = 0
	lanesAll  = 1
	vectors   = 2 // the index of the first lane, in vectors
	spillBase = 3
	lanesLeft = 4
	scratch   = 16
	scratch2  = 17
)

// pointers are the registers with the addresses of the first arrays; those of the others are
// loaded when used.
var pointers = []int{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25}

// loadPointer loads an argument into a general register.
func (g *generator) loadPointer(reg, argument int) { g.Load(reg, arguments, 8*argument) }

// clearIndex sets the index to the first lane.
func (g *generator) clearIndex() {
	g.Number(vectors, 0)
	g.Move(lanesLeft, lanesAll)
	g.loadPointer(spillBase, spillArgument)
}

// loopBack advances the index and jumps back while lanes remain.
func (g *generator) loopBack(lanes int, start *asm.Label) {
	inVector := 4
	if g.Long {
		inVector = 2
	}
	g.AddConst(vectors, vectors, lanes/inVector)
	g.SubConst(lanesLeft, lanesLeft, lanes)
	g.JumpIf(asm.Greater, start)
}

// HasOverlap reports whether rows may end with a vector that overlaps the one before.
func HasOverlap() bool { return false }

func (g *generator) overlapBack(int, *asm.Label) {}

// HasIndirect reports whether rows have indirect arrays.
func HasIndirect() bool { return false }

func (g *generator) place(Indirect) {}

// nextRow counts a row, and while rows remain advances the arrays and jumps back.
func (g *generator) nextRow(r *Rows, start *asm.Label) {
	g.loadPointer(scratch, rowsArgument)
	g.Load(scratch2, scratch, 0)
	g.SubConst(scratch2, scratch2, 1)
	g.Store(scratch2, scratch, 0)
	var last asm.Label
	g.JumpIf(asm.Equal, &last)
	for i, step := range r.Strides {
		if step != 0 {
			g.loadPointer(scratch, arrayArgument+i)
			g.Number(scratch2, step)
			g.Add(scratch, scratch, scratch2)
			g.Store(scratch, arguments, 8*(arrayArgument+i))
		}
	}
	if r.Counter >= 0 {
		g.loadPointer(scratch, arrayArgument+r.Counter)
		g.CountUp32(scratch, scratch2)
	}
	g.Jump(start)
	g.Bind(&last)
}
