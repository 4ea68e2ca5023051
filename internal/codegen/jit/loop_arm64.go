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
func (rs *registers) loadPointer(reg, argument int) { rs.Load(reg, arguments, 8*argument) }

// clearIndex sets the index to the first lane.
func (c *control) clearIndex() {
	c.Number(vectors, 0)
	c.Move(lanesLeft, lanesAll)
	c.loadPointer(spillBase, spillArgument)
}

// loopBack advances the index and jumps back while lanes remain.
func (c *control) loopBack(lanes int, start *asm.Label) {
	inVector := 4
	if c.Long {
		inVector = 2
	}
	c.AddConst(vectors, vectors, lanes/inVector)
	c.SubConst(lanesLeft, lanesLeft, lanes)
	c.JumpIf(asm.Greater, start)
}

// HasOverlap reports whether rows may end with a vector that overlaps the one before.
func HasOverlap() bool { return false }

func (c *control) overlapBack(int, bool, *asm.Label) {}

// HasIndirect reports whether rows have indirect arrays.
func HasIndirect() bool { return false }

func (c *control) place(Indirect) {}

// nextRow counts a row, and while rows remain advances the arrays and jumps back.
func (c *control) nextRow(r *Rows, start *asm.Label) {
	c.loadPointer(scratch, rowsArgument)
	c.Load(scratch2, scratch, 0)
	c.SubConst(scratch2, scratch2, 1)
	c.Store(scratch2, scratch, 0)
	var last asm.Label
	c.JumpIf(asm.Equal, &last)
	for i, step := range r.Strides {
		if step != 0 {
			c.loadPointer(scratch, arrayArgument+i)
			c.Number(scratch2, step)
			c.Add(scratch, scratch, scratch2)
			c.Store(scratch, arguments, 8*(arrayArgument+i))
		}
	}
	if r.Counter >= 0 {
		c.loadPointer(scratch, arrayArgument+r.Counter)
		c.CountUp32(scratch, scratch2)
	}
	c.Jump(start)
	c.Bind(&last)
}

// loadLaneMask loads the mask of active lanes.
func (c *control) loadLaneMask() {
	c.loadPointer(scratch, maskArgument)
	c.Two(asm.LoadAt, laneMask, scratch)
}
