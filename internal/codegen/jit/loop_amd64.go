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
func (rs *registers) loadPointer(reg, argument int) {
	rs.General(asm.Move, reg, asm.At(arguments, 8*argument))
}

// clearIndex sets the index to the first lane.
func (c *control) clearIndex() { c.ClearGeneral(index) }

// loopBack advances the index and jumps back while lanes remain.
func (c *control) loopBack(lanes int, start *asm.Label) {
	c.AddConst(asm.Register(index), lanes)
	c.General(asm.Compare, index, asm.Register(lanesAll))
	c.JumpIf(asm.Less, start)
}

// HasOverlap reports whether rows may end with a vector that overlaps the one before.
func HasOverlap() bool { return true }

// overlapBack is loopBack for any number of lanes from a vector's on. Where the last vector is masked, those lanes are
// active that the one before does not have.
func (c *control) overlapBack(lanes int, masked bool, start *asm.Label) {
	var done asm.Label
	c.AddConst(asm.Register(index), lanes)
	c.General(asm.Address, scratch, asm.At(index, lanes))
	c.General(asm.Compare, scratch, asm.Register(lanesAll))
	c.JumpIf(asm.Less, start)
	c.JumpIf(asm.Equal, start)
	c.General(asm.Compare, index, asm.Register(lanesAll))
	c.JumpIf(asm.GreaterOrEqual, &done)
	c.General(asm.Address, index, asm.At(lanesAll, -lanes))
	if masked {
		c.loadOverlapMask()
	}
	c.Jump(start)
	c.Bind(&done)
}

// HasIndirect reports whether rows have indirect arrays.
func HasIndirect() bool { return true }

// place computes the address of an indirect array.
func (c *control) place(x Indirect) {
	c.loadPointer(scratch, arrayArgument+x.Index)
	c.General(asm.LoadInt32, scratch, asm.At(scratch, 0))
	var inside asm.Label
	c.CompareConst(asm.Register(scratch), x.Most)
	c.JumpIf(asm.Below, &inside)
	c.ClearGeneral(scratch)
	c.Bind(&inside)
	c.MultiplyConst(scratch, x.Scale)
	c.General(asm.Add, scratch, asm.At(arguments, 8*(arrayArgument+x.Base)))
	c.General(asm.MoveTo, scratch, asm.At(arguments, 8*(arrayArgument+x.Array)))
}

// nextRow counts a row, and while rows remain advances the arrays and jumps back.
func (c *control) nextRow(r *Rows, start *asm.Label) {
	c.loadPointer(scratch, rowsArgument)
	c.CountDown(asm.At(scratch, 0))
	var last asm.Label
	c.JumpIf(asm.Equal, &last)
	for i, step := range r.Strides {
		if step != 0 {
			c.AddConst(asm.At(arguments, 8*(arrayArgument+i)), step)
		}
	}
	if r.Counter >= 0 {
		c.loadPointer(scratch, arrayArgument+r.Counter)
		c.CountUp32(asm.At(scratch, 0))
	}
	c.Jump(start)
	c.Bind(&last)
}

// loadLaneMask loads the mask of active lanes.
func (c *control) loadLaneMask() {
	c.loadPointer(scratch, maskArgument)
	at := asm.At(scratch, 0)
	if c.Wide {
		t, _ := c.vector.take()
		c.Vector(asm.MoveIn, t, 0, at)
		c.EVEX(c.Lanes(asm.TestWords), laneMask, t, asm.Register(t), asm.Masking{})
		c.vector.free = append(c.vector.free, t)
	} else {
		c.Vector(asm.MoveIn, lastVector, 0, at)
	}
}

// loadOverlapMask loads the mask of the lanes of the last vector that the one before does not have.
func (c *control) loadOverlapMask() {
	c.loadPointer(scratch, overlapArgument)
	if at := asm.At(scratch, 0); c.Wide {
		c.VEX(asm.MaskIn, laneMask, 0, at, true)
	} else {
		c.Vector(asm.MoveIn, lastVector, 0, at)
	}
}
