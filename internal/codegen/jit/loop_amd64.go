package jit

import "github.com/rlx-go/rlx/internal/codegen/asm"

// The general registers in use; [asm.Call] sets arguments and lanesAll.
const (
	scratch   = asm.AX
	index     = asm.DX // the first lane
	arguments = asm.SI
	lanesAll  = asm.R13
)

// pointers are the registers with the addresses of the first arrays; those of the others are
// loaded when used.
var pointers = []int{asm.BX, asm.CX, asm.DI, asm.R8, asm.R9, asm.R10, asm.R11, asm.R12}

// loadPointer loads an argument into a general register.
func (g *generator) loadPointer(reg, argument int) {
	g.General(asm.Move, reg, asm.At(arguments, 8*argument))
}

// clearIndex sets the index to the first lane.
func (g *generator) clearIndex() { g.ClearGeneral(index) }

// loopBack advances the index and jumps back while lanes remain.
func (g *generator) loopBack(lanes int, start *asm.Label) {
	g.AddConst(asm.Register(index), lanes)
	g.General(asm.Compare, index, asm.Register(lanesAll))
	g.JumpIf(asm.Less, start)
}

// HasOverlap reports whether rows may end with a vector that overlaps the one before.
func HasOverlap() bool { return true }

// overlapBack is loopBack for any number of lanes from a vector's on.
func (g *generator) overlapBack(lanes int, start *asm.Label) {
	var done asm.Label
	g.AddConst(asm.Register(index), lanes)
	g.General(asm.Address, scratch, asm.At(index, lanes))
	g.General(asm.Compare, scratch, asm.Register(lanesAll))
	g.JumpIf(asm.Less, start)
	g.JumpIf(asm.Equal, start)
	g.General(asm.Compare, index, asm.Register(lanesAll))
	g.JumpIf(asm.GreaterOrEqual, &done)
	g.General(asm.Address, index, asm.At(lanesAll, -lanes))
	if len(g.k.accumulators) > 0 {
		g.loadOverlapMask()
	}
	g.Jump(start)
	g.Bind(&done)
}

// HasIndirect reports whether rows have indirect arrays.
func HasIndirect() bool { return true }

// place computes the address of an indirect array.
func (g *generator) place(x Indirect) {
	g.loadPointer(scratch, arrayArgument+x.Index)
	g.General(asm.LoadInt32, scratch, asm.At(scratch, 0))
	var inside asm.Label
	g.CompareConst(asm.Register(scratch), x.Most)
	g.JumpIf(asm.Below, &inside)
	g.ClearGeneral(scratch)
	g.Bind(&inside)
	g.MultiplyConst(scratch, x.Scale)
	g.General(asm.Add, scratch, asm.At(arguments, 8*(arrayArgument+x.Base)))
	g.General(asm.MoveTo, scratch, asm.At(arguments, 8*(arrayArgument+x.Array)))
}

// nextRow counts a row, and while rows remain advances the arrays and jumps back.
func (g *generator) nextRow(r *Rows, start *asm.Label) {
	g.loadPointer(scratch, rowsArgument)
	g.CountDown(asm.At(scratch, 0))
	var last asm.Label
	g.JumpIf(asm.Equal, &last)
	for i, step := range r.Strides {
		if step != 0 {
			g.AddConst(asm.At(arguments, 8*(arrayArgument+i)), step)
		}
	}
	if r.Counter >= 0 {
		g.loadPointer(scratch, arrayArgument+r.Counter)
		g.CountUp32(asm.At(scratch, 0))
	}
	g.Jump(start)
	g.Bind(&last)
}
